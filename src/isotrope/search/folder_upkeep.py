"""The folder of an index: one writer at a time, nothing of others in it, no left-overs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from isotrope.errors import InputError
from isotrope.files import explained, names_in
from isotrope.locks import FolderLock
from isotrope.search.folder_engine import BLOCKS, CODES, DELETED, RANGES, WHOLE, WORDS
from isotrope.search.index_manifest import Manifest
from isotrope.search.index_place import BUILDING, MANIFEST

OURS = (MANIFEST, BUILDING, BLOCKS, WORDS, WHOLE, CODES, RANGES, DELETED)


def check_free(folder: Path) -> None:
    """Refuse a place that holds something else."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: a file stands where the index should be; choose another output.", "output")
    for name in sorted(names_in(folder)):
        if name.split("-")[0].split(".npy")[0] not in OURS:
            raise InputError(f"{folder}: the folder holds something else ({name}); choose a new folder.", "output")


def sweep(folder: Path, manifest: Manifest) -> None:
    """Remove the parts that the manifest does not name; who reads them goes on reading."""
    named = {str(value) for value in manifest.parts.values() if isinstance(value, str)}
    for name in names_in(folder) - named - {MANIFEST, BUILDING, BLOCKS}:
        if name.split("-")[0] in OURS:
            _remove(folder / name)
    blocks = {name for name, _ in manifest.parts[BLOCKS]}
    for name in names_in(folder / BLOCKS) - blocks:
        _remove(folder / BLOCKS / name)


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """One process at a time. Where nothing was built, nothing stays: neither the folder nor those made above it."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FolderLock(folder)
        lock.take()
    try:
        yield
    finally:
        lock.release()
        if not names_in(folder / BLOCKS) and names_in(folder) <= {BUILDING, BLOCKS}:
            (folder / BUILDING).unlink(missing_ok=True)
            for place in (folder / BLOCKS, *made):
                with suppress(OSError):  # somebody else came into it
                    place.rmdir()
