"""The collection of an index in Milvus: its fields, and the indexes over vectors and words.

row, vector, text, words (BM25, made by Milvus of the text), line, file, id, c0, c1, … (the kept columns)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isotrope.search.index_place import SERVERS, IndexPlace

LONGEST = 65_535  # bytes of a text
GRAPH = {"M": 16, "efConstruction": 200}  # of HNSW


def vector_index(place: IndexPlace) -> str:
    """A server chooses by itself; Milvus Lite is asked for a graph."""
    return "AUTOINDEX" if place.target.startswith(SERVERS) else "HNSW"


def create_collection(
    client: Any, place: IndexPlace, dimension: int, kinds: Mapping[str, str], fields: Mapping[str, str]
) -> None:
    """``fields`` names the field of each kept column, ``kinds`` what it holds."""
    from pymilvus import DataType, Function, FunctionType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("row", DataType.INT64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    schema.add_field("text", DataType.VARCHAR, max_length=LONGEST, enable_analyzer=True)
    schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
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
        Function(name="bm25", input_field_names=["text"], output_field_names=["words"], function_type=bm25)
    )
    indexes, kind = client.prepare_index_params(), vector_index(place)
    built = GRAPH if kind == "HNSW" else {}
    indexes.add_index(field_name="vector", index_type=kind, metric_type="COSINE", params=built)
    indexes.add_index(field_name="words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    client.create_collection(place.collection, schema=schema, index_params=indexes, consistency_level="Strong")
