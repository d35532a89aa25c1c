"""Everything that the page shows, as values: what was measured of which subject. JSON only at the edge.

Mappings go from a subject's name to what was found of it, in the order of the page.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from isotrope.evaluation.geometry_description import TextGeometry
from isotrope.evaluation.geometry_pairs import PairGeometry
from isotrope.evaluation.layer_suite import LayerSweep
from isotrope.report.alarms import Alarm
from isotrope.report.compared import Compared
from isotrope.report.subjects import Checkpoint


@dataclass(frozen=True)
class SubjectCard:
    """Who a subject is, for the head of the page and for its foot. ``role``: "start" | "run" | "model"."""

    name: str
    role: str
    start: str | None = None  # the name of the model that a run began with
    method: str | None = None
    data: str | None = None
    selected_step: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    worth: dict[str, Any] = field(default_factory=dict)  # the final table of a run


@dataclass(frozen=True)
class TextFacts:
    """The text that the report is about; ``sample`` is how many sentences of it are shown."""

    name: str
    records: int
    duplicates: int
    sample: int
    seed: int


@dataclass(frozen=True)
class Score:
    """A value and its 95 % interval, where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ScoreRow:
    name: str
    values: dict[str, Score]  # by task


@dataclass(frozen=True)
class ScoreTable:
    """A row a subject. ``suite``: "sts" | "label-free"."""

    suite: str
    measure: str
    tasks: list[str]
    rows: list[ScoreRow]
    protocol: str

    @property
    def headline(self) -> str:
        """The task that stands for all."""
        return "average" if self.suite == "sts" else "MRR"

    def headlines(self) -> dict[str, float]:
        """The one number of each subject."""
        return {row.name: row.values[self.headline].value for row in self.rows}


@dataclass(frozen=True)
class Point:
    alignment: float
    uniformity: float


@dataclass(frozen=True)
class Plane:
    """Alignment and uniformity of every subject; ``of`` says on which pairs."""

    of: str
    points: dict[str, Point]


@dataclass(frozen=True)
class MapLayout:
    """The same sentences in every space: a place each, and the rows of the nearest others.

    ``groups`` holds the group of each sentence, by the space of the subject ``grouped_by``; ``names`` are the groups'.
    """

    texts: list[str]
    groups: list[int]
    names: list[str]
    grouped_by: str
    places: dict[str, list[list[float]]]
    near: dict[str, list[list[int]]]


@dataclass(frozen=True)
class Neighbour:
    text: str
    cosine: float


@dataclass(frozen=True)
class Neighbourhood:
    """The sentences nearest to a query in every space, the nearest first."""

    query: str
    columns: dict[str, list[Neighbour]]


@dataclass(frozen=True)
class Findings:
    """What figures and page are made of. ``plane`` is by what it was taken on: "text" | "sts" | "eval"."""

    subjects: list[SubjectCard]
    text: TextFacts
    scores: ScoreTable | None
    plane: dict[str, Plane]
    trails: dict[str, list[Checkpoint]]
    geometry: dict[str, TextGeometry]
    pairs: dict[str, PairGeometry]
    read_outs: dict[str, LayerSweep]
    map: MapLayout
    neighbours: list[Neighbourhood]
    warnings: list[Alarm]
    leaks_looked_for: bool
    remarks: list[str]
    compared: Compared | None = None  # where a comparison is reported on

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "subjects": [asdict(card) for card in self.subjects],
            "text": asdict(self.text),
            "scores": None if self.scores is None else asdict(self.scores),
            "plane": {name: asdict(plane) for name, plane in self.plane.items()},
            "trails": {name: [one.to_json() for one in trail] for name, trail in self.trails.items()},
            "geometry": {name: asdict(shape) for name, shape in self.geometry.items()},
            "pairs": {name: asdict(shape) for name, shape in self.pairs.items()},
            "read_outs": {name: sweep.to_dict() for name, sweep in self.read_outs.items()},
            "map": asdict(self.map),
            "neighbours": [asdict(one) for one in self.neighbours],
            "warnings": [asdict(one) for one in self.warnings],
            "leaks_looked_for": self.leaks_looked_for,
            "remarks": self.remarks,
            **({} if self.compared is None else {"compared": asdict(self.compared)}),
        }
