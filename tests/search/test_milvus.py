"""The same index in Milvus, in a file and over the network: it finds, filters, changes and goes on as a folder does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.errors import InputError

pytest.importorskip("pymilvus", reason="pymilvus is not installed (extra search)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (extra search)")

HEAD = "doc\ttext\tyear\tlang"


@pytest.fixture(params=["file", "network"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Milvus Lite in this process, and the same served over TCP, which the client cannot tell from a server."""
    if request.param == "file":
        yield f"milvus:{tmp_path}/docs.db"
        return
    served = pytest.importorskip("milvus_lite.adapter.grpc.server", reason="this milvus-lite has no server")
    server, database, port = served.start_server_in_thread(str(tmp_path / "served"))
    yield f"http://127.0.0.1:{port}"
    server.stop(grace=None).wait()
    database.close()


@pytest.fixture
def table(tmp_path: Path, topics: list[str]) -> Path:
    path = tmp_path / "texts.tsv"
    rows = [f"d{row}\t{text}\t{2000 + row % 30}\t{'' if row % 3 else 'de'}" for row, text in enumerate(topics[:200])]
    path.write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
    return path


def test_milvus_answers_as_a_folder_does(tiny: Path, table: Path, tmp_path: Path, place: str) -> None:
    encoder = isotrope.load(tiny)
    made = isotrope.index(encoder, table, place, id_column="doc")
    isotrope.index(encoder, table, tmp_path / "folder", id_column="doc")
    (cost,) = made.costs
    assert cost.recall > 0.9
    query = "the pilot plays the sonata number 44"
    vector = encoder.encode([query], normalize_embeddings=True)[0]
    with isotrope.open_index(place, encoder) as index, isotrope.open_index(tmp_path / "folder", encoder) as exact:
        assert index.info()["engine"] == "milvus"
        for where in (None, "year > 2020", "lang = 'de' and not year in (2001, 2002)", "lang != 'de'", "lang is null"):
            (one,), (two,) = (each.search(query, 10, "dense", where) for each in (index, exact))
            assert len({hit.id for hit in one} & {hit.id for hit in two}) >= 9 if two else one == []
            (words,), (same,) = (each.search(query, 10, "lexical", where) for each in (index, exact))
            assert [hit.id for hit in words[:1]] == [hit.id for hit in same[:1]]
            assert [hit.bm25 for hit in words] == sorted((hit.bm25 or 0 for hit in words), reverse=True)
            (both,), (same,) = (each.search(query, 10, "hybrid", where) for each in (index, exact))
            assert [hit.id for hit in both[:1]] == [hit.id for hit in same[:1]]
            assert [hit.score for hit in both] == sorted((hit.score for hit in both), reverse=True)
        for row in range(0, 200, 7):  # what a ranking did not find is asked for by the row
            (cosine,), (same_cosine,) = (each.engine.cosines_of(vector, [row]) for each in (index, exact))
            assert cosine == pytest.approx(same_cosine, abs=1e-5)
        weights = dict(index.engine.lexical([query.split()], 200, None)[0])
        assert index.engine.weights_of(query.split(), range(200)) == pytest.approx(
            [weights.get(row, 0.0) for row in range(200)], rel=1e-4
        )
        assert index.engine.weights_of([], [1, 2]) == index.engine.weights_of(["zzyzx"], [1, 2]) == [0.0, 0.0]
        (found,), (same,) = (each.search(query, 1, "lexical")[0] for each in (index, exact))
        assert (found.id, found.line, found.columns, found.marks) == (same.id, same.line, same.columns, same.marks)
        assert found.id == "d44"


def test_int8_codes_are_re_scored(tiny: Path, table: Path, tmp_path: Path, place: str) -> None:
    """The scores are those of the float vectors, to the last digits, as in a folder."""
    encoder = isotrope.load(tiny)
    made = isotrope.index(encoder, table, place, id_column="doc", precision="int8")
    isotrope.index(encoder, table, tmp_path / "folder", id_column="doc")
    assert [cost.vectors for cost in made.costs] == ["Milvus, HNSW_SQ", "Milvus, HNSW_SQ, re-scored"]
    assert {cost.bytes for cost in made.costs} == {encoder.dimension}
    codes, scored = (cost.recall for cost in made.costs)
    assert 0.9 < codes <= scored
    with isotrope.open_index(place, encoder) as index, isotrope.open_index(tmp_path / "folder", encoder) as exact:
        assert index.info()["precision"] == "int8"
        one, two = (each.search("the sonata", 5, "dense", "year > 2020")[0] for each in (index, exact))
    assert [hit.id for hit in one] == [hit.id for hit in two]
    assert [hit.score for hit in one] == pytest.approx([hit.score for hit in two], abs=1e-6)
    with pytest.raises(InputError, match="in int8; it takes no others"):
        isotrope.index(encoder, table, place, id_column="doc", update=True)
    with pytest.raises(
        InputError, match=r"Milvus.* keeps float32 and int8 vectors here, not binary; take precision int8"
    ):
        isotrope.index(encoder, table, place + "#bits", precision="binary")


