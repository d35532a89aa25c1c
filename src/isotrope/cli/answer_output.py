"""Print an answer: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol


class Answer(Protocol):
    """What a public verb returns."""

    def to_dict(self) -> dict[str, Any]: ...
    def rows(self) -> list[dict[str, Any]]: ...


def print_answer(answer: Answer, as_json: bool) -> None:
    """The answer as JSON or as a table."""
    print_rows(answer.to_dict(), answer.rows(), as_json)


def print_rows(value: Any, rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    """``value`` as JSON, or ``rows`` as a table whose columns are those of the first row."""
    if as_json:
        print(json.dumps(value, ensure_ascii=False, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    columns = tuple(rows[0]) if rows else ()
    table = Table(*columns)
    for row in rows:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    console = Console()
    Console(width=console.width if console.is_terminal else 200).print(table)
