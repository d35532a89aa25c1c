"""What the judge says: numbers with the protocol they were taken under, as a table and as JSON."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.items import Items
from isotrope.files import write_json
from isotrope.terminal import console, visible

if TYPE_CHECKING:
    from isotrope.evaluation.verdict import Verdict

WIDTH = 110
ENCODER = "encoder"  # the first of the sides that a table compares


def read_out(encoder: Encoder) -> dict[str, str]:
    """What a protocol says of the encoder: how its vectors are read out, and the maps behind them."""
    spaces = [space["name"] for space in encoder.facts.get("spaces", [])]
    exported = encoder.facts.get("onnx")
    if exported is None:
        found = {"pooling": encoder.pooling.name}
    else:
        found = {
            "pooling": str(exported.get("pooling", "of the export")),
            "precision": "int8" if "quantized" in str(exported.get("file")) else "float32",
        }
    return {**found, **({"space": " + ".join(spaces)} if spaces else {})}


def nested_sides(sides: Mapping[str, Any]) -> dict[str, Any]:
    """Scores of the encoder, which comes first, and under ``baselines`` those of the others, where there are any."""
    (_, own), *others = ((title, asdict(score)) for title, score in sides.items())
    return {**own, **({"baselines": dict(others)} if others else {})}


@dataclass(frozen=True)
class Section:
    """A further table under the first; ``caption`` stands below it."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    caption: str = ""


@dataclass(frozen=True)
class Results:
    """``scores`` is nested: suite → task → measure. ``protocol`` names everything that moves the numbers; of several
    suites it is nested by suite.

    ``items`` has what the main measure of a task is made of, for tasks where that is known; of several suites its keys
    are ``suite/task``. ``tasks`` has a flat record of each task with its protocol (task_records.py), ``cost`` the time
    and memory, ``leaks`` what is known of test items in the training text (leak_marks.py), ``verdicts`` the comparisons
    with other encoders (verdict.py).
    """

    scores: dict[str, Any]
    protocol: dict[str, Any]
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    sections: Sequence[Section] = ()
    items: Mapping[str, Items] = field(default_factory=dict)
    tasks: Sequence[Mapping[str, Any]] = ()
    cost: Mapping[str, Any] = field(default_factory=dict)
    leaks: Mapping[str, Any] = field(default_factory=dict)
    verdicts: Sequence[Verdict] = ()

    def tables(self) -> list[Section]:
        """Every table, the protocol under the last of its suite."""
        first = [Section("", self.columns, self.rows)] if self.columns else []
        tables = [*first, *self.sections]
        if tables and not tables[-1].caption:
            last = tables[-1]
            tables[-1] = Section(last.title, last.columns, last.rows, caption_of(self.protocol))
        return tables

    def table(self) -> str:
        """The scores for a person to read, the protocol underneath; then verdicts, leaks and cost."""
        from rich.table import Table

        text = io.StringIO()
        paper = console(text, WIDTH)
        for section in (*self.tables(), *(verdict.section() for verdict in self.verdicts)):
            heads, title, caption = map(visible, section.columns), visible(section.title), visible(section.caption)
            table = Table(*heads, title=title or None, title_justify="left", caption=caption or None)
            for number, column in enumerate(table.columns[1:], 1):
                words = any(letter.isalpha() for row in section.rows for letter in row[number])
                column.justify = "left" if words else "right"
            for row in section.rows:
                table.add_row(*map(visible, row), end_section=row is section.rows[-1])
            paper.print(table)
        for line in self.remarks():
            paper.print(visible(line), soft_wrap=True)
        return text.getvalue()

    def remarks(self) -> list[str]:
        """The sentences under the tables."""
        cost = " · ".join(f"{name} {value}" for name, value in self.cost.items() if not isinstance(value, Mapping))
        leaks = [str(line) for line in self.leaks.get("remarks", ())]
        return [*(verdict.sentence for verdict in self.verdicts), *leaks, *([cost] if cost else [])]

    def to_dict(self) -> dict[str, Any]:
        more = {
            "tasks": [dict(task) for task in self.tasks],
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "leaks": dict(self.leaks),
            "cost": dict(self.cost),
        }
        return {
            "protocol": self.protocol,
            "scores": self.scores,
            **{name: value for name, value in more.items() if value},
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        write_json(path, self.to_dict())


def caption_of(protocol: Mapping[str, Any]) -> str:
    return " · ".join(f"{name} {value}" for name, value in protocol.items())
