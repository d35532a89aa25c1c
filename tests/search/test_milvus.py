"""The same index in Milvus Lite: it finds, filters, changes and goes on as a folder does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.errors import InputError

pytest.importorskip("pymilvus", reason="pymilvus is not installed (extra search)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (extra search)")

HEAD = "doc\ttext\tyear\tlang"


@pytest.fixture
def table(tmp_path: Path, topics: list[str]) -> Path:
    path = tmp_path / "texts.tsv"
    rows = [f"d{row}\t{text}\t{2000 + row % 30}\t{'' if row % 3 else 'de'}" for row, text in enumerate(topics[:200])]
    path.write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
    return path


def test_milvus_answers_as_a_folder_does(tiny: Path, table: Path, tmp_path: Path) -> None:
    encoder, place = isotrope.load(tiny), f"milvus:{tmp_path}/docs.db"
    made = isotrope.index(encoder, table, place, id_column="doc")
    isotrope.index(encoder, table, tmp_path / "folder", id_column="doc")
    (cost,) = made.costs
    assert cost.recall > 0.9
    query = "the pilot plays the sonata number 44"
    with isotrope.open_index(place, encoder) as index, isotrope.open_index(tmp_path / "folder", encoder) as exact:
        assert index.info()["engine"] == "milvus"
        for where in (None, "year > 2020", "lang = 'de' and not year in (2001, 2002)", "lang != 'de'", "lang is null"):
            (one,), (two,) = (each.search(query, 10, "dense", where) for each in (index, exact))
            assert len({hit.id for hit in one} & {hit.id for hit in two}) >= 9 if two else one == []
            (words,), (same,) = (each.search(query, 10, "lexical", where) for each in (index, exact))
            assert {hit.id for hit in words[:1]} == {hit.id for hit in same[:1]}
        (found,), (same,) = (each.search(query, 1, "lexical")[0] for each in (index, exact))
        assert (found.id, found.line, found.columns, found.marks) == (same.id, same.line, same.columns, same.marks)
        assert found.id == "d44"


def test_rows_come_and_go(tiny: Path, table: Path, tmp_path: Path) -> None:
    place, more = f"milvus:{tmp_path}/docs.db#other", tmp_path / "more.tsv"
    isotrope.index(tiny, table, place, id_column="doc")
    more.write_text(f"{HEAD}\nd5\ta violin in the kitchen\t2099\tfr\nnew\tthe boat\t1990\tfr\n", encoding="utf-8")
    made = isotrope.index(tiny, more, place, id_column="doc", add=True)
    assert (made.rows, made.encoded, made.replaced) == (201, 2, 1)
    assert isotrope.index(tiny, output=place, delete="lang = 'fr'").deleted == 2
    more.write_text("doc\ttext\tnovel\na\tthe boat\t1\n", encoding="utf-8")
    with pytest.raises(InputError, match="takes no new columns"):
        isotrope.index(tiny, more, place, id_column="doc", add=True)
    lines = table.read_text(encoding="utf-8").splitlines()
    table.write_text("\n".join([HEAD, "first\tall new\t1\tit", *lines[100:]]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="has changed since"):
        isotrope.search(place, "a")
    made = isotrope.index(tiny, table, place, id_column="doc", update=True)
    assert (made.rows, made.encoded, made.reused) == (102, 1, 101)
    with pytest.raises(InputError, match="made by another model"):
        isotrope.open_index(place, isotrope.load(tiny, pooling="cls"))


def test_a_build_that_was_stopped_goes_on(
    tiny: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from isotrope.search import milvus_building

    place, encoder = f"milvus:{tmp_path}/docs.db", isotrope.load(tiny)
    monkeypatch.setattr(milvus_building, "ROWS", 60)
    plain, written = milvus_building._Build._write, []

    def stopping(self: Any, batch: Any, vectors: Any, first: int) -> None:
        if first >= 120:
            raise KeyboardInterrupt
        written.append(first)
        plain(self, batch, vectors, first)

    monkeypatch.setattr(milvus_building._Build, "_write", stopping)
    with pytest.raises(KeyboardInterrupt):
        isotrope.index(encoder, table, place)
    with pytest.raises(InputError, match="no finished index"):
        isotrope.open_index(place)
    monkeypatch.setattr(milvus_building._Build, "_write", plain)
    with pytest.raises(InputError, match="half-written index of another text"):
        isotrope.index(encoder, table, place, keep=["year"])
    made = isotrope.index(encoder, table, place)
    assert (made.rows, made.encoded, made.reused) == (200, 80, 120)
    assert made.costs[0].recall > 0.9
