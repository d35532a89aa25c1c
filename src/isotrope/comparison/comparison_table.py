"""What a comparison found:

rows of mean ± standard deviation over seeds, for people, for programs and for a docs page.
"""

from __future__ import annotations

import io
import json
import os
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from isotrope.comparison.spread import FEWEST, Spread
from isotrope.errors import InputError
from isotrope.evaluation.transfer import TASKS
from isotrope.files import write_json, written_file

FILE = "comparison.json"
START = "start"
HEADS = {  # in the order of the table: head, digits
    "sts_average": ("STS average", 2),
    "sts_b": ("STS-B", 2),
    "transfer_average": ("transfer", 2),
    **{f"transfer_{task.lower()}": (task, 1) for task in TASKS},
    "retrieval_mrr": ("MRR", 3),
    "dev_spearman": ("dev", 2),
    "alignment": ("alignment", 3),
    "uniformity": ("uniformity", 3),
    "effective_rank": ("rank", 1),
    "seconds": ("seconds", 1),
}
BESIDE = ("alignment", "uniformity", "effective_rank", "seconds", "dev_spearman")  # what no method is ranked by


@dataclass(frozen=True)
class Row:
    """``measures``: of each, its values, one a seed. ``text`` is the file that was trained on."""

    name: str
    text: str
    measures: dict[str, list[float]]

    def cells(self, columns: Iterable[str]) -> list[str]:
        return [_spread(self.measures.get(column, []), _head(column)[1]) for column in columns]


