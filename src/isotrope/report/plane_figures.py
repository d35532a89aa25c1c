"""The figure of alignment and uniformity, every checkpoint of a run as a trail, and its table."""

from __future__ import annotations

from isotrope.report.checkpoint_planes import LOGGED, logged_points
from isotrope.report.compared import compared_panel
from isotrope.report.figure_parts import Axis, Figure, Panel, Series, Trail
from isotrope.report.findings import Findings, Plane, Point
from isotrope.report.subject_styles import styles

PLACES = {"text": "On your text", "sts": "On STS-B", "eval": "On the scored pairs of the runs"}


def plane(findings: Findings) -> Figure | None:
    """Every subject, and every checkpoint of a run as a trail."""
    if not findings.plane:
        return None
    compared = findings.compared
    together = compared_panel(compared, styles(findings.subjects)) if compared is not None else None
    return Figure(
        name="plane",
        title="Alignment and uniformity",
        chart="plane",
        caption="Left is more spread out, down is positives closer together: the lower left corner is the place to be. "
        "Small dots are checkpoints in the order of their steps, the large mark is the model that was kept.",
        x=Axis("uniformity (lower: more spread out)"),
        y=Axis("alignment (lower: positives closer)"),
        panels=[
            *(_plane_panel(findings, where, found) for where, found in findings.plane.items()),
            *([together] if together is not None else []),
        ],
    )


def _plane_panel(findings: Findings, where: str, found: Plane) -> Panel:
    style = styles(findings.subjects)
    series = [
        Series(
            name=name,
            style=style[name],
            x=[point.uniformity],
            y=[point.alignment],
            hover=[_placed(name, point)],
            trail=_trail(name, logged_points(findings.trails.get(name, []), where)),
        )
        for name, point in found.points.items()
    ]
    return Panel(PLACES[where], series, found.of)


def _trail(name: str, points: dict[int, Point]) -> Trail | None:
    if not points:
        return None
    return Trail(
        x=[point.uniformity for point in points.values()],
        y=[point.alignment for point in points.values()],
        hover=[_placed(f"{name}, step {step}", point) for step, point in points.items()],
    )


def checkpoint_table(findings: Findings) -> list[tuple[str, ...]]:
    """Run, step, uniformity, alignment and Spearman of every checkpoint, a title first; the kept one has a star.

    On scored pairs where a run had some, else on its held-out text.
    """
    where = "eval" if "eval" in findings.plane else "text"
    kept = {card.name: card.selected_step for card in findings.subjects}
    rows: list[tuple[str, ...]] = []
    for name, trail in findings.trails.items():
        ranked = {one.step: one.measures.get("spearman") for one in trail}
        for step, point in logged_points(trail, where).items():
            star, score = " *" * (step == kept.get(name)), ranked[step]
            numbers = (f"{point.uniformity:.3f}", f"{point.alignment:.3f}", "" if score is None else f"{score:.2f}")
            rows.append((name, f"{step}{star}", *numbers))
    return [("run", "step (* kept)", *reversed(LOGGED[where]), "spearman"), *rows] if rows else []


def _placed(name: str, point: Point) -> str:
    return f"{name}\nuniformity {point.uniformity:.3f}, alignment {point.alignment:.3f}"
