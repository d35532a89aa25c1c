"""What the judge says: numbers with the protocol they were taken under, as a table and as JSON."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.items import Items
from isotrope.files import write_json


def read_out(encoder: Encoder) -> dict[str, str]:
    """What a protocol says of the encoder: how its vectors are read out, and the maps behind them."""
    spaces = [space["name"] for space in encoder.facts.get("spaces", [])]
    return {"pooling": encoder.pooling.name, **({"space": " + ".join(spaces)} if spaces else {})}


@dataclass(frozen=True)
class Section:
    """A further table under the first."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Results:
    """``scores`` is nested: suite → task → measure. ``protocol`` names everything that moves the numbers.

    ``items`` has what the main measure of a task is made of, for tasks where that is known.
    """

    scores: dict[str, Any]
    protocol: dict[str, Any]
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    sections: Sequence[Section] = ()
    items: Mapping[str, Items] = field(default_factory=dict)

    def table(self) -> str:
        """The scores for a person to read, the protocol underneath."""
        from rich.console import Console
        from rich.table import Table

        protocol = " · ".join(f"{name} {value}" for name, value in self.protocol.items())
        tables = [Section("", self.columns, self.rows), *self.sections]
        text = io.StringIO()
        console = Console(file=text, width=110, no_color=True)
        for section in tables:
            last = section is tables[-1]
            table = Table(
                *section.columns, title=section.title or None, title_justify="left", caption=protocol if last else None
            )
            for number, column in enumerate(table.columns[1:], 1):
                words = any(letter.isalpha() for row in section.rows for letter in row[number])
                column.justify = "left" if words else "right"
            for row in section.rows:
                table.add_row(*row, end_section=row is section.rows[-1])
            console.print(table)
        return text.getvalue()

    def to_dict(self) -> dict[str, Any]:
        return {"protocol": self.protocol, "scores": self.scores}

    def to_json(self, path: str | os.PathLike[str]) -> None:
        write_json(path, self.to_dict())
