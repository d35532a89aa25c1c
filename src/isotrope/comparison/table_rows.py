"""The rows of a comparison's table: the values of each measure over the random seeds, and how they are shown."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isotrope.evaluation.transfer_tasks import TASKS

START = "start"
HEADS = {  # in the order of the table: head, digits
    "sts_average": ("STS average", 2),
    "sts_b": ("STS-B", 2),
    "transfer_average": ("transfer", 2),
    **{f"transfer_{task.lower()}": (task, 1) for task in TASKS},
    "retrieval_average": ("retrieval", 2),
    "answers_map": ("answers MAP", 2),
    "answers_mrr": ("answers MRR", 2),
    "answers_auc": ("answers AUC", 2),
    "clustering_average": ("clustering", 2),
    "clustering_v": ("V-measure", 2),
    "bitext_average": ("bitext", 2),
    "robustness_ranking": ("robustness", 2),
    "common_mrr": ("MRR of all rows", 2),
    "retrieval_mrr": ("MRR", 3),
    "other_view": ("other half", 3),
    "dev_spearman": ("dev", 2),
    "dev_mrr": ("dev MRR", 2),
    "alignment": ("alignment", 3),
    "uniformity": ("uniformity", 3),
    "effective_rank": ("rank", 1),
    "steps": ("steps", 0),
    "seconds": ("seconds", 1),
}
AVERAGES = (
    "sts_average", "transfer_average", "retrieval_average", "answers_map",
    "clustering_average", "bitext_average", "robustness_ranking",
)  # fmt: skip
TASK_COLUMN = re.compile(
    f"transfer_({'|'.join(task.lower() for task in TASKS)})|retrieval_(.+)_ndcg|answers_(mrr|auc)"
    "|(?:clustering|bitext)_(?!average).+|robustness_.+_lost"
)
# no method is ranked by these
UNRANKED = (
    "common_gain_low",
    "common_gain_high",
    "alignment",
    "uniformity",
    "effective_rank",
    "steps",
    "seconds",
    "dev_spearman",
    "dev_mrr",
)


@dataclass(frozen=True)
class Row:
    """``measures``: the values of each measure, one a seed. ``text`` is the file that was trained on.

    ``gains``: how far each value lies from the start on the same judge, seed by seed.
    """

    name: str
    text: str
    measures: dict[str, list[float]]
    gains: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        name: str,
        text: str,
        measured: Sequence[Mapping[str, float]],
        before: Sequence[Mapping[str, float]] = (),
    ) -> Row:
        """``measured``: what each seed gave; ``before``: what the start has for it."""
        differences = [
            {column: value - start[column] for column, value in found.items() if column in start and is_ranked(column)}
            for found, start in zip(measured, before, strict=False)
        ]
        return cls(name, text, _columns(measured), _columns(differences))

    def cells(self, columns: Iterable[str]) -> list[str]:
        """Mean ± standard deviation of the sample; with one seed there is no deviation."""
        return [_cell(self.measures.get(column, []), head_of(column)[1]) for column in columns]

    def gain(self, column: str) -> str:
        """The difference from the start; the start itself has none."""
        return _cell(self.gains.get(column, []), head_of(column)[1], "+")

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "text": self.text,
            "measures": {name: _told(values) for name, values in self.measures.items()},
            "gains": {name: _told(values) for name, values in self.gains.items()},
        }


def is_ranked(column: str) -> bool:
    """Whether methods are ranked by it; what a guess would reach is no merit."""
    return column not in UNRANKED and not column.endswith("guess")


def _columns(measured: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    names = in_order(name for found in measured for name in found)
    return {name: [found[name] for found in measured if name in found] for name in names}


def _told(values: Sequence[float]) -> dict[str, Any]:
    return {"mean": statistics.fmean(values), "deviation": _deviation(values), "values": values}


def in_order(names: Iterable[str]) -> list[str]:
    """Those of the table as there, each retrieval set after their average, then methods' own as they come."""
    found = dict.fromkeys(names)
    sets = [name for name in found if _set_of(name)]
    known = [place for head in HEADS for place in ([head, *sets] if head == "retrieval_average" else [head])]
    return [*(name for name in known if name in found), *(name for name in found if name not in known)]


def shown(columns: Sequence[str]) -> list[str]:
    """Where several suites judge, each has its average; where one does, its tasks and sets as well."""
    if sum(name in columns for name in AVERAGES) < 2:
        return list(columns)
    return [name for name in columns if not TASK_COLUMN.fullmatch(name)]


def head_of(column: str) -> tuple[str, int]:
    """What stands over a column, and its digits; a method's own measures are shares, most of them."""
    if name := _set_of(column):
        return f"{name} nDCG", 2
    return HEADS.get(column, (column.replace("_", " "), 2 if TASK_COLUMN.fullmatch(column) else 4))


def _set_of(column: str) -> str | None:
    """The retrieval set of a column, if it is one."""
    found = TASK_COLUMN.fullmatch(column)
    return found[2] if found else None


def _cell(values: Sequence[float], digits: int, sign: str = "") -> str:
    if not values:
        return ""
    deviation = _deviation(values)
    return f"{statistics.fmean(values):{sign}.{digits}f}" + (
        f" ± {deviation:.{digits}f}" if deviation is not None else ""
    )


def _deviation(values: Sequence[float]) -> float | None:
    """Not a number where one of the values is none, such as the correlation of a collapsed encoder."""
    if not all(map(math.isfinite, values)):
        return math.nan
    return statistics.stdev(values) if len(values) > 1 else None
