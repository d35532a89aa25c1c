"""An index in a folder: what it finds, how it changes, and what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch

import isotrope
from isotrope.errors import InputError
from isotrope.measures.score_fusion import fuse
from isotrope.search import folder_building, opened_index
from isotrope.search.index_rows import Reading, scan
from isotrope.search.row_filter import read_filter


@pytest.fixture
def table(tmp_path: Path, topics: list[str]) -> Path:
    """300 rows with an id, a year and a language."""
    path = tmp_path / "texts.tsv"
    rows = [f"d{row}\t{text}\t{2000 + row % 30}\t{'en' if row % 3 else 'de'}" for row, text in enumerate(topics[:300])]
    path.write_text("\n".join(["doc\ttext\tyear\tlang", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_building, "ROWS", 64)


@pytest.fixture
def built(tiny: Path, table: Path, tmp_path: Path, small_blocks: None) -> Path:
    isotrope.index(tiny, table, tmp_path / "index", id_column="doc")
    return tmp_path / "index"


def ids(hits: list[isotrope.search.hits.Hit]) -> list[str | None]:
    return [hit.id for hit in hits]


QUERY = "the pilot plays the sonata number 44 near the crater"


def test_dense_is_a_full_sort_and_hybrid_joins_both_rankings(built: Path, tiny: Path, topics: list[str]) -> None:
    encoder = isotrope.load(tiny)
    with isotrope.open_index(built, encoder) as index:
        assert len(index) == 300
        (dense,), (words,), (both,) = (index.search(QUERY, 300, mode) for mode in ("dense", "lexical", "hybrid"))
    cosines = encoder.similarity(QUERY, topics[:300])[0]
    assert [hit.score for hit in dense] == pytest.approx(np.sort(cosines)[::-1].tolist(), abs=1e-5)
    assert [hit.score for hit in words] == sorted((hit.score for hit in words), reverse=True)
    assert words[0].id == "d44"
    rankings = [[(int(str(hit.id)[1:]), hit.score) for hit in hits] for hits in (dense, words)]
    expected = fuse(*rankings, lambda _: [], lambda rows: np.zeros(len(rows)))  # dense names all rows
    assert [hit.score for hit in both] == pytest.approx([one.score for one in expected], abs=1e-5)
    assert {hit.id: hit.bm25 for hit in both} == pytest.approx({f"d{one.row}": one.bm25 for one in expected}, abs=1e-5)
    assert both[0].cosine == pytest.approx(float(cosines[int(str(both[0].id)[1:])]), abs=1e-5)


@pytest.mark.parametrize("precision", ["float32", "int8", "binary"])
def test_a_hybrid_hit_has_both_scores_whichever_ranking_found_it(
    tiny: Path, table: Path, tmp_path: Path, small_blocks: None, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """Rankings of five rows: most hits are of one alone. Deleted rows shift the numbers of words against vectors."""
    encoder = isotrope.load(tiny)
    isotrope.index(encoder, table, tmp_path / "index", id_column="doc", precision=precision)
    isotrope.index(encoder, output=tmp_path / "index", delete="year < 2003")
    monkeypatch.setattr(opened_index, "DEPTH", 5)
    with isotrope.open_index(tmp_path / "index", encoder) as index:
        (words,) = index.search(QUERY, 300, "lexical", "lang = 'en'")
        (hits,) = index.search(QUERY, 1, where="lang = 'en'")
        found = index._found(index.engine, [QUERY], 5, "hybrid", read_filter("lang = 'en'", index.manifest.kinds))[0]
        rows = index.engine.fetch([row for row, *_ in found])
    assert len(found) > 5
    weights = {hit.id: hit.bm25 for hit in words}
    assert [bm25 for *_, bm25 in found] == pytest.approx([weights.get(row["id"], 0.0) for row in rows], abs=1e-5)
    cosines = encoder.similarity(QUERY, [row["text"] for row in rows])[0]
    assert [cosine for _, _, cosine, _ in found] == pytest.approx(cosines.tolist(), abs=1e-5)
    assert [score for _, score, *_ in found] == sorted((score for _, score, *_ in found), reverse=True)
    assert hits[0].id == rows[0]["id"]


def test_hybrid_without_a_shared_word_is_dense_and_one_row_is_found(tiny: Path, built: Path, tmp_path: Path) -> None:
    with isotrope.open_index(built) as index:
        both, dense = (index.search("zzyzx", 20, mode)[0] for mode in ("hybrid", "dense"))
        assert ids(both) == ids(dense)
        assert {hit.bm25 for hit in both} == {0.0}
    (tmp_path / "one.txt").write_text("the only line\n", encoding="utf-8")
    isotrope.index(tiny, tmp_path / "one.txt", tmp_path / "one")
    assert [(hit.line, hit.score) for hit in isotrope.search(tmp_path / "one", "only")] == [(1, 0.0)]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_a_filter_leaves_as_many_hits_as_pass(built: Path, mode: str) -> None:
    index = isotrope.open_index(built)
    allowed = {f"d{row}" for row in range(300) if 2000 + row % 30 > 2020 and row % 3 == 0}
    (hits,) = index.search(QUERY, 200, mode, "year > 2020 and lang = 'de'")
    assert len(hits) == len(allowed) if mode != "lexical" else 0 < len(hits) <= len(allowed)
    assert set(ids(hits)) <= allowed
    assert all(hit.columns["year"] > 2020 and hit.columns["lang"] == "de" for hit in hits)
    assert index.search(QUERY, 5, mode, "year > 3000") == [[]]


def test_a_hit_says_where_it_stands_and_which_words_it_shares(built: Path) -> None:
    hit = isotrope.search(built, "Rocket: NUMBER 33", top=1)[0]
    assert (hit.line, hit.file, hit.id) == (35, "texts.tsv", "d33")
    assert [hit.text[start:end] for start, end in hit.marks] == ["rocket", "number", "33"]
    assert json.loads(json.dumps(hit.to_dict()))["columns"] == {"doc": "d33", "year": 2003, "lang": "de"}


def test_several_queries_give_a_list_for_each(built: Path) -> None:
    one, two = isotrope.search(built, "the boat", "the sonata", top=3)
    assert isotrope.search(built, ["the boat", "the sonata"], top=3) == [one, two]
    assert ids(isotrope.search(built, "the boat", top=3)) == ids(one)


def test_words_are_searched_without_a_model(tiny: Path, table: Path, tmp_path: Path) -> None:
    model = shutil.copytree(tiny, tmp_path / "model")
    isotrope.index(model, table, tmp_path / "index")
    shutil.rmtree(model)
    assert isotrope.search(tmp_path / "index", "number 33", top=1, mode="lexical")[0].line == 35
    with pytest.raises(InputError, match="the model of the index cannot be loaded"):
        isotrope.search(tmp_path / "index", "number 33")


def test_rows_are_added_replaced_and_deleted(built: Path, tiny: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.tsv"
    more.write_text("doc\ttext\tyear\tlang\nd5\ta violin in the kitchen\t2099\tfr\nnew\tthe boat\t1990\tfr\n", "utf-8")
    made = isotrope.index(tiny, more, built, id_column="doc", add=True)
    assert (made.rows, made.encoded, made.replaced) == (301, 2, 1)
    index = isotrope.open_index(built)
    assert len(index) == 301
    (hits,) = index.search("a violin in the kitchen", 400)
    assert len({*ids(hits)}) == len(hits) == 301
    assert next(hit for hit in hits if hit.id == "d5").columns["year"] == 2099
    assert next(hit for hit in hits if hit.id == "d5").file == "more.tsv"
    gone = isotrope.index(tiny, output=built, delete="lang = 'fr' or year < 2010")
    assert gone.deleted == 2 + 99  # d5, whose year is 2099 now, was one of the hundred
    (hits,) = isotrope.open_index(built).search("a violin in the kitchen", 400)
    assert len(hits) == gone.rows == 200
    assert min(hit.columns["year"] for hit in hits) == 2010
    for mode in ("dense", "lexical"):
        assert "new" not in ids(isotrope.open_index(built).search("the boat", 400, mode)[0])
    assert isotrope.index(tiny, output=built, delete="year > 3000").deleted == 0
    with pytest.raises(InputError, match="every row"):
        isotrope.index(tiny, output=built, delete="year > 0")


def test_documents_are_updated_by_adding_the_same_file_again(built: Path, tiny: Path, tmp_path: Path) -> None:
    """The last state of a file counts: what was added before is no change of it."""
    more = tmp_path / "more.tsv"
    for text in ("a new line about bread", "a newer line about bread"):
        more.write_text(f"doc\ttext\tyear\tlang\nd5\t{text}\t2050\tfr\n", encoding="utf-8")
        assert isotrope.index(tiny, more, built, id_column="doc", add=True).replaced == 1
        (hit,) = isotrope.search(built, text, where="lang = 'fr'")
        assert (hit.id, hit.text) == ("d5", text)
    more.write_text("doc\ttext\tyear\tlang\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"more\.tsv has changed since it was indexed"):
        isotrope.search(built, "bread")


def test_an_open_index_follows_what_is_changed(built: Path, tiny: Path, table: Path, tmp_path: Path) -> None:
    """A server has the index open while rows come and go; an update takes the files away that it had opened."""
    encoder, lines = isotrope.load(tiny), table.read_text(encoding="utf-8").splitlines()
    more = tmp_path / "more.tsv"
    more.write_text(f"{lines[0]}\nnew\tzebra crossing\t2050\tfr\n", encoding="utf-8")
    with isotrope.open_index(built, encoder) as index:
        assert (len(index), ids(index.search("zebra crossing", mode="lexical")[0])) == (300, [])
        isotrope.index(encoder, more, built, id_column="doc", add=True)
        assert (ids(index.search("zebra crossing", mode="lexical")[0]), len(index)) == (["new"], 301)
        isotrope.index(encoder, output=built, delete="lang = 'fr'")
        assert (ids(index.search("zebra crossing", mode="lexical")[0]), len(index)) == ([], 300)
        table.write_text("\n".join(lines[:100]) + "\n", encoding="utf-8")
        isotrope.index(encoder, table, built, id_column="doc", update=True)
        assert len(index.search(QUERY, 300, "dense")[0]) == 99
        other = isotrope.load(tiny)
        with torch.no_grad():
            next(other.parameters()).add_(1)
        shutil.rmtree(built)
        assert index.info()["rows"] == 99
        isotrope.index(other, table, built, id_column="doc")
        with pytest.raises(InputError, match="the index was built again with other vectors; open it again"):
            index.search(QUERY)


def test_a_change_in_the_middle_of_a_search_is_no_error(built: Path, tiny: Path, table: Path) -> None:
    encoder, lines = isotrope.load(tiny), table.read_text(encoding="utf-8").splitlines()
    with isotrope.open_index(built, encoder) as index:
        asked, changes = index.engine.dense, []

        def changing(*given: Any) -> Any:
            table.write_text("\n".join(lines[:50]) + "\n", encoding="utf-8")
            changes.append(isotrope.index(encoder, table, built, id_column="doc", update=True))
            return asked(*given)

        index.engine.dense = changing  # type: ignore[method-assign]
        assert len(index.search(QUERY, 300, "dense")[0]) == 49
        assert len(changes) == 1


def test_a_column_without_a_value_fits_any_column(built: Path, tiny: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.tsv"
    more.write_text("doc\ttext\tyear\tlang\nn1\ta new line\t\t\n", encoding="utf-8")
    isotrope.index(tiny, more, built, id_column="doc", add=True)
    (hit,) = isotrope.search(built, "new line", where="year is null")
    assert (hit.id, hit.columns["year"], hit.columns["lang"]) == ("n1", None, None)
    more.write_text("doc\ttext\tyear\tlang\nn2\ta new line\tsoon\ten\n", encoding="utf-8")
    with pytest.raises(InputError, match="the column 'year' holds text values here and number values in the index"):
        isotrope.index(tiny, more, built, id_column="doc", add=True)


def test_many_queries_are_answered_in_parts(built: Path, topics: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with isotrope.open_index(built) as index:
        expected = [index.search(query, 3, rerank=5)[0] for query in topics[:7]]
        monkeypatch.setattr(opened_index, "AT_ONCE", 3)
        found = index.search(topics[:7], 3, rerank=5)
        assert index.search([], 3) == []
    assert [ids(hits) for hits in found] == [ids(hits) for hits in expected]


def test_an_update_is_the_index_of_the_new_text_and_encodes_only_that(built: Path, tiny: Path, table: Path) -> None:
    lines = table.read_text(encoding="utf-8").splitlines()
    table.write_text("\n".join([lines[0], "first\tall new\t1\tit", *lines[100:]]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="an index of other text is here already; with update"):
        isotrope.index(tiny, table, built, id_column="doc")
    with pytest.raises(InputError, match=r"texts\.tsv has changed since it was indexed"):
        isotrope.search(built, "a")
    assert len(isotrope.open_index(built, stale=True)) == 300
    made = isotrope.index(tiny, table, built, id_column="doc", update=True)
    assert (made.rows, made.encoded, made.reused, made.deleted) == (202, 1, 201, 99)
    fresh = built.with_name("fresh")
    isotrope.index(tiny, table, fresh, id_column="doc")
    first, second = (isotrope.open_index(place).search([QUERY, "all new"], 50) for place in (built, fresh))
    assert first == second
    assert isotrope.index(tiny, table, built, id_column="doc").encoded == 0


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_build_that_was_stopped_goes_on_and_ends_the_same(
    tiny: Path, table: Path, tmp_path: Path, small_blocks: None, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    encoder, encoded = isotrope.load(tiny), []
    isotrope.index(encoder, table, tmp_path / "whole", precision=precision)
    plain = folder_building.write_block

    def stopping(folder: Path, *rest: Any) -> None:
        if folder.name == "0000003":
            raise KeyboardInterrupt
        encoded.append(folder.name)
        plain(folder, *rest)

    monkeypatch.setattr(folder_building, "write_block", stopping)
    with pytest.raises(KeyboardInterrupt, match="stopped after 128 of 300 rows; the same command goes on from here"):
        isotrope.index(encoder, table, tmp_path / "index", precision=precision)
    monkeypatch.setattr(folder_building, "write_block", plain)
    with pytest.raises(InputError, match="half-written"):
        isotrope.search(tmp_path / "index", "a")
    with pytest.raises(InputError, match="a half-written index of another text, model or setting is here"):
        isotrope.index(encoder, table, tmp_path / "index", keep=[], precision=precision)
    made = isotrope.index(encoder, table, tmp_path / "index", precision=precision)
    assert (made.encoded, made.reused) == (172, 128)
    first, second = contents(tmp_path / "whole"), contents(tmp_path / "index")
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name] and name != "index.json"] == []


def test_an_index_of_another_model_or_with_other_vectors_is_refused(built: Path, tiny: Path, table: Path) -> None:
    other = isotrope.load(tiny, pooling="cls")
    with pytest.raises(InputError, match="the index was made by another model"):
        isotrope.open_index(built, other)
    for change in ({}, {"update": True}, {"add": True}):
        with pytest.raises(InputError, match="the index was made by another model"):
            isotrope.index(other, table, built, id_column="doc", **change)
    with pytest.raises(InputError, match="keeps 32 dimensions in float32"):
        isotrope.index(tiny, table, built, id_column="doc", precision="int8", update=True)
    for action in ("add", "update"):
        with pytest.raises(InputError, match=f"named by doc; {action} rows with the same id_column"):
            isotrope.index(tiny, table, built, **{action: True})


def test_fewer_bits_and_dimensions_say_what_they_cost(tiny: Path, table: Path, tmp_path: Path) -> None:
    made = isotrope.index(tiny, table, tmp_path / "int8", precision="int8")
    exact, alone, rescored = made.costs
    assert (exact.recall, exact.bytes, alone.bytes) == (1, 128, 32)
    assert 0.8 < alone.recall <= rescored.recall <= 1
    made = isotrope.index(tiny, table, tmp_path / "binary", precision="binary", dimensions=16)
    cut, alone, rescored = made.costs
    assert cut.vectors == "float32, 16 of 32 dimensions"
    assert (made.dimension, cut.bytes, alone.bytes) == (16, 64, 2)
    assert alone.recall < cut.recall < 1
    assert isotrope.index(tiny, table, tmp_path / "plain").costs == ()
    # Where every row is a candidate, re-scoring gives the exact ranking.
    encoder = isotrope.load(tiny)
    for where in (None, "lang = 'de'"):
        one, two = (
            isotrope.open_index(tmp_path / name, encoder).search(QUERY, 300, "dense", where)[0]
            for name in ("int8", "plain")
        )
        assert [hit.line for hit in one] == [hit.line for hit in two]


def test_columns_are_numbers_texts_booleans_or_json(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("text\tn\tid\tmixed\tempty\nx\t1\t007\t5\t\ny\t-2.5e3\t12\tfive\t\n", "utf-8")
    found = scan([tmp_path / "a.tsv"], Reading())
    assert found.kinds == {"n": "number", "id": "text", "mixed": "text", "empty": "text"}
    assert [row.values for row in found.rows()] == [
        {"n": 1, "id": "007", "mixed": "5", "empty": None},
        {"n": -2500.0, "id": "12", "mixed": "five", "empty": None},
    ]
    rows = [{"text": "x", "ok": True, "n": 1, "tags": ["a"]}, {"text": "y", "n": 2.5, "late": None}, {"text": ""}]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    found = scan([tmp_path / "b.jsonl"], Reading())
    assert (len(found), found.empty) == (2, 1)
    assert found.kinds == {"ok": "boolean", "n": "number", "tags": "json", "late": "text"}
    pyarrow.parquet.write_table(pyarrow.table({"text": ["x"], "n": [3]}), tmp_path / "c.parquet")
    assert scan([tmp_path / "c.parquet"], Reading()).kinds == {"n": "number"}
    joined = scan([tmp_path / "a.tsv"], Reading(columns=("mixed", "text"), keep=("n",)))
    assert [row.text for row in joined.rows()] == ["5 x", "five y"]


@pytest.mark.parametrize("given", [{"dimensions": np.int64(8)}, {"passages": np.int64(20)}])
def test_whole_numbers_of_numpy_are_taken(given: dict[str, Any], tiny: Path, table: Path, tmp_path: Path) -> None:
    assert isotrope.index(tiny, table, tmp_path / "index", **given).rows == 300


def test_of_several_columns_each_field_of_an_object_must_be_there(tmp_path: Path) -> None:
    """A slip in one of the names was an index of the other columns alone."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"ticket": {"title": "A", "body": "one"}}) + "\n", encoding="utf-8")
    reading = Reading(columns=("ticket.title", "ticket.body"))
    assert [row.text for row in scan([path], reading).rows()] == ["A one"]
    with pytest.raises(InputError, match=r"a\.jsonl:1: no field 'ticket\.titel'; its fields: 'title', 'body'"):
        scan([path], Reading(columns=("ticket.titel", "ticket.body")))


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ("doc\ttext\nz\tone\nz\ttwo\n", {}, "stands here for the second time"),
        ("doc\ttext\tyear\nz\tone\tnew\n", {}, "the column 'year' holds text values here"),
        ("doc\ttext\nz\tone\n", {"id_column": None}, "rows of the index are named by doc"),
        ("doc\ttext\nz\tone\n", {"dimensions": 8}, "it takes no others"),
        ("doc\ttext\nz\tone\n", {"delete": "yeer < 3"}, "unknown column 'yeer'"),
    ],
)
def test_rows_that_are_refused_cost_no_row(
    built: Path, tiny: Path, tmp_path: Path, rows: str, options: dict[str, Any], said: str
) -> None:
    """``delete`` went first, and then the rows in its place were refused."""
    (tmp_path / "more.tsv").write_text(rows, encoding="utf-8")
    asked: dict[str, Any] = {"id_column": "doc", "add": True, "delete": "year < 2010", **options}
    with pytest.raises(InputError, match=said):
        isotrope.index(tiny, tmp_path / "more.tsv", built, **asked)
    with isotrope.open_index(built) as index:
        assert len(index) == 300


