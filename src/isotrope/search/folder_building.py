"""Build or change an index in a folder. A killed build goes on after its last whole block; the index that was there
stays as it was until the new one is whole.

    building.json      what is being built, and the number of its first block
    blocks/0000001     each written whole
    index.json         written last: from then on the new rows are the index
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isotrope.encoders.encoder_uses import DOCUMENT_NAMES
from isotrope.errors import InputError
from isotrope.files import names_in, write_json
from isotrope.progress import bar, say
from isotrope.search.column_kinds import agreed
from isotrope.search.cut_rows import flagged
from isotrope.search.filter_masks import Mask
from isotrope.search.folder_costs import measure
from isotrope.search.folder_engine import BLOCKS, DELETED, FolderEngine
from isotrope.search.folder_parts import complete
from isotrope.search.folder_upkeep import check_free, sweep, working_in
from isotrope.search.index_manifest import Manifest, read_manifest, write_manifest
from isotrope.search.index_place import BUILDING, MANIFEST
from isotrope.search.index_request import Changed, Wanted, check_change
from isotrope.search.index_rows import IndexRow
from isotrope.search.known_vectors import KnownVectors
from isotrope.search.part_sums import check_parts
from isotrope.search.recall_probe import Probes, probe_texts
from isotrope.search.row_blocks import ROWS, BlockedRows, RowBlock, write_block
from isotrope.search.row_filter import read_filter

if TYPE_CHECKING:
    from isotrope.encoders.token_states import TokenStates

TOKENS_AT_ONCE = 64  # texts whose states are in memory
Floats = npt.NDArray[np.float32]


def build_folder(folder: Path, wanted: Wanted, discard: bool = False) -> Changed:
    """Build, update or add to an index. ``discard``: begin again where another request was left half-done."""
    check_free(folder)
    with working_in(folder):
        old = read_manifest(folder) if (folder / MANIFEST).is_file() else None
        check_change(str(folder), old, wanted)
        return _Build(folder, wanted, old, discard).run()


class _Build:
    def __init__(self, folder: Path, wanted: Wanted, old: Manifest | None, discard: bool) -> None:
        self.folder, self.wanted, self.old = folder, wanted, old
        if old is not None:
            check_parts(folder, old.sums)
        self.before = None if old is None else FolderEngine(folder, old)
        self.generation = 0 if old is None else int(old.parts.get("generation", 0))
        kept = wanted.action == "add" and old is not None
        self.base: list[tuple[str, int]] = [tuple(pair) for pair in old.parts[BLOCKS]] if kept and old else []
        self.base_rows = sum(rows for _, rows in self.base)
        self.base_sources = old.sources if kept and old is not None else ()
        scanned = wanted.scanned
        self.kinds = scanned.kinds
        if kept and old is not None:
            self.kinds = agreed(old.kinds, scanned.kinds, scanned.empty_columns, str(folder))
        self.keeps_tokens = wanted.tokens or (old is not None and old.tokens)
        if self.keeps_tokens:
            from isotrope.search.token_reranking import check_tokens

            check_tokens(wanted.maker.encoder, "tokens")
        self.first = self._first_block(discard)

    def run(self) -> Changed:
        old, scanned = self.old, self.wanted.scanned
        if old is not None and self.wanted.action == "new":
            (self.folder / BUILDING).unlink(missing_ok=True)  # of a process that was killed at its very end
            sweep(self.folder, old)
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
        found: list[tuple[str, int]] = []
        for number in itertools.count(self.first):
            folder = self.folder / BLOCKS / _named(number)
            if not folder.is_dir():
                return found
            found.append((folder.name, len(np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False))))
        raise AssertionError

    def _encode(self, start: int, changed: Changed) -> None:
        scanned = self.wanted.scanned
        known = KnownVectors(self.before.rows if self.before is not None else None)
        probes = self.probes
        number = self.first + len(self._blocks())
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
            raise InputError(
                f"{scanned.sources[0].path}: the text changed while it was indexed; run the command again."
            )

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
            (whole, new), cut = flagged(maker.encoder, texts, lambda: (maker.documents(texts), len(texts)))
            vectors, found = maker.kept(whole), probes.of_block(start, whole)
        else:
            (vectors, new), cut = flagged(
                maker.encoder, texts, lambda: known.vectors(texts, lambda some: maker.kept(maker.documents(some)))
            )
        changed.encoded += new
        changed.reused += len(texts) - new
        tokens = self._tokens(texts, known) if self.keeps_tokens else None
        write_block(folder, block, vectors, self.kinds, len(self.base_sources), found, cut, tokens)

    def _tokens(self, texts: list[str], known: KnownVectors) -> Iterator[TokenStates]:
        """The states of each text, some texts at a time; those that the index has are not computed again."""
        from isotrope.encoders.token_states import token_states

        encoder = self.wanted.maker.encoder.prompted(DOCUMENT_NAMES)
        for start in range(0, len(texts), TOKENS_AT_ONCE):
            some = texts[start : start + TOKENS_AT_ONCE]
            rows = [known.find(text) for text in some]
            stored = [None if row is None or self.before is None else self.before.tokens_of(row) for row in rows]
            made = iter(token_states(encoder, [text for text, one in zip(some, stored, strict=True) if one is None]))
            yield from (next(made) if one is None else one for one in stored)

    @cached_property
    def probes(self) -> Probes | None:
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
            tokens=self.keeps_tokens,
            stemmer=self.wanted.stemmer_over(self.old),
        )

    def _finish(self, changed: Changed) -> None:
        new = self._blocks()
        deleted = self._replaced(new, changed) if self.base else None
        manifest = self._manifest([*self.base, *new], None)
        manifest = complete(self.folder, manifest, deleted)
        probes = self.probes
        if probes is not None:
            engine = FolderEngine(self.folder, manifest)
            changed.costs = tuple(measure(engine, probes, self.wanted.maker))
            manifest = manifest.changed(measured={"costs": [cost.to_dict() for cost in changed.costs]})
        write_manifest(self.folder, manifest, None if self.old is None else self.old.sums)
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
    with working_in(folder):
        manifest = read_manifest(folder)
        check_parts(folder, manifest.sums)
        engine = FolderEngine(folder, manifest)
        found = engine.allowed(read_filter(where, manifest.kinds))
        if not found.any():
            say(f"{folder}: no row passes the filter; nothing was deleted.")
            return Changed(manifest)
        if int(found.sum()) == int(engine.live.sum()):
            raise InputError(f"{folder}: the filter takes out every row; remove the folder instead.", "delete")
        parts = {**manifest.parts, "generation": int(manifest.parts.get("generation", 0)) + 1}
        made = complete(folder, manifest.changed(parts=parts), ~engine.live | found)
        write_manifest(folder, made, manifest.sums)
        sweep(folder, made)
        return Changed(made, deleted=int(found.sum()))


def _named(number: int) -> str:
    return f"{number:07d}"
