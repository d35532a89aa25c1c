"""The collection of an index in Milvus: its fields, and the indexes over vectors and words.

row, vector, text, plain (its words as all engines compare them), words (BM25, made by Milvus of ``plain``),
cut (whether the model read only its beginning), passage (its number, of how many, start, end), line, file, id,
c0, c1, … (the kept columns)

int8 is an index of codes over the float vectors, which stay there for re-scoring.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isotrope.errors import InputError
from isotrope.search.index_place import SERVERS, IndexPlace
from isotrope.search.query_words import Stem, words_of

LONGEST = 65_535  # bytes of a text
GRAPH = {"M": 16, "efConstruction": 200}  # of HNSW


def check_kept(place: IndexPlace, precision: str, tokens: bool = False) -> None:
    """Refuse what Milvus does not keep next to float vectors."""
    if tokens:
        raise InputError(f"{place}: token states are kept in a folder, not in Milvus; leave tokens out.", "tokens")
    if precision not in ("float32", "int8"):
        engine = "a Milvus server" if place.target.startswith(SERVERS) else "Milvus Lite"
        raise InputError(
            f"{place}: {engine} keeps float32 and int8 vectors here, not {precision}; take precision int8, or a "
            f"folder, which searches by {precision} codes.",
            "precision",
        )


def vector_index(place: IndexPlace, precision: str = "float32") -> str:
    """A server chooses by itself; Milvus Lite is asked for a graph. Codes of int8 are a graph in both."""
    if precision == "int8":
        return "HNSW_SQ"
    return "AUTOINDEX" if place.target.startswith(SERVERS) else "HNSW"


def plain_words(text: str, stem: Stem) -> str:
    """The words of a text, joined by blanks: Milvus' own analyzer then leaves them as they are, accents removed,
    English stemmed and Chinese cut into characters. What goes over the most that a field holds is left out."""
    joined = " ".join(words_of(text, stem))
    if len(joined) * 4 <= LONGEST or len(joined.encode()) <= LONGEST:
        return joined
    return joined.encode()[:LONGEST].decode(errors="ignore").rpartition(" ")[0]


def create_collection(
    client: Any,
    place: IndexPlace,
    dimension: int,
    kinds: Mapping[str, str],
    fields: Mapping[str, str],
    precision: str = "float32",
) -> None:
    """``fields`` names the field of each kept column, ``kinds`` what it holds. An engine that refuses keeps nothing."""
    from pymilvus import DataType, Function, FunctionType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("row", DataType.INT64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    schema.add_field("text", DataType.VARCHAR, max_length=LONGEST)
    schema.add_field("plain", DataType.VARCHAR, max_length=LONGEST, enable_analyzer=True)
    schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
    schema.add_field("cut", DataType.BOOL)
    schema.add_field("passage", DataType.JSON, nullable=True)
    schema.add_field("line", DataType.INT64)
    schema.add_field("file", DataType.INT64)
    schema.add_field("id", DataType.VARCHAR, max_length=LONGEST, nullable=True)
    for column, field in fields.items():
        if kinds[column] == "number":
            schema.add_field(field, DataType.DOUBLE, nullable=True)
        elif kinds[column] == "boolean":
            schema.add_field(field, DataType.BOOL, nullable=True)
        else:
            schema.add_field(field, DataType.VARCHAR, max_length=LONGEST, nullable=True)
    bm25 = FunctionType.BM25
    schema.add_function(
        Function(name="bm25", input_field_names=["plain"], output_field_names=["words"], function_type=bm25)
    )
    indexes, kind = client.prepare_index_params(), vector_index(place, precision)
    built = {} if kind == "AUTOINDEX" else {**GRAPH, **({"sq_type": "SQ8"} if kind == "HNSW_SQ" else {})}
    indexes.add_index(field_name="vector", index_type=kind, metric_type="COSINE", params=built)
    indexes.add_index(field_name="words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    try:
        client.create_collection(place.collection, schema=schema, index_params=indexes, consistency_level="Strong")
    except BaseException:  # it makes the collection first and its indexes then
        if client.has_collection(place.collection):
            client.drop_collection(place.collection)
        raise
