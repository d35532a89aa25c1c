"""Build or change an index in Milvus. Rows are numbered in order and written in batches, so a build that was killed
goes on after the last row that is there.

An update writes the new rows behind the old ones, whose vectors it reuses, and takes the old ones away at its end.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError
from isotrope.progress import bar, say
from isotrope.search.column_kinds import agreed
from isotrope.search.cut_rows import Flags, flagged
from isotrope.search.index_manifest import Manifest
from isotrope.search.index_place import IndexPlace
from isotrope.search.index_report import Cost
from isotrope.search.index_request import Changed, Wanted, check_change
from isotrope.search.index_rows import IndexRow
from isotrope.search.milvus_client import (
    BEGUN,
    alter,
    connect,
    field_names,
    load_collection,
    manifest_in,
    milvus_errors,
    properties_of,
)
from isotrope.search.milvus_engine import FIELDS, MilvusEngine, expression
from isotrope.search.milvus_schema import LONGEST, create_collection, plain_words, vector_index
from isotrope.search.recall_probe import TOP, Probes, probe_texts
from isotrope.search.row_blocks import key_of
from isotrope.search.row_filter import ColumnTest, read_filter
from isotrope.search.word_stems import AUTO, NONE, stemming

ROWS = 1000  # in a batch
CUT, PASSAGE = "cut", "passage"
Floats = npt.NDArray[np.float32]


def build_collection(place: IndexPlace, wanted: Wanted) -> Changed:
    """Build, update or add to an index."""
    client = connect(place, make=wanted.action == "new")
    try:
        with milvus_errors(place):
            return _Build(place, client, wanted).run()
    finally:
        client.close()


def delete_entities(place: IndexPlace, where: str) -> Changed:
    """Take out the rows that pass a filter."""
    client = connect(place)
    try:
        engine = MilvusEngine(place, client)
        manifest = engine.manifest
        with milvus_errors(place):
            client.delete(place.collection, filter=expression(read_filter(where, manifest.kinds), engine.fields))
            cut = _cut(client, place, field_names(client, place))
            left = manifest.changed(rows=_count(client, place, ""), cut=cut)
        if left.rows == manifest.rows:
            say(f"{place}: no row passes the filter; nothing was deleted.")
        alter(client, place, manifest=left.to_dict())
        return Changed(left, deleted=manifest.rows - left.rows)
    finally:
        client.close()


class _Build:
    def __init__(self, place: IndexPlace, client: Any, wanted: Wanted) -> None:
        self.place, self.client, self.wanted = place, client, wanted
        self.properties = properties_of(client, place)
        self.old = manifest_in(self.properties, place)
        check_change(str(place), self.old, wanted)
        if self.properties is not None:
            load_collection(client, place)
        old, scanned = self.old, wanted.scanned
        self.adds = wanted.action == "add"
        self.kinds = scanned.kinds
        if old is not None:
            self.kinds = agreed(old.kinds, scanned.kinds, scanned.empty_columns, str(place))
        self.fields = (
            dict(old.parts[FIELDS])
            if old is not None
            else {name: f"c{number}" for number, name in enumerate(self.kinds)}
        )
        if set(self.kinds) - set(self.fields):
            new = ", ".join(sorted(set(self.kinds) - set(self.fields)))
            raise InputError(f"{place}: a collection takes no new columns ({new}); leave them out with keep.", "keep")
        self.generation = 0 if old is None else int(old.parts["generation"])
        follows = old if wanted.stemmer == AUTO else None  # who has the collection open knows the stemmer of then
        self.stemmer = wanted.stemmer_over(old) if follows is None else follows.stemmer
        self.stem = stemming(self.stemmer)
        self.base_sources = len(old.sources) if self.adds and old is not None else 0

    def run(self) -> Changed:
        if self.old is not None and self.wanted.action == "new":
            say(f"{self.place}: the index is whole and of this text; nothing was done.")
            return Changed(self.old)
        name = self.wanted.name(self.generation)
        begun = json.loads((self.properties or {}).get(BEGUN) or "{}")
        if self.properties is None:
            width, precision = self.wanted.maker.dimension, self.wanted.precision
            create_collection(self.client, self.place, width, self.kinds, self.fields, precision)
            begun = {"request": name, "first": 0, "stemmer": self.stemmer}
            alter(self.client, self.place, begun=begun)
        elif begun.get("request") != name:
            if self.old is None:
                raise InputError(
                    f"{self.place}: a half-written index of another text, model or setting is here; finish it with the "
                    "command that began it, or name another collection with #NAME."
                )
            begun = {"request": name, "first": int(self.old.parts["next"])}
            self.client.delete(self.place.collection, filter=f"row >= {begun['first']}")  # of a build that was given up
            alter(self.client, self.place, begun=begun)
        elif self.old is None and begun.get("stemmer", NONE) != self.stemmer:
            raise InputError(
                f"{self.place}: a half-written index is here whose words were compared otherwise (stemmer "
                f"{begun.get('stemmer', NONE)}, now {self.stemmer}), as an earlier version did; drop the collection, "
                "or name another with #NAME."
            )
        self.stored = field_names(self.client, self.place)
        first = int(begun["first"])
        done = _count(self.client, self.place, f"row >= {first}")
        if done:
            say(f"{self.place}: going on after {done:,} rows that are there already.")
        if self.wanted.scanned.reading.passages is not None:
            say(f"{self.place}: Milvus weighs the words of each passage alone; a folder those of the whole text.")
        changed = Changed(self._manifest(first), reused=done)
        exact = self._encode(first, done, changed)
        self._finish(first, changed)
        if exact is not None:
            changed.costs = tuple(self._costs(*exact, first))
        return changed

    def _encode(self, first: int, done: int, changed: Changed) -> tuple[Probes, list[dict[str, Any]]] | None:
        scanned, maker = self.wanted.scanned, self.wanted.maker
        known = self._known() if self.old is not None else {}
        fresh = self.old is None
        probes = Probes(maker.kept(maker.documents(probe_texts(scanned))), len(scanned)) if fresh else None
        gathered = (
            [] if probes is None else [probes.of_block(start, vectors) for start, vectors in self._stored(first, done)]
        )
        start = done
        with bar("indexing", len(scanned), done) as advance:
            rows = scanned.rows(done, self.kinds)
            while batch := list(itertools.islice(rows, ROWS)):
                encode = partial(self._vectors, batch, known)
                (vectors, new), flags = flagged(maker.encoder, [row.text for row in batch], encode)
                self._write(batch, vectors, flags, first + start)
                changed.encoded += new
                changed.reused += len(batch) - new
                if probes is not None:
                    gathered.append(probes.of_block(start, vectors))
                start += len(batch)
                advance(len(batch))
        return None if probes is None else (probes, gathered)

    def _vectors(self, batch: list[IndexRow], known: Mapping[int, int]) -> tuple[Floats, int]:
        """Those that are known are read back; a key of 64 bits that fits is checked against the text."""
        maker, places = self.wanted.maker, [known.get(key_of(row.text)) for row in batch]
        stored: dict[int, Any] = {}
        wanted = [place for place in places if place is not None]
        if wanted:
            found = self.client.get(self.place.collection, ids=wanted, output_fields=["row", "text", "vector"])
            stored = {int(row["row"]): row for row in found}
        vectors = np.empty((len(batch), maker.dimension), dtype=np.float32)
        missing = []
        for number, (row, place) in enumerate(zip(batch, places, strict=True)):
            if place is not None and stored.get(place, {}).get("text") == row.text:
                vectors[number] = stored[place]["vector"]
            else:
                missing.append(number)
        if missing:
            vectors[missing] = maker.kept(maker.documents([batch[number].text for number in missing]))
        return vectors, len(missing)

    def _write(self, batch: list[IndexRow], vectors: Floats, flags: Flags, first: int) -> None:
        entities = []
        for number, (row, vector, cut) in enumerate(zip(batch, vectors, flags, strict=True)):
            self._check_length(row)
            entity = {"row": first + number, "vector": vector, "text": row.text, "line": row.line, "id": row.id}
            entity["file"] = row.file + self.base_sources
            if CUT in self.stored:
                entity.update(plain=plain_words(row.text, self.stem), cut=bool(cut))
            if PASSAGE in self.stored:
                entity[PASSAGE] = None if row.passage is None else list(row.passage)
            for name, field in self.fields.items():
                value = row.values.get(name)
                entity[field] = float(value) if self.kinds[name] == "number" and value is not None else value
            entities.append(entity)
        self.client.upsert(self.place.collection, entities)

    def _check_length(self, row: IndexRow) -> None:
        for value in (row.text, row.id, *row.values.values()):
            if isinstance(value, str) and len(value) * 4 > LONGEST and len(value.encode()) > LONGEST:
                where = f"{self.wanted.scanned.sources[row.file].path}:{row.line}"
                raise InputError(f"{where}: Milvus keeps texts of up to {LONGEST:,} bytes; break it, or use a folder.")

    def _known(self) -> dict[int, int]:
        """Key → row of the texts that are there."""
        pages = self._pages(0, int(self.old.parts["next"]) if self.old is not None else 0, ["row", "text"])
        return {key_of(row["text"]): int(row["row"]) for page in pages for row in page}

    def _stored(self, first: int, done: int) -> Iterator[tuple[int, Floats]]:
        """The vectors of rows that an earlier call wrote, in batches."""
        for page in self._pages(first, first + done, ["row", "vector"]):
            ordered = sorted(page, key=lambda row: int(row["row"]))
            yield int(ordered[0]["row"]) - first, np.array([row["vector"] for row in ordered], dtype=np.float32)

    def _pages(self, first: int, end: int, fields: list[str]) -> Iterator[list[dict[str, Any]]]:
        for start in range(first, end, ROWS):
            last = min(start + ROWS, end)
            wanted = f"row >= {start} and row < {last}"
            page = self.client.query(self.place.collection, filter=wanted, output_fields=fields, limit=ROWS)
            if page:
                yield list(page)

    def _manifest(self, first: int) -> Manifest:
        maker, scanned, old = self.wanted.maker, self.wanted.scanned, self.old
        before = old.sources if self.adds and old is not None else ()
        return Manifest(
            model=maker.facts,
            dimension=maker.dimension,
            precision=self.wanted.precision,
            reading=scanned.reading,
            kinds=self.kinds,
            sources=(*before, *scanned.sources),
            rows=0,
            stemmer=self.stemmer,
            parts={"generation": self.generation + 1, FIELDS: self.fields, "next": first + len(scanned)},
        )

    def _finish(self, first: int, changed: Changed) -> None:
        before = _count(self.client, self.place, f"row < {first}") if first else 0
        if first and not self.adds:
            self.client.delete(self.place.collection, filter=f"row < {first}")
            changed.deleted = max(before - changed.reused, 0)
        elif first and self.wanted.scanned.reading.id_column is not None:
            changed.replaced = self._replace(first, before)
        rows, cut = _count(self.client, self.place, ""), _cut(self.client, self.place, self.stored)
        changed.manifest = changed.manifest.changed(rows=rows, cut=cut)
        alter(self.client, self.place, manifest=changed.manifest.to_dict(), begun={})

    def _replace(self, first: int, before: int) -> int:
        """Delete the older rows whose id a new row has."""
        names = (str(row.id) for row in self.wanted.scanned.rows())
        while some := tuple(itertools.islice(names, ROWS)):
            again = expression(ColumnTest("id", "in", some), {"id": "id"})
            self.client.delete(self.place.collection, filter=f"row < {first} and {again}")
        return before - _count(self.client, self.place, f"row < {first}")

    def _costs(self, probes: Probes, gathered: list[dict[str, Any]], first: int) -> Iterator[Cost]:
        """Of the engine's index, and of its codes with the best re-scored."""
        engine = MilvusEngine(self.place, self.client)
        exact = [[row + first for row in rows] for rows in probes.exact(gathered)]
        probes.own = [row + first for row in probes.own]
        kind, precision = vector_index(self.place, self.wanted.precision), self.wanted.precision
        codes = precision != "float32"
        ways = [(f"Milvus, {kind}", engine.by_index)]
        if codes:
            ways.append((f"Milvus, {kind}, re-scored", engine.dense))
        for name, search in ways:
            begun = time.perf_counter()
            found = search(probes.vectors, TOP + 1, None)
            spent = 1000 * (time.perf_counter() - begun) / len(probes.vectors)
            recall = probes.recall(exact, [[row for row, _ in ranking] for ranking in found])
            yield Cost(name, (1 if codes else 4) * self.wanted.maker.dimension, recall, spent)


def _count(client: Any, place: IndexPlace, where: str) -> int:
    return int(client.query(place.collection, filter=where, output_fields=["count(*)"])[0]["count(*)"])


def _cut(client: Any, place: IndexPlace, stored: frozenset[str]) -> int | None:
    """How many texts were cut; None in a collection that does not know."""
    return _count(client, place, f"{CUT} == true") if CUT in stored else None
