"""Turns of a dialogue: a few that follow each other, and a wrong order of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError

MISORDERS = ("shuffle", "swap")
Order = npt.NDArray[np.int64]


def draw_window(turns: Sequence[Hashable], size: int, fixed: int, rng: np.random.Generator) -> range:
    """``size`` consecutive turns (all, where there are fewer), with at least two different ones behind the first
    ``fixed``.

    The first and the last turn of a dialogue are left out where it is long enough: a greeting reveals its place.
    """
    size = min(size, len(turns))
    inner = range(1, len(turns) - size) if len(turns) >= size + 2 else range(0)
    for starts in (inner, range(len(turns) - size + 1)):
        fitting = [start for start in starts if len(set(turns[start + fixed : start + size])) > 1]
        if fitting:
            start = fitting[rng.integers(len(fitting))]
            return range(start, start + size)
    raise InputError(
        f"A dialogue of {len(turns)} turns holds no {size} in a row that read differently in another order."
    )


def misorder(
    turns: Sequence[Hashable], rng: np.random.Generator, how: str = "shuffle", keep_speakers: bool = True
) -> Order:
    """A wrong order: what stands at place i comes from place order[i], and the turns never read as before.

    ``how``: "shuffle" (any other order) or "swap" (two neighbours change places: harder to notice). With
    ``keep_speakers`` turns change places only with those of the same speaker, every second one; where that changes
    nothing, as with two turns, with any.
    """
    everybody = np.arange(len(turns))
    for groups in ([everybody[::2], everybody[1::2]], [everybody]) if keep_speakers else ([everybody],):
        mixed = [group for group in groups if len({turns[i] for i in group}) > 1]
        if mixed:
            return _swap(turns, mixed, rng) if how == "swap" else _shuffle(turns, mixed, rng)
    raise InputError(f"{len(turns)} turns that are all the same have no wrong order.")


def _swap(turns: Sequence[Hashable], groups: list[Order], rng: np.random.Generator) -> Order:
    pairs = [pair for group in groups for pair in pairwise(group.tolist()) if turns[pair[0]] != turns[pair[1]]]
    first, second = pairs[rng.integers(len(pairs))]
    order = np.arange(len(turns))
    order[[first, second]] = second, first
    return order


def _shuffle(turns: Sequence[Hashable], groups: list[Order], rng: np.random.Generator) -> Order:
    order = np.arange(len(turns))
    while all(turns[place] == turns[source] for place, source in enumerate(order.tolist())):
        for group in groups:
            order[group] = rng.permutation(group)
    return order
