"""Vectors of entities from a text file, as Wikipedia2Vec and word2vec write them; vector_files.py has the format."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from isotrope.data.packed_streams import unpacking
from isotrope.data.tables import check_file
from isotrope.data.vector_files import Row, parse_numbers, rows_of
from isotrope.errors import InputError

ENTITY = "ENTITY/"  # how Wikipedia2Vec marks entities


def read_vectors(path: str | os.PathLike[str], names: Sequence[str]) -> dict[int, npt.NDArray[np.float32]]:
    """The vectors of those ``names`` that the file holds, by their place in ``names``.

    Names may have _ for blanks.
    """
    source = check_file(path)
    places = {name: number for number, name in enumerate(names)}
    found: dict[int, Row] = {}
    with unpacking(source):
        for row in rows_of(source):
            name = row.word.removeprefix(ENTITY)
            place = places.get(name, places.get(name.replace("_", " ")))
            if place is not None:
                found[place] = row
    if not found:
        raise InputError(
            f"{source}: no vector of any of the {len(names):,} entities; names must be written as in the data."
        )
    return dict(zip(found, parse_numbers(list(found.values()), source), strict=True))
