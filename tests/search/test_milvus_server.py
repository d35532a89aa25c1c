"""A Milvus server of its own process. The newest that pip has is 2.3, without BM25 and columns without a value: the
sentence that says so is tested, and over a collection without both all the rest of the code."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.search.index_place import IndexPlace

milvus = pytest.importorskip("milvus", reason="the package milvus, a server that pip installs, is not there")
pytest.importorskip("pymilvus", reason="pymilvus is not installed (extra search)")
if sys.platform != "linux":
    pytest.skip("the server of the package milvus runs on Linux alone", allow_module_level=True)
HEAD = "doc\ttext\tyear"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    running = milvus.MilvusServer()
    running.set_base_dir(str(tmp_path_factory.mktemp("milvus")))
    running.start()
    yield f"http://127.0.0.1:{running.listen_port}"
    running.stop()


@pytest.fixture
def table(tmp_path: Path, topics: list[str]) -> Path:
    path = tmp_path / "texts.tsv"
    rows = [f"d{row}\t{text}\t{2000 + row % 30}" for row, text in enumerate(topics[:300])]
    path.write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
    return path


def test_an_old_server_is_refused_and_nothing_is_made(server: str, tiny: Path, table: Path) -> None:
    from pymilvus import MilvusClient

    with pytest.raises(
        InputError, match=r"Milvus v2\.3.* answers there, and an index needs 2\.5 or newer, which has BM25"
    ):
        isotrope.index(tiny, table, f"{server}#refused")
    assert not MilvusClient(uri=server).has_collection("refused")


def without_words(
    client: Any,
    place: IndexPlace,
    dimension: int,
    kinds: Mapping[str, str],
    fields: Mapping[str, str],
    precision: str = "float32",
) -> None:
    """The collection of an index without what 2.3 lacks."""
    from pymilvus import DataType

    from isotrope.search.milvus_schema import LONGEST, vector_index

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("row", DataType.INT64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    for name in ("line", "file"):
        schema.add_field(name, DataType.INT64)
    for name in ("text", "id", "plain"):
        schema.add_field(name, DataType.VARCHAR, max_length=LONGEST)
    schema.add_field("cut", DataType.BOOL)
    for column, field in fields.items():
        extra = {} if kinds[column] == "number" else {"max_length": LONGEST}
        schema.add_field(field, DataType.DOUBLE if kinds[column] == "number" else DataType.VARCHAR, **extra)
    indexes = client.prepare_index_params()
    indexes.add_index(field_name="vector", index_type=vector_index(place, precision), metric_type="COSINE", params={})
    client.create_collection(place.collection, schema=schema, index_params=indexes, consistency_level="Strong")


def test_rows_are_found_filtered_and_changed(
    server: str, tiny: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from isotrope.search import milvus_building, milvus_client

    monkeypatch.setattr(milvus_client, "OLDEST", (2, 3))
    monkeypatch.setattr(milvus_building, "create_collection", without_words)
    encoder, place = isotrope.load(tiny), f"{server}#rows"
    made = isotrope.index(encoder, table, place, id_column="doc")
    assert (made.rows, made.encoded) == (300, 300)
    assert made.costs[0].recall > 0.9
    isotrope.index(encoder, table, tmp_path / "folder", id_column="doc")
    with isotrope.open_index(place, encoder) as index, isotrope.open_index(tmp_path / "folder", encoder) as exact:
        for where in (None, "year > 2020", "year in (2001, 2002) or doc like 'd1%'"):
            one, two = (each.search("the pilot", 5, "dense", where)[0] for each in (index, exact))
            assert {hit.id for hit in one} == {hit.id for hit in two}
            assert [hit.score for hit in one] == pytest.approx([hit.score for hit in two], abs=1e-5)
    more = tmp_path / "more.tsv"
    more.write_text(f"{HEAD}\nd5\ta violin in the kitchen\t2099\nnew\tthe boat\t1990\n", encoding="utf-8")
    made = isotrope.index(encoder, more, place, id_column="doc", add=True)
    assert (made.rows, made.encoded, made.replaced) == (301, 2, 1)
    assert isotrope.index(encoder, output=place, delete="year = 1990").deleted == 1
    lines = table.read_text(encoding="utf-8").splitlines()
    table.write_text("\n".join([HEAD, "first\tall new\t1", *lines[100:]]) + "\n", encoding="utf-8")
    made = isotrope.index(encoder, table, place, id_column="doc", update=True)
    assert (made.rows, made.encoded) == (202, 1)
    with pytest.raises(InputError, match="made by another model"):
        isotrope.open_index(place, isotrope.load(tiny, pooling="cls"))
