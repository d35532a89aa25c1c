"""Build or change an index in a folder. A killed build goes on after its last whole block; the index that was there
stays as it was until the new one is whole.

    building.json      what is being built, and the number of its first block
    blocks/0000001     each written whole
    index.json         written last: from then on the new rows are the index
"""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.encoders.precision import SCALAR, quantize
from isotrope.errors import InputError
from isotrope.files import digest, names_in, write_json, written_file, written_folder
from isotrope.locks import FolderLock
from isotrope.progress import bar, say
from isotrope.search.column_kinds import agreed
from isotrope.search.filter_masks import Mask
from isotrope.search.folder_engine import BLOCKS, CODES, DELETED, RANGES, WORDS, FolderEngine
from isotrope.search.index_manifest import Manifest, read_manifest, write_manifest
from isotrope.search.index_place import BUILDING, MANIFEST
from isotrope.search.index_report import Cost
from isotrope.search.index_rows import IndexRow, Scanned
from isotrope.search.known_vectors import KnownVectors
from isotrope.search.recall_probe import TOP, Probes, probe_texts
from isotrope.search.row_blocks import ROWS, BlockedRows, RowBlock, write_block
from isotrope.search.row_filter import read_filter
from isotrope.search.vector_maker import VectorMaker
from isotrope.search.word_index import write_words

Floats = npt.NDArray[np.float32]
OURS = (MANIFEST, BUILDING, BLOCKS, WORDS, CODES, RANGES, DELETED)


@dataclass(frozen=True)
class Wanted:
    """What is to be in the index. ``action``: new, update (exactly these rows) or add (these rows too)."""

    maker: VectorMaker
    scanned: Scanned
    precision: str = "float32"
    action: str = "new"

    def name(self, generation: int) -> str:
        """The same for the same request over the same index."""
        facts = {
            "action": self.action,
            "model": self.maker.facts.fingerprint,
            "dimension": self.maker.dimension,
            "precision": self.precision,
            "reading": asdict(self.scanned.reading),
            "sources": [(source.path, source.digest) for source in self.scanned.sources],
            "over": generation,
        }
        return digest(json.dumps(facts, sort_keys=True))


@dataclass
class Changed:
    """What a build or a deletion did."""

    manifest: Manifest
    encoded: int = 0
    reused: int = 0
    replaced: int = 0
    deleted: int = 0
    costs: tuple[Cost, ...] = ()


def build_folder(folder: Path, wanted: Wanted, discard: bool = False) -> Changed:
    """Build, update or add to an index. ``discard``: begin again where another request was left half-done."""
    check_free(folder)
    with _working_in(folder):
        old = read_manifest(folder) if (folder / MANIFEST).is_file() else None
        check_change(str(folder), old, wanted)
        return _Build(folder, wanted, old, discard).run()


