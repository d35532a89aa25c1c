"""Passages: nothing is lost, none is too long, and a search finds the best one of each text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import isotrope
from isotrope.cli import app
from isotrope.errors import InputError
from isotrope.search.folder_engine import FolderEngine
from isotrope.search.passages import Passage, joined_passages, passages_of, placed
from isotrope.search.query_words import words_of

SENTENCES = [
    "The chef bakes the bread in the warm kitchen.",
    "The sailor steers the boat across the windy bay.",
    "The pilot lands the rocket near the dusty crater.",
    "The farmer waters the roses behind the old house.",
]


def test_whole_sentences_are_joined_while_they_fit() -> None:
    text = " ".join(SENTENCES)
    assert passages_of(text, 20) == [" ".join(SENTENCES[:2]), " ".join(SENTENCES[2:])]
    assert passages_of(text, 9) == SENTENCES
    assert passages_of(text, 1000) == [text]
    assert passages_of("", 5) == []


def test_a_long_sentence_is_cut_between_words_and_chinese_between_letters() -> None:
    assert passages_of("one two three four five six seven", 3) == ["one two three", "four five six", "seven"]
    assert passages_of("厨师在温暖的厨房里烤面包", 5) == ["厨师在温暖", "的厨房里烤", "面包"]


@given(st.text(alphabet="ab .!?\n厨师é-", max_size=300), st.integers(1, 12))
def test_nothing_but_white_space_is_lost_and_none_is_too_long(text: str, most: int) -> None:
    found = passages_of(text, most)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(len(words_of(passage)) <= most for passage in found)


@given(st.text(alphabet="ab .!?\n厨师é-", max_size=300), st.integers(1, 12))
def test_a_passage_stands_where_its_place_says(text: str, most: int) -> None:
    found = passages_of(text, most)
    places = placed(found, text)
    assert [place.number for place in places] == list(range(1, len(found) + 1))
    for passage, place in zip(found, places, strict=True):
        assert place.of == len(found)
        assert text[place.start : place.end].strip() == text[place.start : place.end]
        assert "".join(text[place.start : place.end].split()) == "".join(passage.split())


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    rows = [
        {"doc": "town", "title": "The town", "body": " ".join(SENTENCES), "year": 2001},
        {"doc": "short", "title": "Bread", "body": "Salt and soup.", "year": 2002},
        {"doc": "bare", "title": "A title without a body", "body": "", "year": 2003},
    ]
    path = tmp_path / "articles.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def built(model: Path, articles: Path, place: Any, **options: Any) -> Any:
    return isotrope.index(
        model, articles, place, columns=["title", "body"], id_column="doc", **{"passages": 10, **options}
    )


@pytest.mark.parametrize("engine", ["folder", "milvus"])
def test_the_best_passage_of_each_text_is_found(tiny: Path, articles: Path, tmp_path: Path, engine: str) -> None:
    if engine == "milvus":
        pytest.importorskip("milvus_lite", reason="the extra search is not installed")
    place = str(tmp_path / "index") if engine == "folder" else f"milvus:{tmp_path / 'docs.db'}"
    assert built(tiny, articles, place).rows == 6
    with isotrope.open_index(place) as index:
        assert index.info()["passages"] == 10
        for mode in ("lexical", "hybrid", "dense"):
            (hits,) = index.search("rocket near the crater", 6, mode)
            assert len({hit.id for hit in hits}) == len(hits)
            if mode != "dense":
                assert (hits[0].id, hits[0].text) == ("town", f"The town {SENTENCES[2]}")
                assert hits[0].passage[:2] == (3, 4)
                start, end = hits[0].passage[2:]
                assert " ".join(SENTENCES)[start:end] == SENTENCES[2]  # of the column that was split
        assert len(index.search("bread", 6, "dense")[0]) == 3
        assert {hit.text for hit in index.search("bread", 6, "dense", "year > 2001")[0]} == {
            "Bread Salt and soup.",
            "A title without a body",
        }


def test_a_hit_says_which_passage_it_is_and_where_it_stands(tiny: Path, tmp_path: Path) -> None:
    """The places are those of the text as the file has it, white space and all; the short form takes passages too."""
    body = f"  {SENTENCES[0]}\n\n{SENTENCES[1]}\t {SENTENCES[2]}"
    file = tmp_path / "texts.jsonl"
    file.write_text(json.dumps({"text": body}) + "\n" + json.dumps({"text": "Soup."}) + "\n", "utf-8")
    asked = ["search", str(tiny), str(file), "rocket crater", "--passages", "9", "--mode", "lexical"]
    (hit,) = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert (hit["text"], hit["passage"]["number"], hit["passage"]["of"]) == (SENTENCES[2], 3, 3)
    assert body[hit["passage"]["start"] : hit["passage"]["end"]] == SENTENCES[2]
    shown = CliRunner().invoke(app, asked).stdout
    assert "passage" in shown
    assert "3 of 3" in shown
    (whole,) = isotrope.search(tiny, file, "rocket crater", mode="lexical")
    assert (whole.text, whole.passage) == (" ".join(SENTENCES[:3]), None)
    assert "passage" not in whole.to_dict()
    (soup,) = isotrope.search(tiny, file, "soup", mode="lexical", passages=9)
    assert soup.passage == Passage(1, 1, 0, 5)


def test_a_line_has_its_places_too(tiny: Path, tmp_path: Path) -> None:
    line = f"  {SENTENCES[0]}   {SENTENCES[1]}"
    (tmp_path / "texts.txt").write_text(f"Soup.\n{line}\n", "utf-8")
    (hit,) = isotrope.search(tiny, tmp_path / "texts.txt", "sailor", mode="lexical", passages=9)
    assert hit.passage is not None
    assert (hit.line, line[hit.passage.start : hit.passage.end]) == (2, SENTENCES[1])


def test_an_older_index_has_hits_without_places(tiny: Path, articles: Path, tmp_path: Path, monkeypatch: Any) -> None:
    from isotrope.search import folder_building

    write = folder_building.write_block

    def before(folder: Path, rows: Any, *others: Any) -> None:
        write(folder, [row._replace(passage=None) for row in rows], *others)

    monkeypatch.setattr(folder_building, "write_block", before)
    built(tiny, articles, tmp_path / "index")
    assert [hit.passage for hit in isotrope.search(tmp_path / "index", "rocket", mode="lexical")] == [None]


def test_passages_of_an_index_are_fixed(tiny: Path, articles: Path, tmp_path: Path) -> None:
    built(tiny, articles, tmp_path / "index")
    with pytest.raises(InputError, match="passages is fixed in an index"):
        isotrope.search(tmp_path / "index", "rocket", passages=20)
    with pytest.raises(InputError, match="passages must be at least 5"):
        isotrope.search("no such model", articles, "rocket", passages=2)


def test_a_text_that_is_added_again_replaces_all_its_passages(tiny: Path, articles: Path, tmp_path: Path) -> None:
    built(tiny, articles, tmp_path / "index")
    again = tmp_path / "again.jsonl"
    again.write_text(json.dumps({"doc": "town", "title": "The town", "body": "Gone.", "year": 1}) + "\n", "utf-8")
    changed = built(tiny, again, tmp_path / "index", add=True)
    assert (changed.rows, changed.replaced) == (3, 4)
    for action in ("add", "update"):  # an update would make whole texts of the passages, and cut them
        with pytest.raises(InputError, match=f"one of passages of 10 words; {action} rows with the same passages"):
            built(tiny, again, tmp_path / "index", passages=None, **{action: True})


def test_a_build_goes_on_in_the_middle_of_a_text(
    tiny: Path, articles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from isotrope.search import folder_building

    monkeypatch.setattr(folder_building, "ROWS", 3)
    write, calls = folder_building.write_block, []

    def stopping(*given: Any) -> None:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        write(*given)

    monkeypatch.setattr(folder_building, "write_block", stopping)
    with pytest.raises(KeyboardInterrupt):
        built(tiny, articles, tmp_path / "index")
    made = built(tiny, articles, tmp_path / "index")
    assert (made.rows, made.reused) == (6, 3)
    whole = built(tiny, articles, tmp_path / "whole")
    assert whole.rows == made.rows
    with isotrope.open_index(tmp_path / "index") as one, isotrope.open_index(tmp_path / "whole") as other:
        assert one.search("roses", 3) == other.search("roses", 3)


@pytest.mark.parametrize("passages", [0, 4, 10_001])
def test_passages_of_no_use_are_refused_first(passages: int, tmp_path: Path, articles: Path) -> None:
    with pytest.raises(InputError, match="passages must be at"):
        isotrope.index("no such model", articles, tmp_path / "index", passages=passages)
    assert not (tmp_path / "index").exists()


def test_words_of_a_whole_text_count_together(tiny: Path, tmp_path: Path) -> None:
    """BM25 is that of an index of whole texts; the hit is the passage with most of the words."""
    soups = [f"Soup number {row}." for row in range(5)]
    lines = [" ".join(SENTENCES), "The bread is warm.", "The rocket is old.", *soups]
    (tmp_path / "texts.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, passages in (("index", 10), ("whole", None)):
        isotrope.index(tiny, tmp_path / "texts.txt", tmp_path / name, passages=passages)
    query = "bread rocket crater"
    with isotrope.open_index(tmp_path / "index") as index, isotrope.open_index(tmp_path / "whole") as whole:
        (found,), (expected,) = (one.search(query, 3, "lexical") for one in (index, whole))
        (both,) = index.search(query, 3)
    assert [(hit.line, hit.score) for hit in found] == [(hit.line, hit.score) for hit in expected]
    assert found[0].text == SENTENCES[2]
    assert {hit.line: hit.bm25 for hit in both}[1] == pytest.approx(found[0].score)


def test_a_title_before_each_passage_counts_once() -> None:
    assert joined_passages(["The town one two.", "The town three."]) == "The town one two. three."
    assert joined_passages(["The town alone."]) == "The town alone."


def test_owners_are_counted_over_live_rows(tiny: Path, articles: Path, tmp_path: Path) -> None:
    built(tiny, articles, tmp_path / "index")
    assert FolderEngine(tmp_path / "index").owners.tolist() == [0, 0, 0, 0, 1, 2]
    isotrope.index(tiny, output=tmp_path / "index", delete="year = 2002")
    again = tmp_path / "again.jsonl"
    row = {"doc": "new", "title": "The town", "body": " ".join(SENTENCES[:2]), "year": 1}
    again.write_text(json.dumps(row) + "\n", "utf-8")
    built(tiny, again, tmp_path / "index", add=True)
    assert FolderEngine(tmp_path / "index").owners.tolist() == [0, 0, 0, 0, 1, 2, 2]


def test_a_build_names_the_way_out_for_texts_that_are_cut(
    tiny: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "long.txt"
    file.write_text(" ".join(f"word{row}" for row in range(300)) + "\nshort\n", encoding="utf-8")
    with caplog.at_level("INFO", "isotrope"):
        isotrope.index(tiny, file, tmp_path / "whole")
        assert "1 of the 2 texts of the index are longer than the model reads" in caplog.text
        assert "--passages 80" in caplog.text
        caplog.clear()
        isotrope.index(tiny, file, tmp_path / "parts", passages=200)
    assert "Take fewer words than 200." in caplog.text
