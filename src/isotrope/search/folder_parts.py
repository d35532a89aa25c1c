"""The parts of an index in a folder that stand on all of its rows: which are deleted, the words, the codes.

Each is written under a name of its own before the manifest names it, so a reader never sees parts of two states.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.encoders.precision import SCALAR, quantize
from isotrope.files import written_file, written_folder
from isotrope.progress import bar
from isotrope.search.filter_masks import Mask
from isotrope.search.folder_engine import CODES, DELETED, RANGES, WHOLE, WORDS, FolderEngine
from isotrope.search.index_manifest import Manifest
from isotrope.search.passages import joined_passages
from isotrope.search.word_index import write_words
from isotrope.search.word_stems import stemming


def complete(folder: Path, manifest: Manifest, deleted: Mask | None) -> Manifest:
    """Write the parts that stand on all rows: which are deleted, the words, the codes."""
    parts: dict[str, Any] = {
        name: value for name, value in manifest.parts.items() if name not in (DELETED, WORDS, WHOLE, CODES, RANGES)
    }
    end = f"-{parts['generation']}"
    if deleted is not None and deleted.any():
        parts[DELETED] = f"{DELETED}{end}.npy"
        with written_file(folder / parts[DELETED]) as temporary, open(temporary, "wb") as target:
            np.save(target, deleted)
    engine = FolderEngine(folder, manifest.changed(parts=parts))
    live = engine.live
    worded = {WORDS: _live_texts(engine)}
    if engine.owners is not None:
        worded[WHOLE] = _whole_texts(engine, engine.owners)
    for part, texts in worded.items():
        parts[part] = f"{part}{end}"
        with bar("indexing words", None), written_folder(folder / parts[part]) as place:
            write_words(place, texts, stemming(manifest.stemmer))
    if manifest.precision != "float32":
        parts.update(_write_codes(folder, engine, end))
    flags = engine.rows.cut()
    cut = None if flags is None else int((flags & live).sum())
    return manifest.changed(parts=parts, rows=int(live.sum()), cut=cut)


def _live_texts(engine: FolderEngine) -> Iterator[str]:
    return (text for text, kept in zip(_texts(engine), engine.live, strict=True) if kept)


def _whole_texts(engine: FolderEngine, owners: npt.NDArray[np.int64]) -> Iterator[str]:
    """Of an index of passages; several columns put a title before each, and documents their headings."""
    manifest = engine.manifest
    titled = len(manifest.reading.columns or ()) > 1 or any(source.name for source in manifest.sources)
    for _, found in groupby(zip(owners.tolist(), _live_texts(engine), strict=True), key=itemgetter(0)):
        passages = [passage for _, passage in found]
        yield joined_passages(passages) if titled else " ".join(passages)


def _texts(engine: FolderEngine) -> Iterator[str]:
    for block in engine.rows.blocks:
        yield from block.table.column("text").to_pylist()
        block.release()


def _write_codes(folder: Path, engine: FolderEngine, end: str) -> dict[str, str]:
    """One file of codes, block by block; int8 takes the ranges of all rows."""
    parts, precision = {CODES: f"{CODES}{end}.npy"}, engine.manifest.precision
    ranges = None
    if precision in SCALAR:
        lows = [block.vectors.min(axis=0) for block in engine.rows.blocks]
        highs = [block.vectors.max(axis=0) for block in engine.rows.blocks]
        ranges = np.stack([np.min(lows, axis=0), np.max(highs, axis=0)]).astype(np.float32)
        parts[RANGES] = f"{RANGES}{end}.npy"
        with written_file(folder / parts[RANGES]) as temporary, open(temporary, "wb") as target:
            np.save(target, ranges)
    first = quantize(np.asarray(engine.rows.blocks[0].vectors[:1]), precision, ranges)
    with written_file(folder / parts[CODES]) as temporary:
        shape = (len(engine.rows), first.shape[1])
        codes = np.lib.format.open_memmap(temporary, mode="w+", dtype=first.dtype, shape=shape)
        start = 0
        for block in engine.rows.blocks:
            codes[start : start + len(block)] = quantize(np.asarray(block.vectors), precision, ranges)
            block.release()
            start += len(block)
        codes.flush()
        del codes
    return parts
