"""A comparison as the report shows it: its table, and where every run lies on the plane. Read from comparison.json."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from isotrope.errors import InputError
from isotrope.report.figure_parts import Panel, Series, Style, Trail

FILE = "comparison.json"


@dataclass(frozen=True)
class Place:
    """Where a run lies: what the judge of the comparison measured."""

    seed: int
    alignment: float
    uniformity: float


@dataclass(frozen=True)
class Compared:
    """``rows`` are cells under ``heads``; ``places`` goes from a row's label to a place a seed."""

    heads: list[str]
    rows: list[list[str]]
    notes: list[str]
    places: dict[str, list[Place]]


def is_comparison(folder: Path) -> bool:
    return (folder / FILE).is_file()


def read_compared(folder: Path) -> tuple[Compared, dict[str, Path]]:
    """The table, and of each of its rows the folder of the first run that has a model."""
    file = folder / FILE
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        table, places = kept["table"], {name: _places(name, kept["runs"]) for name in kept["names"]}
        found = Compared(table["heads"], table["rows"], table["notes"], {k: v for k, v in places.items() if v})
        runs = {name: _first(folder, kept["folders"].get(name, [])) for name in kept["names"]}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file}: this is not what `isotrope compare` writes now; call it once more, which makes no run again."
        ) from error
    there = {name: place for name, place in runs.items() if place is not None}
    if not there:
        raise InputError(f"{folder}: no run of this comparison has ended yet.")
    return found, there


def compared_section(found: Compared | None) -> str:
    """The table with its notes, as HTML."""
    if found is None:
        return ""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in found.heads)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in found.rows)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in found.notes)
    return (
        f'<section id="compared"><h2>The comparison</h2><div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>{notes}</section>"
    )


def compared_panel(found: Compared, looks: dict[str, Style]) -> Panel | None:
    """A mark for the mean of each row and a dot for each of its seeds; None where the judge has no plane."""
    series = [_series(name, places, looks[name]) for name, places in found.places.items() if name in looks]
    return Panel("All runs of the comparison", series, "As its judge measured them; a dot a seed.") if series else None


def _series(name: str, places: Sequence[Place], style: Style) -> Series:
    x, y = [one.uniformity for one in places], [one.alignment for one in places]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    hover = [_said(f"{name}, seed {one.seed}", one.uniformity, one.alignment) for one in places]
    dots = Trail(x, y, hover, loose=True) if len(places) > 1 else None
    return Series(name, style, [mean_x], [mean_y], hover=[_said(name, mean_x, mean_y)], trail=dots)


def _said(name: str, uniformity: float, alignment: float) -> str:
    return f"{name}\nuniformity {uniformity:.3f}, alignment {alignment:.3f}"


def _places(name: str, runs: Sequence[dict[str, object]]) -> list[Place]:
    found = []
    for run in runs:
        measures = run["measures"]
        assert isinstance(measures, dict)
        alignment, uniformity = (_number(measures.get(measure)) for measure in ("alignment", "uniformity"))
        if run["name"] == name and math.isfinite(alignment) and math.isfinite(uniformity):
            found.append(Place(int(str(run["seed"])), alignment, uniformity))
    return sorted(found, key=lambda one: one.seed)


def _number(value: object) -> float:
    """What JSON has null for is not a number; the page has no place for it."""
    return float(value) if isinstance(value, int | float) else math.nan


def _first(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name / "model").is_dir()), None)
