"""What `isotrope train head` takes, and its card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import Settings, above, at_least

HEAD = "head"
CARD = Card(
    name=HEAD,
    title="A linear classifier on frozen vectors",
    paper="Guo, Pleiss, Sun, Weinberger. On Calibration of Modern Neural Networks. ICML 2017 (its temperature)",
    year=2017,
    needs="labelled",
    family="supervised",
    kind="head",
)


@dataclass(frozen=True)
class HeadSettings(Settings):
    """None of them is a paper's."""

    multi_label: Annotated[bool, "A text may have several labels, joined by a bar: sport|music; or none"] = False
    strength: Annotated[float | None, above(0), "C, the inverse of the penalty; none: by cross-validation"] = None
    balanced: Annotated[bool, "Count each class the same, however many texts it has"] = False
    seed: Annotated[int, at_least(0, most=(1 << 32) - 1), "Random seed for the folds"] = 42
