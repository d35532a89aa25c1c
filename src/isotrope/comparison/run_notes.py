"""What the runs of a comparison warned of, once for all seeds of a method."""

from __future__ import annotations

import re
from collections.abc import Iterable

from isotrope.comparison.judgement import Judgement

FIGURES = re.compile(r"[\d.,]+")


def said_once(runs: Iterable[Judgement]) -> list[str]:
    """Sentences of one method that differ in their figures alone are one, with the figures of the first."""
    said: dict[tuple[str, str], tuple[str, list[int]]] = {}
    for run in runs:
        for sentence in run.warnings:
            said.setdefault((run.name, FIGURES.sub("", sentence)), (sentence, []))[1].append(run.seed)
    return [
        f"{name}, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}: {sentence}"
        for (name, _), (sentence, seeds) in said.items()
    ]
