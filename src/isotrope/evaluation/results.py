"""What the judge says: numbers with the protocol they were taken under, as a table and as JSON."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from isotrope.files import write_json


@dataclass(frozen=True)
class Results:
    """``scores`` is nested: suite → task → measure. ``protocol`` names everything that moves the numbers."""

    scores: dict[str, Any]
    protocol: dict[str, Any]
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()

    def table(self) -> str:
        """The scores for a person to read, the protocol underneath."""
        from rich.console import Console
        from rich.table import Table

        table = Table(*self.columns, caption=" · ".join(f"{name} {value}" for name, value in self.protocol.items()))
        for column in table.columns[1:]:
            column.justify = "right"
        for row in self.rows:
            table.add_row(*row, end_section=row is self.rows[-1])
        text = io.StringIO()
        Console(file=text, width=110, no_color=True).print(table)
        return text.getvalue()

    def to_json(self, path: str | os.PathLike[str]) -> None:
        write_json(path, {"protocol": self.protocol, "scores": self.scores})