def test_words_are_those_of_a_folder(tiny: Path, tmp_path: Path, place: str) -> None:
    """Accents, capitals, Chinese without blanks, letters that stand alone, words with _ between them."""
    texts = ["Ein Café in der Straße", "我去東京旅行", "vitamin D helps", "snake_case_name is code", "nothing here"]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    isotrope.index(tiny, tmp_path / "texts.txt", place)
    with isotrope.open_index(place) as index:
        for query, line in (("CAFE", 1), ("café", 1), ("strasse", 1), ("東京", 2), ("d", 3), ("case", 4)):
            assert [hit.line for hit in index.search(query, 5, "lexical")[0]] == [line], query


def test_stems_are_those_of_a_folder(tiny: Path, tmp_path: Path, place: str) -> None:
    texts = [
        "The cats of this office slept.",
        "A dog is barking at the gate.",
        "Orders are cancelled by the city.",
    ]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    assert isotrope.index(tiny, tmp_path / "texts.txt", place).stemmer == "english"
    with isotrope.open_index(place) as index:
        for query, line in (("cat", 1), ("barked", 2), ("cancelling", 3)):
            (hit,) = index.search(query, 5, "lexical")[0]
            assert (hit.line, len(hit.marks)) == (line, 1), query
            assert index.engine.weights_of(["cancel"], [2])[0] > 0
    assert isotrope.index(tiny, tmp_path / "texts.txt", place, update=True, stemmer="none").stemmer == "none"
    assert isotrope.index(tiny, tmp_path / "texts.txt", place, update=True).stemmer == "none"
    with isotrope.open_index(place) as index:
        assert index.search("cat", 5, "lexical")[0] == []
        assert [hit.line for hit in index.search("cats", 5, "lexical")[0]] == [1]


def test_the_texts_that_were_cut_are_remembered(
    tiny: Path, tmp_path: Path, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    table, more = tmp_path / "texts.tsv", tmp_path / "more.tsv"
    table.write_text("doc\ttext\na\tshort\nb\t" + "long " * 200 + "\nc\t" + "more " * 200 + "\n", encoding="utf-8")
    isotrope.index(tiny, table, place, id_column="doc")
    more.write_text("doc\ttext\nd\t" + "other " * 200 + "\n", encoding="utf-8")
    isotrope.index(tiny, more, place, id_column="doc", add=True)
    with isotrope.open_index(place) as index:
        assert index.info()["cut"] == 3
    assert isotrope.index(tiny, output=place, delete="doc = 'b'").deleted == 1
    with caplog.at_level("INFO", logger="isotrope"):
        isotrope.search(place, "short")
    assert "2 of the 3 texts of the index are longer than the model reads" in caplog.text


def test_rows_come_and_go(tiny: Path, table: Path, tmp_path: Path, place: str) -> None:
    place, more = f"{place}#other", tmp_path / "more.tsv"
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


def test_a_build_that_was_stopped_goes_on(tiny: Path, table: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from isotrope.search import milvus_building

    encoder = isotrope.load(tiny)
    monkeypatch.setattr(milvus_building, "ROWS", 60)
    plain, written = milvus_building._Build._write, []

    def stopping(self: Any, batch: Any, vectors: Any, flags: Any, first: int) -> None:
        if first >= 120:
            raise KeyboardInterrupt
        written.append(first)
        plain(self, batch, vectors, flags, first)

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


def test_a_collection_that_is_not_loaded_is_loaded(tiny: Path, table: Path, tmp_path: Path, place: str) -> None:
    """As a file of Milvus Lite is in a new process."""
    from isotrope.search.index_place import parse_place
    from isotrope.search.milvus_client import connect

    def release() -> None:
        found = parse_place(place)
        client = connect(found)
        client.release_collection(found.collection)
        client.close()

    isotrope.index(tiny, table, place, id_column="doc")
    release()
    assert isotrope.search(place, "the sonata number 44", mode="lexical", top=1)[0].id == "d44"
    release()
    assert isotrope.index(tiny, output=place, delete="year = 2001").deleted == 7
    release()
    more = tmp_path / "more.tsv"
    more.write_text(f"{HEAD}\nd44\tzebra crossing\t2050\tde\n", encoding="utf-8")
    assert isotrope.index(tiny, more, place, id_column="doc", add=True).replaced == 1
