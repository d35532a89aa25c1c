"""Two towers for pairs as a capability: texts of the second role (answers, passages, next sentences) may have an
encoder of their own.

    score(a, b) = cos(f(a), g(b)),   g = f where towers are shared; g starts as a copy of f where they are separate

Use separate towers where the two sides differ in kind, such as questions and passages, and there is much text: each
learns from half of the gradients. SimCSE's authors found one encoder better for sentences (82.5 against 80.7). The
first tower is the model that training gives; the second is saved in the folder ``second`` inside it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from torch import Tensor

from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.settings import OneOf, Settings
from isotrope.tokens.padded import Tokens
from isotrope.towers.keeping import Tower, Trained

SHARED, SEPARATE = "shared", "separate"
SECOND, SECOND_HEAD = "second", "second_head"


@dataclass(frozen=True)
class TowerSettings(Settings):
    """The papers share one encoder."""

    towers: Annotated[
        str,
        OneOf(SHARED, SEPARATE),
        "Encoder of the second texts of a pair: the same, or one of its own, which is saved in the folder second",
    ] = SHARED


def with_second(settings: TowerSettings, encoder: Encoder, towers: dict[str, Tower]) -> dict[str, Tower]:
    """For ``towers``: those given and, where they are separate, copies of the encoder and of its head."""
    if settings.towers == SHARED:
        return towers
    head = towers.get("head")
    heads: dict[str, Tower] = {SECOND_HEAD: copy.deepcopy(head)} if head is not None else {}
    return {**towers, SECOND: Trained(copy.deepcopy(encoder)), **heads}


def second_encoder(method: Method[Any]) -> Encoder | None:
    """The second tower, None where there is one for both."""
    return method.encoder_of(SECOND) if SECOND in method.tower else None


def embed_pairs(method: Method[Any], first: Tokens, second: Sequence[Tokens]) -> tuple[Tensor, ...]:
    """For ``represent``: vectors of the first texts and of each view of the second ones, each by its tower."""
    other = second_encoder(method)
    if other is None:
        return method.encoder.embed(first, *second)
    return (*method.encoder.embed(first), *other.embed(*second))