@dataclass(frozen=True)
class Comparison:
    """``runs`` are the judgements, ``failures`` what went wrong instead, ``terms`` everything that was the same."""

    terms: dict[str, Any]
    names: list[str]
    start: dict[str, float] = field(default_factory=dict)  # empty: each text has its own judge, and so its own start
    runs: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    folder: Path | None = None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Comparison:
        """What ``write`` wrote."""
        file = Path(path)
        if not file.is_file():
            raise InputError(f"{file}: no such comparison.")
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            return cls(kept["terms"], kept["names"], kept["start"], kept["runs"], kept["failures"], file.parent)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{file}: this is not what `isotrope compare` writes.") from error

    @property
    def columns(self) -> list[str]:
        return _in_order(name for row in self.rows() for name in row.measures)

    def rows(self) -> list[Row]:
        """The start, then the methods as they were named; where each text has its own judge, text by text."""
        runs = sorted(self.runs, key=lambda run: (self.names.index(run["name"]), run["seed"]))
        if self.start:
            return [
                self._start([run for run in runs if not self._pooled_apart(run)][:1], "", self.start),
                *self._rows_of(runs),
            ]
        rows = []
        for text in dict.fromkeys(_text(run) for run in runs):
            same = [run for run in runs if _text(run) == text]
            by_seed = {
                run["seed"]: run for run in same if not self._pooled_apart(run)
            }  # before the first step all methods are one
            rows += [self._start(list(by_seed.values()), Path(text[0]).name), *self._rows_of(same)]
        return rows

    def _pooled_apart(self, run: dict[str, Any]) -> bool:
        return "pooling" in self.terms["own"].get(run["name"], {"settings": {}})["settings"]

    def _start(self, runs: list[dict[str, Any]], text: str, judged: dict[str, float] | None = None) -> Row:
        shown = {name for run in self.runs for name in run["measures"]}
        found = [judged or {name: value for name, value in run["before"].items() if name in shown} for run in runs]
        dev = [{"dev_spearman": run["before"].get("spearman")} if self.terms["eval_data"] else {} for run in runs]
        return _row(
            START, text, [{**before, **chosen} for before, chosen in zip(found, dev, strict=True)] or [judged or {}]
        )

    def _rows_of(self, runs: list[dict[str, Any]]) -> list[Row]:
        of = {name: [run for run in runs if run["name"] == name] for name in self.names}
        return [
            _row(name, Path(_text(own[0])[0]).name, [run["measures"] for run in own]) for name, own in of.items() if own
        ]

    def spread(self) -> list[Spread]:
        """Measure by measure, each method over its seeds and against the first one; of few seeds, nothing."""
        if len(self.terms["seeds"]) < FEWEST:
            return []
        ranked = [name for name in self.columns if name not in BESIDE and not name.endswith("guess")]
        found = []
        for measure in ranked:
            runs = {
                name: [run for run in self.runs if run["name"] == name and measure in run["measures"]]
                for name in self.names
            }
            values = {name: {run["seed"]: run["measures"][measure] for run in own} for name, own in runs.items() if own}
            first = self.names[0]
            found += [
                Spread.of(measure, name, own, values.get(first) if name != first else None)
                for name, own in values.items()
            ]
        return found

    def notes(self) -> list[str]:
        """The terms, what single methods had of their own, and which runs are missing, a sentence each."""
        terms = self.terms
        settings = ", ".join(f"{name} {value}" for name, value in terms["settings"].items())
        chosen = (
            f"Spearman on {', '.join(Path(file).name for file in terms['eval_data'])}"
            if terms["eval_data"]
            else "the label-free score"
        )
        seeds = ", ".join(map(str, terms["seeds"]))
        last = f" (of {', '.join(terms['last'])} the last)" if terms.get("last") else ""
        said = [
            f"{'Mean ± standard deviation over seeds' if len(terms['seeds']) > 1 else 'Seed'} {seeds}; from {terms['model']}, {settings}.",
            f"Checkpoints chosen by {chosen}{last}; judged by {terms['protocol']}; seconds are those of the training steps.",
        ]
        for name, own in terms["own"].items():
            means = "".join(f", {setting} {value}" for setting, value in own["settings"].items())
            said.append(f"{name}: {own['method']}{means}.")
        return said + [
            f"{failure['name']}, seed {failure['seed']}, failed: {failure['sentence']}" for failure in self.failures
        ]

    def table(self) -> str:
        """For a person at a terminal."""
        from rich.console import Console
        from rich.table import Table

        heads = [_head(column)[0] for column in self.columns]
        table = Table("method", "text", *heads)
        for column in table.columns[2:]:
            column.justify = "right"
        for row in self.rows():
            table.add_row(row.name, row.text, *row.cells(self.columns))
        text = io.StringIO()
        console = Console(file=text, width=160, no_color=True)
        console.print(table)
        if self.spread():
            further = Table(*self._spread_heads())
            for spread in self.spread():
                further.add_row(*spread.cells(*_head(spread.measure)))
            console.print(further)
        warned = [f"{run['name']}, seed {run['seed']}: {sentence}" for run in self.runs for sentence in run["warnings"]]
        for note in [*self.notes(), *warned]:
            console.print(note, soft_wrap=True, highlight=False, markup=False)
        return text.getvalue()

    def markdown(self) -> str:
        """For a docs page."""
        lines = [["method", "text", *(_head(column)[0] for column in self.columns)], ["---"] * (2 + len(self.columns))]
        lines += [
            [row.name if row.name == START else f"`{row.name}`", row.text, *row.cells(self.columns)]
            for row in self.rows()
        ]
        tables = [lines]
        if self.spread():
            heads = self._spread_heads()
            tables.append(
                [heads, ["---"] * len(heads), *(spread.cells(*_head(spread.measure)) for spread in self.spread())]
            )
        written = "\n\n".join("\n".join(f"| {' | '.join(line)} |" for line in table) for table in tables)
        return written + "\n\n" + "\n".join(f"- {note}" for note in self.notes()) + "\n"

    def _spread_heads(self) -> list[str]:
        return [
            "measure",
            "method",
            "seeds",
            "median",
            "least – most",
            "mean (95 % interval)",
            f"from {self.names[0]}, seed by seed",
        ]

    def to_dict(self) -> dict[str, Any]:
        rows = [
            {"name": row.name, "text": row.text, "measures": {name: _summed(v) for name, v in row.measures.items()}}
            for row in self.rows()
        ]
        kept = {name: value for name, value in asdict(self).items() if name != "folder"}
        spread = [asdict(one) for one in self.spread()]
        return {"folder": str(self.folder) if self.folder else None, "rows": rows, "spread": spread, **kept}

    def write(self) -> None:
        """comparison.json in the comparison's folder."""
        if self.folder is not None:
            write_json(self.folder / FILE, self.to_dict())

    def write_markdown(self, path: str | os.PathLike[str]) -> None:
        with written_file(path) as temporary:
            temporary.write_text(self.markdown(), encoding="utf-8")


def _in_order(names: Iterable[str]) -> list[str]:
    """Those of the table as there, then methods' own as they come."""
    found = dict.fromkeys(names)
    return [*(name for name in HEADS if name in found), *(name for name in found if name not in HEADS)]


def _head(column: str) -> tuple[str, int]:
    """What stands over a column, and its digits; a method's own measures are shares, most of them."""
    return HEADS.get(column, (column.replace("_", " "), 4))


def _text(run: dict[str, Any]) -> tuple[str, str]:
    return run["data"]["source"], run["data"]["record_type"]


def _row(name: str, text: str, measured: list[dict[str, Any]]) -> Row:
    names = _in_order(column for found in measured for column in found)
    columns = {column: [found[column] for found in measured if found.get(column) is not None] for column in names}
    return Row(name, text, {column: values for column, values in columns.items() if values})


def _summed(values: list[float]) -> dict[str, Any]:
    return {"mean": statistics.fmean(values), "deviation": _deviation(values), "values": values}


def _deviation(values: list[float]) -> float | None:
    """Of a sample: with one seed there is none."""
    return statistics.stdev(values) if len(values) > 1 else None


def _spread(values: list[float], digits: int) -> str:
    if not values:
        return ""
    deviation = _deviation(values)
    return f"{statistics.fmean(values):.{digits}f}" + (f" ± {deviation:.{digits}f}" if deviation is not None else "")
