"""Two views of a text, each edited by its own random draw: what SimCLR and MoCo compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.edits import Edit, Ids, parse_edits

NONE, SAME = "none", "same"


def parse_two_views(first: str, second: str = SAME) -> Callable[[TextTokenizer], tuple[Edit, Edit]]:
    """The edits of both views, for any tokenizer; ``parse_edits`` says how they are written.

    "none" leaves a text as it is. "same" gives the second view the edits of the first one with draws of its own, so
    that the two still differ.
    """
    one = _parse_view(first)
    other = None if second.strip().lower() == SAME else _parse_view(second)

    def bound(tokenizer: TextTokenizer) -> tuple[Edit, Edit]:
        edit = one(tokenizer)
        return edit, edit if other is None else other(tokenizer)

    return bound


def edited(sequences: Sequence[Ids], edit: Edit, rng: np.random.Generator) -> list[Ids]:
    """Every text edited, one after another."""
    return [edit(sequence, rng) for sequence in sequences]


def _parse_view(text: str) -> Callable[[TextTokenizer], Edit]:
    return (lambda tokenizer: _unedited) if text.strip().lower() == NONE else parse_edits(text)


def _unedited(ids: Ids, rng: np.random.Generator) -> Ids:
    return ids
