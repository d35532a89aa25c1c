"""Vectors that are numbers: NaN and infinity are refused where vectors are made or taken in.

A NaN passes every comparison without a word: a search ranks the first lines, a mean over it is NaN, JSON cannot hold
it. Looked at on the host, where the vectors of a batch have arrived anyway, so no device waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError

SHOWN = 60  # characters of a text that the message repeats


def check_finite(texts: Sequence[str], vectors: npt.NDArray[Any]) -> None:
    """Refuse vectors of which one is NaN or infinite; row i is that of ``texts[i]``."""
    if np.isfinite(vectors).all():
        return
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=-1))
    raise InputError(
        f"The encoder gives NaN or infinite vectors for {len(broken):,} of {len(texts):,} texts, such as "
        f"{texts[broken[0]][:SHOWN]!r}; its weights are broken, or it ran over in half precision: load it in float32, "
        "or take an earlier checkpoint."
    )


def check_given(vectors: npt.NDArray[Any]) -> None:
    """The same for vectors that a caller brings."""
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=-1))
    if len(broken):
        raise InputError(
            f"{len(broken):,} of {len(vectors):,} vectors hold NaN or infinity, the first in row {broken[0]}; leave "
            "such rows out, or encode their texts again."
        )
