"""An index in Milvus, opened for reading: an approximate index of vectors, and BM25, both the engine's own.

Hybrid joins the two rankings here, as over a folder, so that every engine ranks alike; words are those of query_words.
The score of a row that only one ranking found is asked for by its number.
Of int8 codes the best four times as many are re-scored by their float vectors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError
from isotrope.search.folder_engine import Ranking
from isotrope.search.index_manifest import Manifest
from isotrope.search.index_place import IndexPlace
from isotrope.search.milvus_client import (
    connect,
    field_names,
    load_collection,
    manifest_in,
    milvus_errors,
    properties_of,
)
from isotrope.search.quantized import RESCORE
from isotrope.search.row_filter import ColumnTest, Filter, Joined

FIELDS = "fields"  # in the manifest's parts: the field of each kept column
DEEPEST = 16_384  # hits that Milvus gives at once
Floats = npt.NDArray[np.float32]


class MilvusEngine:
    """A collection and the rankings over it."""

    name = "milvus"

    def __init__(self, place: IndexPlace, client: Any = None) -> None:
        self.place = place
        self.client = client or connect(place)
        found = manifest_in(properties_of(self.client, place), place)
        if found is None:
            self.client.close()
            raise InputError(
                f"{place}: no finished index is in the collection {place.collection}; `isotrope index MODEL TEXT "
                f"--output {place}` builds one, or goes on with one that was stopped."
            )
        self.manifest: Manifest = found
        load_collection(self.client, place)
        stored = field_names(self.client, place) if found.reading.passages else frozenset[str]()
        self._passage = sorted({"passage"} & stored)

    def current(self) -> MilvusEngine:
        """Itself: Milvus answers of the rows that are there."""
        return self

    @property
    def fields(self) -> Mapping[str, str]:
        return self.manifest.parts[FIELDS]

    def dense(self, queries: Floats, top: int, where: Filter | None) -> list[Ranking]:
        if self.manifest.precision == "float32":
            return self.by_index(queries, top, where)
        found = self._found(list(queries), "vector", _explored(RESCORE * top), RESCORE * top, where, ["row", "vector"])
        return [_rescored(*pair, top) for pair in zip(queries, found, strict=True)]

    def by_index(self, queries: Floats, top: int, where: Filter | None) -> list[Ranking]:
        """By what the engine's index says, codes or not."""
        return self._ranked(list(queries), "vector", _explored(top), top, where)

    def lexical(self, queries: Sequence[Sequence[str]], top: int, where: Filter | None) -> list[Ranking]:
        texts = [" ".join(words) for words in queries]
        asked = [text for text in texts if text]
        found = iter(self._ranked(asked, "words", {}, top, where) if asked else [])
        return [[(row, abs(score)) for row, score in next(found)] if text else [] for text in texts]

    def cosines_of(self, query: Floats, rows: Sequence[int]) -> list[float]:
        found: dict[int, float] = {}
        for some in _parts(rows):
            with milvus_errors(self.place):
                stored = self.client.get(self.place.collection, ids=some, output_fields=["row", "vector"])
            found.update((int(one["row"]), _cosine(one["vector"], query)) for one in stored)
        return self._of_all(rows, found)

    def weights_of(self, query: Sequence[str], rows: Sequence[int]) -> list[float]:
        """Rows that share no word are not found, and weigh 0."""
        found: dict[int, float] = {}
        for some in _parts(rows) if query else ():
            with milvus_errors(self.place):
                (hits,) = self.client.search(
                    self.place.collection,
                    data=[" ".join(query)],
                    anns_field="words",
                    limit=len(some),
                    filter=f"row in {some}",
                    output_fields=["row"],
                )
            found.update((int(hit["row"]), abs(float(hit["distance"]))) for hit in hits)
        return [found.get(row, 0.0) for row in rows]

    def _of_all(self, rows: Sequence[int], found: Mapping[int, float]) -> list[float]:
        if any(row not in found for row in rows):
            raise self._gone()
        return [found[row] for row in rows]

    def _gone(self) -> InputError:
        return InputError(f"{self.place}: rows were deleted while they were searched; search again.")

    def _ranked(
        self, queries: list[Any], field: str, params: dict[str, Any], top: int, where: Filter | None
    ) -> list[Ranking]:
        found = self._found(queries, field, params, top, where, ["row"])
        return [[(int(hit["row"]), float(hit["distance"])) for hit in hits] for hits in found]

    def _found(
        self,
        queries: list[Any],
        field: str,
        params: dict[str, Any],
        top: int,
        where: Filter | None,
        output: list[str],
    ) -> list[Any]:
        with milvus_errors(self.place):
            found: list[Any] = self.client.search(
                self.place.collection,
                data=queries,
                anns_field=field,
                limit=min(top, DEEPEST),
                filter="" if where is None else expression(where, self.fields),
                search_params=params,
                output_fields=output,
            )
        return found

    def fetch(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        if not rows:
            return []
        wanted = ["row", "text", "line", "file", "id", *self._passage, *self.fields.values()]
        with milvus_errors(self.place):
            found = self.client.get(self.place.collection, ids=list(rows), output_fields=wanted)
        stored = {int(row["row"]): row for row in found}
        if any(row not in stored for row in rows):
            raise self._gone()
        return [self._read(stored[row]) for row in rows]

    def _read(self, row: Mapping[str, Any]) -> dict[str, Any]:
        columns = {name: _whole(row.get(field)) for name, field in self.fields.items()}
        return {**{name: row.get(name) for name in ("text", "line", "file", "id", "passage")}, "columns": columns}

    def tokens_of(self, row: int) -> None:
        """Milvus keeps none."""

    def close(self) -> None:
        self.client.close()


def _explored(top: int) -> dict[str, Any]:
    return {"params": {"ef": max(2 * top, 64)}}


def _cosine(vector: Any, query: Floats) -> float:
    return float(np.asarray(vector, dtype=np.float32) @ query)


def _parts(rows: Sequence[int]) -> Iterator[list[int]]:
    """No more than the engine gives at once."""
    return ([*rows[start : start + DEEPEST]] for start in range(0, len(rows), DEEPEST))


def _rescored(query: Floats, hits: Any, top: int) -> Ranking:
    """By the cosine of unit vectors; equal scores keep the order of the rows."""
    entities = [hit["entity"] for hit in hits]
    scored = [(int(one["row"]), _cosine(one["vector"], query)) for one in entities]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:top]


def _whole(value: Any) -> Any:
    """Numbers are kept as float64: 2020.0 is shown as 2020."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53 else value


def expression(found: Filter, fields: Mapping[str, str]) -> str:
    """The filter in the language of Milvus. Names are ours and JSON quotes the values: none of it is free text."""
    if isinstance(found, Joined):
        return "(" + f" {found.word} ".join(expression(part, fields) for part in found.parts) + ")"
    return _tested(found, fields[found.column])


def _is_long(value: Any) -> bool:
    """A whole number that a column of float64 cannot be compared with as it stands."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) > 1 << 53


def _tested(test: ColumnTest, field: str) -> str:
    values = [json.dumps(float(value) if _is_long(value) else value, ensure_ascii=False) for value in test.values]
    if test.sign in ("null", "not null"):
        return f"{field} is {test.sign}"
    listed = values[0] if not test.sign.endswith("in") else f"[{', '.join(values)}]"
    if not test.sign.startswith("not "):
        return f"{field} {test.sign} {listed}"
    return f"({field} is not null and not ({field} {test.sign[4:]} {listed}))"