def check_free(folder: Path) -> None:
    """Refuse a place that holds something else."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: a file stands where the index should be; choose another output.", "output")
    for name in sorted(names_in(folder)):
        if name.split("-")[0].split(".npy")[0] not in OURS:
            raise InputError(f"{folder}: the folder holds something else ({name}); choose a new folder.", "output")


def check_change(where: str, old: Manifest | None, wanted: Wanted) -> None:
    """Refuse what does not fit the index that is there."""
    if old is None:
        if wanted.action != "new":
            raise InputError(f"{where}: no index is here to {wanted.action}; leave {wanted.action} out to build one.")
        return
    old.check_model(wanted.maker.facts.fingerprint, where)
    if (old.dimension, old.precision) != (wanted.maker.dimension, wanted.precision):
        raise InputError(
            f"{where}: the index keeps {old.dimension} dimensions in {old.precision}; it takes no others "
            f"({wanted.maker.dimension} in {wanted.precision} were asked for). Choose another output."
        )
    if wanted.action == "new" and not _same_text(old, wanted.scanned):
        raise InputError(
            f"{where}: an index of other text is here already; with update it becomes one of this text, with add these "
            "rows come to those that are there; or choose another output.",
            "update",
        )
    if wanted.action == "add" and old.reading.id_column != wanted.scanned.reading.id_column:
        raise InputError(
            f"{where}: rows of the index are named by {old.reading.id_column or 'no column'}; add rows with the same "
            "id_column.",
            "id_column",
        )


def _same_text(old: Manifest, scanned: Scanned) -> bool:
    known = [(source.digest, source.rows) for source in old.sources]
    given = [(source.digest, source.rows) for source in scanned.sources]
    return (known, old.reading) == (given, scanned.reading) and not old.parts.get(DELETED)


class _Build:
    def __init__(self, folder: Path, wanted: Wanted, old: Manifest | None, discard: bool) -> None:
        self.folder, self.wanted, self.old = folder, wanted, old
        self.before = None if old is None else FolderEngine(folder, old)
        self.generation = 0 if old is None else int(old.parts.get("generation", 0))
        kept = wanted.action == "add" and old is not None
        self.base: list[tuple[str, int]] = [tuple(pair) for pair in old.parts[BLOCKS]] if kept and old else []  # type: ignore[misc]
        self.base_rows = sum(rows for _, rows in self.base)
        self.base_sources = old.sources if kept and old is not None else ()
        scanned = wanted.scanned
        self.kinds = agreed(old.kinds, scanned.kinds, str(folder)) if kept and old is not None else scanned.kinds
        self.first = self._first_block(discard)

    def run(self) -> Changed:
        old, scanned = self.old, self.wanted.scanned
        if old is not None and self.wanted.action == "new":
            say(f"{self.folder}: the index is whole and of this text; nothing was done.")
            return Changed(old)
        done = self._blocks()
        rows = sum(count for _, count in done)
        if rows:
            say(f"{self.folder}: going on after {rows:,} rows that are there already.")
        changed = Changed(old) if old is not None else Changed(self._manifest([], None))
        changed.reused = rows
        self._encode(rows, changed)
        for source in scanned.sources:
            if source.changed():
                raise InputError(f"{source.path}: the file changed while it was indexed; run the command again.")
        self._finish(changed)
        return changed

    def _first_block(self, discard: bool) -> int:
        """Of a build that was begun and is the same; else the next number, which is put down."""
        file, name = self.folder / BUILDING, self.wanted.name(self.generation)
        try:
            begun = json.loads(file.read_text(encoding="utf-8"))
            if begun["request"] == name:
                return int(begun["first"])
        except (OSError, ValueError, KeyError, TypeError):
            begun = None
        if begun is not None and self.old is None and not discard:
            raise InputError(
                f"{self.folder}: a half-written index of another text, model or setting is here; finish it with the "
                "command that began it, or remove the folder."
            )
        listed = [int(name) for name in names_in(self.folder / BLOCKS) if name.isdigit()]
        first = max(listed, default=0) + 1
        if self.old is None or self.wanted.action != "new":
            write_json(file, {"request": name, "first": first})
        return first

    def _blocks(self) -> list[tuple[str, int]]:
        """The whole blocks of this build, in order."""
        found = []
        for number in itertools.count(self.first):
            folder = self.folder / BLOCKS / _named(number)
            if not folder.is_dir():
                return found
            found.append((folder.name, len(np.load(folder / "vectors.npy", mmap_mode="r"))))
        raise AssertionError

    def _encode(self, start: int, changed: Changed) -> None:
        scanned, maker = self.wanted.scanned, self.wanted.maker
        known = KnownVectors(self.before.rows if self.before is not None else None)
        probes = self._probes()
        number = self.first + -(-start // ROWS)
        with bar("indexing", len(scanned), start) as advance:
            rows = scanned.rows(start, self.kinds)
            try:
                while block := list(itertools.islice(rows, ROWS)):
                    self._write(number, start, block, known, probes, changed)
                    start, number = start + len(block), number + 1
                    advance(len(block))
            except KeyboardInterrupt as stop:
                raise KeyboardInterrupt(
                    f"stopped after {start:,} of {len(scanned):,} rows; the same command goes on from here"
                ) from stop
        if start != len(scanned):
            raise InputError(f"{scanned.sources[0].path}: the text changed while it was indexed; run the command again.")
        del maker

    def _write(
        self,
        number: int,
        start: int,
        block: list[IndexRow],
        known: KnownVectors,
        probes: Probes | None,
        changed: Changed,
    ) -> None:
        maker, texts = self.wanted.maker, [row.text for row in block]
        folder, found = self.folder / BLOCKS / _named(number), None
        if probes is not None:  # a new index: nothing is known
            whole = maker.documents(texts)
            vectors, new, found = maker.kept(whole), len(texts), probes.of_block(start, whole)
        else:
            vectors, new = known.vectors(texts, lambda some: maker.kept(maker.documents(some)))
        changed.encoded += new
        changed.reused += len(texts) - new
        write_block(folder, block, vectors, self.kinds, len(self.base_sources), found)

    def _probes(self) -> Probes | None:
        """Only where something is lost, and only of a new index: later rows are measured by nobody."""
        maker = self.wanted.maker
        if self.old is not None or (self.wanted.precision == "float32" and not maker.is_cut):
            return None
        return Probes(maker.documents(probe_texts(self.wanted.scanned)), len(self.wanted.scanned))

    def _manifest(self, blocks: list[tuple[str, int]], deleted: str | None) -> Manifest:
        maker, scanned = self.wanted.maker, self.wanted.scanned
        parts: dict[str, Any] = {"generation": self.generation + 1, BLOCKS: blocks}
        if deleted is not None:
            parts[DELETED] = deleted
        return Manifest(
            model=maker.facts,
            dimension=maker.dimension,
            precision=self.wanted.precision,
            reading=scanned.reading,
            kinds=self.kinds,
            sources=(*self.base_sources, *scanned.sources),
            rows=sum(rows for _, rows in blocks),
            parts=parts,
            measured={} if self.old is None else self.old.measured,
        )

    def _finish(self, changed: Changed) -> None:
        new = self._blocks()
        deleted = self._replaced(new, changed) if self.base else None
        manifest = self._manifest([*self.base, *new], None)
        manifest = complete(self.folder, manifest, deleted)
        probes = self._probes()
        if probes is not None:
            engine = FolderEngine(self.folder, manifest)
            changed.costs = tuple(measure(engine, probes, self.wanted.maker))
            manifest = manifest.changed(measured={"costs": [cost.to_dict() for cost in changed.costs]})
        write_manifest(self.folder, manifest)
        (self.folder / BUILDING).unlink(missing_ok=True)
        sweep(self.folder, manifest)
        if self.old is not None and self.wanted.action == "update":
            changed.deleted = max(self.old.rows - changed.reused, 0)
        changed.manifest = manifest

    def _replaced(self, new: list[tuple[str, int]], changed: Changed) -> Mask:
        """[rows]: those that are deleted, or whose id a new row has."""
        assert self.before is not None
        gone = np.concatenate([~self.before.live, np.zeros(sum(rows for _, rows in new), dtype=np.bool_)])
        if self.wanted.scanned.reading.id_column is not None:
            added = BlockedRows([RowBlock(self.folder / BLOCKS / name, rows) for name, rows in new])
            names = set(added.column("id"))
            again = np.array([name in names for name in self.before.rows.column("id")], dtype=np.bool_)
            changed.replaced = int((again & self.before.live).sum())
            gone[: self.base_rows] |= again
        return gone


def delete_rows(folder: Path, where: str) -> Changed:
    """Take out the rows that pass a filter; their vectors go with the next update."""
    with _working_in(folder):
        manifest = read_manifest(folder)
        engine = FolderEngine(folder, manifest)
        found = engine.allowed(read_filter(where, manifest.kinds))
        if not found.any():
            return Changed(manifest)
        if int(found.sum()) == int(engine.live.sum()):
            raise InputError(f"{folder}: the filter takes out every row; remove the folder instead.", "delete")
        parts = {**manifest.parts, "generation": int(manifest.parts.get("generation", 0)) + 1}
        made = complete(folder, manifest.changed(parts=parts), ~engine.live | found)
        write_manifest(folder, made)
        sweep(folder, made)
        return Changed(made, deleted=int(found.sum()))


def complete(folder: Path, manifest: Manifest, deleted: Mask | None) -> Manifest:
    """Write the parts that stand on all rows: which are deleted, the words, the codes."""
    parts: dict[str, Any] = {
        name: value for name, value in manifest.parts.items() if name not in (DELETED, WORDS, CODES, RANGES)
    }
    end = f"-{parts['generation']}"
    if deleted is not None and deleted.any():
        parts[DELETED] = f"{DELETED}{end}.npy"
        with written_file(folder / parts[DELETED]) as temporary, open(temporary, "wb") as target:
            np.save(target, deleted)
    engine = FolderEngine(folder, manifest.changed(parts=parts))
    live = engine.live
    texts = (text for text, kept in zip(_texts(engine), live, strict=True) if kept)
    parts[WORDS] = f"{WORDS}{end}"
    with bar("indexing words", None), written_folder(folder / parts[WORDS]) as place:
        write_words(place, texts)
    if manifest.precision != "float32":
        parts.update(_write_codes(folder, engine, end))
    return manifest.changed(parts=parts, rows=int(live.sum()))


def _texts(engine: FolderEngine) -> Iterator[str]:
    for block in engine.rows.blocks:
        yield from block.table.column("text").to_pylist()


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
            start += len(block)
        codes.flush()
        del codes
    return parts


def measure(engine: FolderEngine, probes: Probes, maker: VectorMaker) -> Iterator[Cost]:
    """Recall and time of each way to search this index, against exact float32 in all dimensions."""
    gathered = [found for block in engine.rows.blocks if (found := block.probe()) is not None]
    exact, queries = probes.exact(gathered), maker.kept(probes.vectors)
    width, allowed = engine.manifest.dimension, engine.live
    label = f"float32, {width} of {maker.facts.width} dimensions" if maker.is_cut else "float32, exact"

    def cost(name: str, size: int, search: Any) -> Cost:
        begun = time.perf_counter()
        found = search()
        spent = 1000 * (time.perf_counter() - begun) / len(queries)
        return Cost(name, size, probes.recall(exact, found), spent)

    yield cost(label, 4 * width, lambda: [_first(one) for one in engine.exact(queries, TOP + 1, allowed)])
    codes = engine.codes
    if codes is not None:
        size, precision = int(codes.codes[0].nbytes), engine.manifest.precision
        top = min(TOP + 1, len(codes))
        yield cost(precision, size, lambda: codes.search(queries, top, rescore=1)[0].tolist())
        yield cost(
            f"{precision}, re-scored", size, lambda: codes.search(queries, top, vectors=engine.rows)[0].tolist()
        )


def _first(ranking: list[tuple[int, float]]) -> list[int]:
    return [row for row, _ in ranking]


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


def _named(number: int) -> str:
    return f"{number:07d}"


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    """One process at a time; a folder in which nothing was begun goes again."""
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(folder)
    lock.take()
    try:
        yield
    finally:
        lock.release()
        if made and not names_in(folder):
            shutil.rmtree(folder, ignore_errors=True)
