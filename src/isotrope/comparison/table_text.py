"""Tables as text, with sentences beneath: for a terminal or for a docs page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from isotrope.terminal import console, visible


@dataclass(frozen=True)
class TextTable:
    """``words``: how many columns, from the left, hold words; numbers are aligned at their right end."""

    heads: list[str]
    rows: list[list[str]]
    words: int


def plain_text(tables: Sequence[TextTable], notes: Sequence[str]) -> str:
    from rich.table import Table

    text = io.StringIO()
    paper = console(text, 160)
    for table in tables:
        drawn = Table(*map(visible, table.heads))
        for column in drawn.columns[table.words :]:
            column.justify = "right"
        for row in table.rows:
            drawn.add_row(*map(visible, row))
        paper.print(drawn)
    for note in notes:
        paper.print(visible(note), soft_wrap=True)
    return text.getvalue()


def markdown_text(tables: Sequence[TextTable], notes: Sequence[str]) -> str:
    drawn = [
        "\n".join(f"| {' | '.join(line)} |" for line in [table.heads, ["---"] * len(table.heads), *table.rows])
        for table in tables
    ]
    return "\n\n".join([*drawn, "\n".join(f"- {note}" for note in notes)]) + "\n"
