"""The plane of a run's checkpoints: alignment and uniformity at every evaluation, from the run's own log.

On its held-out text ("text") they are of natural pairs. On scored pairs ("eval", where the run had eval_data) they are
SimCSE's: alignment of the pairs that people find alike, uniformity of all sentences. Nothing is encoded again, so the
checkpoints need not have been kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from isotrope.report.findings import Plane, Point, SubjectCard
from isotrope.report.subjects import Checkpoint, Subject

LOGGED = {"text": ("alignment", "uniformity"), "eval": ("eval_alignment", "eval_uniformity")}


def logged_points(trail: Sequence[Checkpoint], where: str) -> dict[int, Point]:
    """The place at each step, for the checkpoints that have one."""
    names = LOGGED.get(where)
    if names is None:
        return {}
    known = [one for one in trail if set(names) <= set(one.measures)]
    return {one.step: Point(*(one.measures[name] for name in names)) for one in known}


def eval_plane(runs: Sequence[Subject], cards: Mapping[str, SubjectCard]) -> dict[str, Plane]:
    """Where each run's kept checkpoint lies on its scored pairs; empty where no run had any."""
    points, files = {}, {}
    for run in runs:
        steps = logged_points(run.trail, "eval")
        if steps:
            kept = cards[run.name].selected_step
            points[run.name] = steps[kept if kept in steps else max(steps)]
            files[run.name] = ", ".join(Path(str(file)).name for file in run.facts.get("eval_data", ()))
    if not points:
        return {}
    said = "pairs above four fifths of the highest score, from the runs' logs"
    if len(set(files.values())) == 1:
        return {"eval": Plane(f"{next(iter(files.values()))}; {said}", points)}
    each = ", ".join(f"{name} on {file}" for name, file in files.items())
    return {"eval": Plane(f"{said}. The runs were judged on different files: {each}", points)}
