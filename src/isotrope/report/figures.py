"""The figures of a report, by name."""

from __future__ import annotations

from collections.abc import Callable

from isotrope.report.figure_parts import Figure
from isotrope.report.findings import Findings
from isotrope.report.plane_figures import plane
from isotrope.report.read_out_figures import read_out
from isotrope.report.score_figures import scores, training
from isotrope.report.space_figures import density, layers, sentence_map, spectrum

FIGURES: dict[str, Callable[[Findings], Figure | None]] = {
    "scores": scores,
    "plane": plane,
    "training": training,
    "spectrum": spectrum,
    "layers": layers,
    "read-out": read_out,
    "density": density,
    "map": sentence_map,
}


def draw_all(findings: Findings) -> dict[str, Figure]:
    """Every figure that there are values for."""
    made = {name: make(findings) for name, make in FIGURES.items()}
    return {name: figure for name, figure in made.items() if figure is not None}
