"""What a comparison found: runs, rows and terms, read from comparison.json and written to it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from isotrope.comparison.common_set import COMMON, HIGH, LOW, spoken_gain
from isotrope.comparison.footing import Footing
from isotrope.comparison.judgement import Failure, Judgement, Outcome, numbers, said_once
from isotrope.comparison.judges import DEV
from isotrope.comparison.line_up import FILE as FILE
from isotrope.comparison.spread import FEWEST, Spread, against_first
from isotrope.comparison.table_rows import START, Row, head_of, in_order, is_ranked, shown
from isotrope.comparison.table_text import TextTable, markdown_text, plain_text
from isotrope.comparison.terms import folder_name
from isotrope.errors import InputError
from isotrope.files import write_json, written_file

OWN = "retrieval_mrr"
OF_EACH_TEXT = (OWN, "other_view")  # measured on each text's own held-out part


def _is_common(row: Row) -> bool:
    """Whether the MRR of the row's own text is that of all rows, in another unit."""
    own, common = row.measures.get(OWN, []), row.measures.get(COMMON, [])
    return len(own) == len(common) and all(
        math.isclose(100 * one, other, abs_tol=1e-6) for one, other in zip(own, common, strict=True)
    )


@dataclass(frozen=True)
class Comparison:
    """``runs`` are the judgements, ``failures`` what went wrong instead, ``terms`` everything that was the same."""

    terms: Footing
    names: list[str]
    start: dict[str, float] = field(default_factory=dict)  # empty: each text has its own judge, and so its own start
    runs: list[Judgement] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    folder: Path | None = None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Comparison:
        """What ``write`` wrote."""
        file = Path(path)
        if not file.is_file():
            raise InputError(f"{file}: no such comparison.")
        try:
            kept = json.loads(file.read_text(encoding="utf-8"))
            return cls(
                terms=Footing.from_json(kept["terms"]),
                names=kept["names"],
                start=numbers(kept["start"]),
                runs=[Judgement.from_json(run) for run in kept["runs"]],
                failures=[Failure(**failure) for failure in kept["failures"]],
                folder=file.parent,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{file}: this is not what `isotrope compare` writes.") from error

    def joined(self, outcome: Outcome) -> Comparison:
        """The same with one more run, or one more failure."""
        if isinstance(outcome, Failure):
            return replace(self, failures=[*self.failures, outcome])
        return replace(self, runs=[*self.runs, outcome])

    @property
    def columns(self) -> list[str]:
        """Those of the table. What a suite says of single tasks stays in the rows, and so in comparison.json."""
        rows = self.rows()
        found = in_order(name for row in rows for name in row.measures)
        hidden = {LOW, HIGH, *([OWN] if all(map(_is_common, rows)) else [])}  # of one text, the two are one figure
        return [name for name in shown(found) if name not in hidden]

    def rows(self) -> list[Row]:
        """The start, then the methods as they were named; where each text has its own judge, text by text."""
        runs = sorted(self.runs, key=lambda run: (self.names.index(run.name), run.seed))
        from_start = [run for run in runs if not self.terms.pools_differently(run.name)]
        if self.start:
            before = {**self.start, **(self._dev_before(from_start[0]) if from_start else {})}
            return [Row.of(START, "", [before]), *self._rows_of(runs, dict.fromkeys(self.terms.seeds, before))]
        rows = []
        for source, record_type in dict.fromkeys((run.data.source, run.data.record_type) for run in runs):
            same = [run for run in runs if (run.data.source, run.data.record_type) == (source, record_type)]
            starts = self._before([run for run in from_start if run in same], same)
            different = list({repr(found): found for found in starts.values()}.values())
            rows += [Row.of(START, Path(source).name, different), *self._rows_of(same, starts)]
        return rows

    def _before(self, runs: Sequence[Judgement], same: Sequence[Judgement] = ()) -> dict[int, dict[str, float]]:
        """What the start measures, by seed: before the first step all methods are one, but for their own tasks.

        On the common held-out set the start is one for all rows, however they are read out.
        """
        shown = {name for run in self.runs for name in run.measures}
        found: dict[int, dict[str, float]] = {}
        for run in runs:
            own = {name: value for name, value in run.before.items() if name in shown}
            found[run.seed] = {**found.get(run.seed, {}), **own, **self._dev_before(run)}
        for run in same:
            common = {COMMON: run.before[COMMON]} if COMMON in run.before else {}
            if common or run.seed in found:
                found[run.seed] = {**found.get(run.seed, {}), **common}
        return found

    def _dev_before(self, run: Judgement) -> dict[str, float]:
        """What the eval data say before the first step, where there are eval data."""
        known = DEV.items() if self.terms.eval_data else ()
        return {name: run.before[own] for own, name in known if own in run.before}

    def _rows_of(self, runs: Sequence[Judgement], before: Mapping[int, Mapping[str, float]]) -> list[Row]:
        of = {name: [run for run in runs if run.name == name] for name in self.names}
        return [
            Row.of(
                name,
                Path(own[0].data.source).name,
                [run.measures for run in own],
                [before.get(run.seed, {}) for run in own],
            )
            for name, own in of.items()
            if own
        ]

    def spread(self) -> list[Spread]:
        """Measure by measure, each method over its seeds and against the first one; of few seeds, nothing."""
        if len(self.terms.seeds) < FEWEST or not self.names:
            return []
        first = self.names[0]
        found = []
        for measure in self.columns:
            if not is_ranked(measure):
                continue
            values = {name: self._by_seed(name, measure) for name in self.names}
            found += [
                Spread.of(measure, name, own, values[first] or None if name != first else None)
                for name, own in values.items()
                if own
            ]
        return found

    def _by_seed(self, name: str, measure: str) -> dict[int, float]:
        return {run.seed: run.measures[measure] for run in self.runs if run.name == name and measure in run.measures}

    def verdicts(self) -> list[str]:
        """Is each method another than the first, by the first measure that ranks them? Of two seeds, nothing."""
        measure = next((column for column in self.columns if is_ranked(column)), None)
        if measure is None or not self.names or (measure in OF_EACH_TEXT and len(self._texts()) > 1):
            return []
        return against_first({name: self._by_seed(name, measure) for name in self.names}, *head_of(measure))

    def notes(self) -> list[str]:
        """Verdicts, the terms, what single methods had of their own, and which runs are missing, a sentence each."""
        failed = [f"{one.name}, seed {one.seed}, failed: {one.sentence}" for one in self.failures]
        gains = (spoken_gain(run.name, run.seed, run.measures, run.before) for run in self.runs)
        texts = self._texts()
        text = [f"Trained on {Path(texts[0]).name}."] if len(texts) == 1 else []
        return [*self.verdicts(), *self.terms.sentences(), *text, *(gain for gain in gains if gain), *failed]

    def _texts(self) -> list[str]:
        return list(dict.fromkeys(run.data.source for run in self.runs))

    def table(self) -> str:
        """For a person at a terminal: the tables, the notes, and what the runs warned of."""
        return plain_text(self._tables(), [*self.notes(), *said_once(self.runs)])

    def markdown(self) -> str:
        """For a docs page."""
        return markdown_text(self._tables({name: f"`{name}`" for name in self.names}), self.notes())

    def _main_table(self, names: Mapping[str, str]) -> TextTable:
        """A line a row; next to the first measure that methods are ranked by stands the gain over the start."""
        rows, columns = self.rows(), self.columns
        main = next((column for column in columns if any(column in row.gains for row in rows)), None)
        lines = [row.cells(columns) for row in rows]
        heads = [head_of(column)[0] for column in columns]
        if main is not None:
            place = columns.index(main) + 1
            heads.insert(place, "from start")
            for row, line in zip(rows, lines, strict=True):
                line.insert(place, row.gain(main))
        texts = len(self._texts()) > 1  # one text for all needs no column
        named = [
            [names.get(row.name, row.name), *([row.text] if texts else []), *line]
            for row, line in zip(rows, lines, strict=True)
        ]
        return TextTable(["method", *(["text"] if texts else []), *heads], named, words=2 if texts else 1)

    def _tables(self, names: Mapping[str, str] | None = None) -> list[TextTable]:
        """The rows under their heads and, of many seeds, the spread. ``names``: how labels are written."""
        tables = [self._main_table(names or {})]
        if spreads := self.spread():
            paired = f"from {self.names[0]}, seed by seed"
            heads = ["measure", "method", "seeds", "median", "least – most", "mean (95 % interval)", paired]
            cells = [spread.cells(*head_of(spread.measure)) for spread in spreads]
            tables.append(TextTable(heads, cells, words=len(heads)))
        return tables

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: what comparison.json holds. ``table`` and ``folders`` are for the report."""
        main = self._main_table({})
        return {
            "folder": str(self.folder) if self.folder else None,
            "rows": [row.to_json() for row in self.rows()],
            "spread": [asdict(one) for one in self.spread()],
            "table": {"heads": main.heads, "rows": main.rows, "notes": self.notes()},
            "folders": {name: [f"{folder_name(name)}-seed-{seed}" for seed in self.terms.seeds] for name in self.names},
            "terms": self.terms.to_json(),
            "names": self.names,
            "start": self.start,
            "runs": [run.to_json() for run in self.runs],
            "failures": [asdict(failure) for failure in self.failures],
        }

    def write(self) -> None:
        """comparison.json in the comparison's folder."""
        if self.folder is not None:
            write_json(self.folder / FILE, self.to_dict())

    def write_markdown(self, path: str | os.PathLike[str]) -> None:
        with written_file(path) as temporary:
            temporary.write_text(self.markdown(), encoding="utf-8")
