"""Print an answer: a table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from isotrope.json_text import json_text
from isotrope.terminal import console, visible


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
        print(json_text(value))
        return
    from rich.table import Table

    columns = tuple(rows[0]) if rows else ()
    table = Table()
    for column in columns:
        table.add_column(visible(column), overflow="fold")  # a narrow terminal must not cut a name or a number
    for row in rows:
        table.add_row(*(_cell(row.get(column, "")) for column in columns))
    here = console()
    console(width=here.width if here.is_terminal else 200).print(table)


def _cell(value: Any) -> str:
    return "none" if value is None else visible(value)  # as it is given: --patience none