def test_cells_of_several_columns_are_texts_as_the_cell_of_one_is(tmp_path: Path) -> None:
    """Bytes, lists and objects were joined as Python writes them: b'Caf\\xc3\\xa9' ['x', 'y']."""
    path = tmp_path / "a.parquet"
    row = {"title": "Café".encode(), "tags": ["x", "y"], "by": {"name": "Z"}, "text": "one"}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), path)
    (found,) = scan([path], Reading(columns=("title", "tags", "text"), keep=())).rows()
    assert found.text == "Café x y one"
    with pytest.raises(InputError, match=r"a\.parquet:1: .* name one of its fields, such as COLUMN\.name"):
        scan([path], Reading(columns=("by", "text"), keep=()))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": ["texd"]}, "no column 'texd'"),
        ({"keep": ["yeer"]}, "keep names an unknown column 'yeer'; did you mean 'year'"),
        ({"id_column": "dok"}, "id_column names an unknown column 'dok'"),
        ({"id_column": "lang"}, r"texts\.tsv:4: lang 'en' stands here for the second time"),
        ({"precision": "int4"}, "precision is float32, int8"),
        ({"dimensions": 33}, "dimensions must lie between 1 and 32"),
        ({"update": True}, "no index is here to update"),
        ({"add": True}, "no index is here to add"),
        ({"update": True, "add": True}, "exclude each other"),
        ({"delete": "year > 1"}, "no index is here"),
    ],
)
def test_what_cannot_be_indexed_leaves_nothing(
    options: dict[str, Any], said: str, tiny: Path, table: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        isotrope.index(tiny, table, tmp_path / "deep" / "index", **options)
    assert not (tmp_path / "deep").exists()


def test_a_place_that_is_taken_and_a_line_without_end(tiny: Path, table: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me", encoding="utf-8")
    with pytest.raises(InputError, match="holds something else"):
        isotrope.index(tiny, table, tmp_path / "mine")
    with pytest.raises(InputError, match="a file stands where the index should be"):
        isotrope.index(tiny, table, table)
    (tmp_path / "long.txt").write_bytes(b"short\n" + b"x " * 25_000_000 + b"\n")
    with pytest.raises(InputError, match=r"long\.txt:2: the line is longer than 4,000,000 bytes"):
        isotrope.index(tiny, tmp_path / "long.txt", tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_a_damaged_index_is_said(built: Path) -> None:
    for name, content in (("vectors.npy", b"\x93NUMPY"), ("rows.arrow", b"")):
        copy = shutil.copytree(built, built.with_name(name))
        next((copy / "blocks").rglob(name)).write_bytes(content)
        with pytest.raises(InputError, match="not as it was written; remove the index and build it again"):
            isotrope.search(copy, "the boat", top=300)
    (built / "index.json").write_text('{"format": 99}', encoding="utf-8")
    with pytest.raises(InputError, match="format 99"):
        isotrope.search(built, "a")


def test_unicode_and_words_of_one_character(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("東京の夜\nCafé Zürich\nvitamin D\n🙂 only\n", encoding="utf-8")
    isotrope.index(tiny, tmp_path / "t.txt", tmp_path / "index")
    index = isotrope.open_index(tmp_path / "index")
    for query, line in (("京", 1), ("cafe", 2), ("d", 3), ("ONLY", 4)):
        (hits,) = index.search(query, mode="lexical")
        assert [hit.line for hit in hits] == [line]
    assert index.search("🙂", mode="lexical") == [[]]
    assert len(index.search("🙂")[0]) == 4


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str, str]:
        from isotrope.cli import main

        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        return int(ended.value.code or 0), *capsys.readouterr()  # type: ignore[return-value]

    return call


def test_the_commands(run: Run, tiny: Path, table: Path, tmp_path: Path) -> None:
    place = tmp_path / "index"
    code, out, err = run("index", tiny, table, "--output", place, "--id-column", "doc", "--precision", "int8")
    assert (code, err) == (0, "")
    assert "recall@10" in out
    assert "300" in out
    code, out, _ = run("search", place, "rocket number 33", "--top", "2", "--where", "year > 2002 and lang = 'de'")
    assert code == 0
    assert "the pilot lands the **rocket** **number** **33**" in out
    hits = json.loads(run("search", place, "rocket number 33", "--top", 2, "--json")[1])
    assert [list(hit)[:3] for hit in hits] == [["score", "line", "text"]] * 2
    several = json.loads(run("search", place, "the boat", "the sonata", "--json", "--mode", "lexical")[1])
    assert [each["query"] for each in several] == ["the boat", "the sonata"]
    code, out, err = run("search", place, "a", "--where", "yeer > 1")
    assert (code, out) == (2, "")
    assert "did you mean 'year'? (--where)" in err.replace(" (--where)?", "? (--where)")
    code, out, _ = run("index", tiny, "--output", place, "--delete", "lang = 'de'", "--json")
    assert json.loads(out)["deleted"] == 100
    code, _, err = run("search", tmp_path, "a")
    assert code == 2
    assert "no index is here" in err
    code, out, _ = run("search", tiny, table, "rocket number 33", "--where", "year > 2020", "--json")
    assert all(hit["columns"]["year"] > 2020 for hit in json.loads(out))


def test_a_file_of_queries_and_an_id_that_is_shown_once(run: Run, built: Path, tmp_path: Path) -> None:
    asked = tmp_path / "queries.txt"
    asked.write_text("the pilot plays\n\nthe chef bakes the bread\n", encoding="utf-8")
    code, out, _ = run("search", built, "--queries", asked, "--top", 2, "--json")
    found = json.loads(out)
    assert (code, [one["query"] for one in found]) == (0, ["the pilot plays", "the chef bakes the bread"])
    assert [[hit["id"] for hit in one["hits"]] for one in found] == [
        ids(hits) for hits in isotrope.search(built, queries=asked, top=2)
    ]
    asked.write_text("the pilot plays\n", encoding="utf-8")
    assert len(json.loads(run("search", built, "--queries", asked, "--json")[1])) == 1  # the form of several queries
    asked.write_text("\n", encoding="utf-8")
    for words, said in (
        ((built, "--queries", asked), "no query is in the file"),
        ((built, "bread", "--queries", asked), "'bread' is a query too"),
        ((built,), "search needs a query"),
    ):
        code, _, problem = run("search", *words)
        assert (code, said in problem) == (2, True), problem
    code, out, _ = run("search", built, "bread", "--top", 1)
    assert "id" in out.splitlines()[1]
    assert "doc" not in out.splitlines()[1]


def test_a_deletion_of_nothing_is_said(run: Run, built: Path, tiny: Path) -> None:
    code, _, said = run("index", tiny, "--output", built, "--delete", "year > 3000")
    assert (code, "no row passes the filter; nothing was deleted" in said) == (0, True)


def test_milvus_says_what_it_needs(tiny: Path, table: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ends with \.db|needs the extra search"):
        isotrope.index(tiny, table, f"milvus:{tmp_path}/index")
    with pytest.raises(InputError, match="is no name of a collection"):
        isotrope.index(tiny, table, f"milvus:{tmp_path}/index.db#a b")
    with pytest.raises(InputError, match="Milvus Lite keeps float32 and int8 vectors here, not binary"):
        isotrope.index(tiny, table, f"milvus:{tmp_path}/index.db", precision="binary")
    with pytest.raises(InputError, match="a Milvus server keeps float32 and int8 vectors here, not ubinary"):
        isotrope.index(tiny, table, "http://localhost:1", precision="ubinary")
