"""Colours, markers and dashes: which subject looks how, in every figure alike."""

from __future__ import annotations

from collections.abc import Iterable

from isotrope.report.figure_parts import Style
from isotrope.report.findings import SubjectCard

# Okabe and Ito's colours, which people with any colour vision can distinguish; yellow is left out, it does not show on
# white.
GREYS = ("#4d4d4d", "#999999")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GROUP_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7")
BIN_COLOURS = ("#3b2f6b", "#31688e", "#21918c", "#4fae5a", "#b5a100")  # dark to light, also in grey
MARKERS = ("circle", "square", "triangle", "diamond")
DASHES = ("", "7 3", "2 3", "8 3 2 3")


def styles(subjects: Iterable[SubjectCard]) -> dict[str, Style]:
    """The style of each subject, by name; starts are grey."""
    found: dict[str, Style] = {}
    starts = others = 0
    for subject in subjects:
        if subject.role == "start":
            look = starts // 2 % 4
            found[subject.name] = Style(GREYS[starts % len(GREYS)], MARKERS[look], DASHES[look])
            starts += 1
        else:
            look = (others + 1) % 4
            found[subject.name] = Style(COLOURS[others % len(COLOURS)], MARKERS[look], DASHES[look])
            others += 1
    return found
