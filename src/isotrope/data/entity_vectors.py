"""Vectors of entities from a text file: a name and its numbers a line, as Wikipedia2Vec and word2vec write them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from isotrope.data.tables import check_file, lines_of
from isotrope.errors import InputError

ENTITY = "ENTITY/"  # how Wikipedia2Vec marks entities


def read_vectors(path: str | os.PathLike[str], names: Sequence[str]) -> dict[int, npt.NDArray[np.float32]]:
    """The vectors of those ``names`` that the file holds, by their place in ``names``.

    Names may have _ for blanks. A first line with two counts is passed over.
    """
    source = check_file(path)
    places = {name: number for number, name in enumerate(names)}
    found: dict[int, npt.NDArray[np.float32]] = {}
    width = 0
    for line, text in lines_of(source):
        parts = text.split(" ")
        if line == 1 and len(parts) == 2:
            continue
        name = parts[0].removeprefix(ENTITY)
        place = places.get(name, places.get(name.replace("_", " ")))
        if place is None:
            continue
        try:
            vector = np.array([float(part) for part in parts[1:] if part], dtype=np.float32)
        except ValueError as error:
            raise InputError(f"{source}:{line}: a name and numbers were expected, with blanks between them.") from error
        width = width or len(vector)
        if not width or len(vector) != width or not np.isfinite(vector).all():
            raise InputError(f"{source}:{line}: {width} finite numbers were expected, {len(vector)} numbers found.")
        found[place] = vector
    if not found:
        raise InputError(
            f"{source}: no vector of any of the {len(names):,} entities; names must be written as in the data."
        )
    return found
