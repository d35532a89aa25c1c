"""Vectors on their way out: looked at, cut to the dimensions asked for, scaled, and written as numbers or base64."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from isotrope.serving.refusals import Refusal

Floats = npt.NDArray[np.float32]
DECIMALS = 9  # float32 has no more below 1
AT_ONCE = 16  # vectors written before others get their turn


def checked(vectors: Sequence[Floats], dimensions: int, normalize: bool) -> Floats:
    """[texts, dimensions], each finite and not zero, or a refusal that names the text."""
    found = np.stack(vectors)[:, :dimensions].astype(np.float32)
    broken = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(broken):
        raise Refusal(503, f"The model gives NaN or infinity for item {broken[0]}; its weights are broken.")
    lengths = np.linalg.norm(found.astype(np.float64), axis=1)
    empty = np.flatnonzero(lengths < 1e-12)
    if len(empty):
        raise Refusal(
            422, f"Item {empty[0]} has no word that the model knows: its vector would be zero; leave it out.", "input"
        )
    return (found / lengths[:, None]).astype(np.float32) if normalize else found


def as_base64(vector: Floats) -> str:
    """Little-endian float32, as OpenAI's clients ask for by default."""
    return json.dumps(base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii"))


def as_numbers(vector: Floats) -> str:
    return json.dumps(vector.astype(np.float64).round(DECIMALS).tolist(), separators=(",", ":"))


async def written(vectors: Floats, encoding: str = "float") -> list[str]:
    """The JSON of each vector; between some of them the loop answers others."""
    write = as_base64 if encoding == "base64" else as_numbers
    rows = []
    for number, vector in enumerate(vectors):
        rows.append(write(vector))
        if number % AT_ONCE == AT_ONCE - 1:
            await asyncio.sleep(0)
    return rows
