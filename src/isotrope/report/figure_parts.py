"""A figure as values: panels of series on shared axes, in which colour. The page and matplotlib draw the same ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Style:
    """How a subject looks in every figure: a colour, a marker and a dash, so that print in grey is read too."""

    colour: str
    marker: str = "circle"
    dash: str = ""


@dataclass(frozen=True)
class Axis:
    label: str = ""
    scale: str | None = None  # "log"; None: linear
    integers: bool | None = None  # ticks at whole numbers only
    domain: list[float] | None = None  # the two ends; None: as the values lie
    categories: list[str] | None = None  # a row each, in place of numbers
    highest: float | None = None  # of all ridges, so that they share a scale


@dataclass(frozen=True)
class Trail:
    """Checkpoints on the way to a point, or, where they are ``loose``, dots around it that no line joins."""

    x: list[float]
    y: list[float]
    hover: list[str]
    loose: bool = False


@dataclass(frozen=True)
class Series:
    """Marks that belong together. What a chart does not need stays None and is not in the JSON."""

    name: str
    style: Style
    x: list[float]
    y: list[float] | None = None
    hover: list[str] | None = None  # what is shown when a mark is pointed at
    low: list[float | None] | None = None  # ends of the intervals
    high: list[float | None] | None = None
    dots: bool | None = None  # lines: a mark at each value
    chosen: int | None = None  # lines: the place of the checkpoint that was kept
    trail: Trail | None = None
    median: float | None = None
    rows: list[int] | None = None  # map: which sentence each mark is

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        return _known({**found.pop("style"), **found})


@dataclass(frozen=True)
class Panel:
    title: str
    series: list[Series]
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """``chart``: "lines" | "plane" | "intervals" | "ridges" | "map"; each is drawn by a function of that name."""

    name: str
    title: str
    chart: str
    caption: str
    x: Axis
    y: Axis
    panels: list[Panel]

    def to_json(self) -> dict[str, Any]:
        """What ``draw.js`` reads."""
        return {
            **{name: getattr(self, name) for name in ("name", "title", "chart", "caption")},
            "x": _known(asdict(self.x)),
            "y": _known(asdict(self.y)),
            "panels": [
                {"title": panel.title, "note": panel.note, "series": [one.to_json() for one in panel.series]}
                for panel in self.panels
            ],
        }


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
