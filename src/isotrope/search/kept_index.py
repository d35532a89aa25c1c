"""The index that ``isotrope search MODEL TEXT QUERY`` keeps: one for each model and choice of columns and
passages.

It lies next to the text, in NAME.isotrope, or in the user's cache where that folder cannot be written. A text that has
changed is indexed again, and only its new lines are encoded.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isotrope.data.tables import check_source
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest
from isotrope.locks import wait_until_free
from isotrope.search.folder_building import build_folder
from isotrope.search.folder_engine import FolderEngine
from isotrope.search.index_manifest import Manifest, read_manifest
from isotrope.search.index_place import MANIFEST
from isotrope.search.index_request import Wanted
from isotrope.search.index_rows import Reading, Scanned, fitting_reading, named_below, scan
from isotrope.search.opened_index import SearchIndex
from isotrope.search.part_sums import check_parts
from isotrope.search.vector_maker import VectorMaker

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

SUFFIX = ".isotrope"


def kept_index(
    encoder: Encoder,
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    keep: bool = True,
    passages: int | None = None,
) -> SearchIndex:
    """The index of a file under an encoder, brought up to date. ``keep=False`` leaves the other columns out."""
    source = check_source(path)
    asked = Reading(None if columns is None else tuple(columns), None if keep else (), passages=passages)
    reading = fitting_reading([source], asked)
    maker = VectorMaker(encoder)
    name = digest(maker.facts.fingerprint, str(reading))
    problem: Exception | None = None
    scanned: Scanned | None = None
    for folder in _places(source, name):
        found = _whole(folder)
        if (
            found is None
            or found.reading != reading
            or Path(found.sources[0].path).resolve() != source.resolve()
            or any(one.changed() for one in found.sources)
        ):
            scanned = scanned or scan([source], reading)
            try:
                _make(folder, Wanted(maker, scanned, action="new" if found is None else "update"))
            except (InputError, OSError) as error:  # the folder cannot be written
                problem = error
                if isinstance(error, InputError) and "Cannot write" not in str(error):
                    raise
                continue
        engine = FolderEngine(folder)
        engine.manifest = engine.manifest.changed(sources=named_below(engine.manifest.sources, source))
        return SearchIndex(str(folder), engine, encoder)
    assert problem is not None
    raise problem


def _make(folder: Path, wanted: Wanted) -> None:
    wait_until_free(folder)
    build_folder(folder, wanted, discard=True)


def _whole(folder: Path) -> Manifest | None:
    """The manifest of an index that can be read; what is damaged is made again."""
    if not (folder / MANIFEST).is_file():
        return None
    try:
        found = read_manifest(folder)
        check_parts(folder, found.sums)
        engine = FolderEngine(folder, found)
        for block in engine.rows.blocks:
            alike = len(block.vectors) == block.table.num_rows and block.vectors.shape[1] == found.dimension
            if not alike or not np.isfinite(block.vectors).all():
                raise InputError("damaged")
        _ = engine.words
    except InputError:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return found


def _places(source: Path, name: str) -> list[Path]:
    whole = source.resolve() if source.name in ("", "..") else source  # "." and ".." have no name of their own
    return [
        whole.with_name(whole.name + SUFFIX) / name,
        cache_folder() / "indexes" / digest(str(source.resolve())) / name,
    ]
