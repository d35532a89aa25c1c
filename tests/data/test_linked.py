"""Sentences linked to entities, with or without hard negatives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.data import corpus_writer
from isotrope.data.batches import batches
from isotrope.data.corpus import Corpus, Records
from isotrope.data.held_out import hold_out
from isotrope.data.links import Links
from isotrope.evaluation.label_free import natural_pairs

ROWS = [
    ("The cat sat.", "Cat", "Dog|Red panda"),
    ("The dog ran.", "Dog", ""),
    ("A planet rose.", "Venus", " Mars | Mars || Cat "),
]
HARD = [["Dog", "Red panda"], [], ["Mars", "Cat"]]


def hard_names(corpus: Corpus, rows: Any = range(3)) -> list[list[str]]:
    return [[corpus.entities[number] for number in numbers] for numbers in Records(corpus, rows).hard_entities()]


# ---- reading


def test_entities_are_numbered_by_sorted_name_those_of_hard_negatives_too(opened: Any) -> None:
    corpus = opened(ROWS, "linked")
    assert corpus.entities == ["Cat", "Dog", "Mars", "Red panda", "Venus"]
    records = Records(corpus, [2, 0])
    assert (records.entities().tolist(), records.entities().dtype) == ([4, 0], np.int64)
    assert records.texts() == ["A planet rose.", "The cat sat."]
    assert [numbers.tolist() for numbers in records.hard_entities()] == [[2, 0], [1, 3]]


def test_hard_negatives_are_parted_by_bars_each_once(opened: Any) -> None:
    assert hard_names(opened(ROWS, "linked")) == HARD


def test_hard_negatives_may_be_a_list_and_may_be_missing(opened: Any, written: Any) -> None:
    path = written(
        "a.jsonl",
        '{"sentence": "The dog ran.", "entity": "Dog"}\n'
        '{"sentence": "The cat sat.", "entity": "Cat", "hard_entities": ["Dog", "Red | panda"]}\n'
        '{"sentence": "A planet rose.", "entity": "Venus", "hard_entities": null}\n',
    )
    assert hard_names(opened(path, "linked")) == [[], ["Dog", "Red | panda"], []]


def test_without_the_column_there_are_no_hard_negatives(opened: Any) -> None:
    corpus = opened([row[:2] for row in ROWS], "linked")
    assert hard_names(corpus) == [[], [], []]
    assert corpus.entities == ["Cat", "Dog", "Venus"]


@pytest.mark.parametrize("columns", [["sent", "link"], ["sent", "link", "unlike"]])
def test_columns_are_given_by_name_with_or_without_hard_negatives(
    opened: Any, written: Any, columns: list[str]
) -> None:
    path = written(
        "a.tsv", "link\tunlike\thard_entities\tsent\n" + "".join(f"{e}\t{hard}\tno\t{s}\n" for s, e, hard in ROWS)
    )
    corpus = opened(path, "linked", columns=columns)
    assert Records(corpus, range(3)).values() == ["Cat", "Dog", "Venus"]
    assert hard_names(corpus) == (HARD if len(columns) == 3 else [[], [], []])


def test_hard_negatives_stay_with_their_sentences_over_the_borders_of_blocks(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus_writer, "BLOCK", 2)
    rows = [
        (f"sentence {i}" if i % 3 else "", f"entity {i}", "|".join(f"entity {i + k}" for k in range(1, i % 4)))
        for i in range(20)
    ]
    corpus = opened(rows, "linked")
    expected = {sentence: hard.split("|") if hard else [] for sentence, _, hard in rows if sentence}
    assert (
        dict(zip(Records(corpus, range(len(corpus))).texts(), hard_names(corpus, range(len(corpus))), strict=True))
        == expected
    )


def test_the_published_mentions(opened: Any, shared_data: Path) -> None:
    path = shared_data / "entity" / "gum_wikified_mentions.tsv.gz"
    corpus = opened(path, "linked", columns=["sentence", "entity"])
    assert (len(corpus), len(corpus.entities)) == (10_915, 2603)
    assert Records(corpus, [0]).values() == ["Francisco de Zurbarán"]
    assert Records(opened(path, "linked"), [0]).values() == ["Francisco de Zurbarán"]  # its columns are known by name
    by_type = opened(path, "linked", columns=["sentence", "entity_type"])
    assert "person" in by_type.entities


# ---- pages


def paged(pages: list[str | None]) -> list[dict[str, Any]]:
    """Four persons, each linked from a sentence of its own."""
    names = ["Ann", "Bob", "Cat", "Dan"]
    return [
        {"sentence": f"Here is {name}.", "entity": name, "entity_type": "person", **({"page": page} if page else {})}
        for name, page in zip(names, pages, strict=True)
    ]


def drawn(corpus: Corpus, row: int, **settings: Any) -> set[str]:
    links, rng = Links(corpus, **settings), np.random.default_rng(0)
    found = [links.hard_entity(row, rng) for _ in range(100)]
    return {corpus.entities[number] if number >= 0 else "none" for number in found}


def test_pages_are_numbered_and_may_be_missing(opened: Any, written: Any) -> None:
    assert opened(paged(["P", "Q", "P", None]), "linked").page_numbers().tolist() == [0, 1, 0, -1]
    assert opened(ROWS, "linked").page_numbers().tolist() == [-1, -1, -1]
    path = written("a.tsv", "sent\tlink\tpage\tentity_type\nHere is Ann.\tAnn\tP\tperson\n")
    for columns in (["sent", "link", "page"], ["sent", "link", "entity_type", "page"]):
        assert opened(path, "linked", columns=columns).page_numbers().tolist() == [0]
    assert opened(path, "linked", columns=["sent", "link"]).page_numbers().tolist() == [-1]


def test_a_hard_entity_stands_on_another_page(opened: Any) -> None:
    corpus = opened(paged(["P", "P", "Q", "R"]), "linked")
    assert drawn(corpus, 0) == {"Cat", "Dan"}
    assert drawn(corpus, 3) == {"Ann", "Bob", "Cat"}
    assert drawn(corpus, 0, by_page=False) == {"Bob", "Cat", "Dan"}


def test_without_a_page_the_sentence_alone_counts(opened: Any) -> None:
    corpus = opened(paged([None, None, "Q", "Q"]), "linked")
    assert drawn(corpus, 0) == {"Bob", "Cat", "Dan"}
    assert drawn(corpus, 2) == {"Ann", "Bob"}


def test_where_all_of_a_type_stand_on_the_page_there_is_no_hard_entity(opened: Any) -> None:
    assert drawn(opened(paged(["P"] * 4), "linked"), 1) == {"none"}


# ---- bad input


def test_a_table_without_sentences_says_what_is_missing(complaint: Any, written: Any) -> None:
    message = complaint(written("a.tsv", "line\tstart\tend\tentity\n10\t3\t9\tVenus\n"), "linked")
    assert "'line', 'start', 'end', 'entity'" in message
    assert "sentence/entity" in message


def test_a_sentence_without_an_entity(complaint: Any, written: Any) -> None:
    path = written("a.tsv", "sentence\tentity\nThe cat sat.\tCat\nIt rains.\t\n")
    assert complaint(path, "linked") == f"{path}:3: the entity is empty; fill it in, or take the row out."


def test_an_entity_among_its_own_hard_negatives(complaint: Any, written: Any) -> None:
    path = written("a.tsv", "sentence\tentity\thard_entities\nThe cat sat.\tCat\tDog|Cat\n")
    assert complaint(path, "linked") == f"{path}:2: 'Cat' stands among its own hard negatives; take it out there."


def test_a_number_of_columns_that_cannot_be(complaint: Any, written: Any) -> None:
    path = written("a.tsv", "a\tb\tc\td\n1\t2\t3\t4\n")
    for columns in (["a"], ["a", "b", "c", "d"]):
        message = complaint(path, "linked", columns=columns)
        assert "linked take 2 columns (sentence, entity) and, if there is one, hard_entities" in message
        assert f"`columns` names {len(columns)}" in message


def test_tuples_of_another_width(opened: Any) -> None:
    from isotrope.errors import InputError

    with pytest.raises(InputError, match="tuples of 4; linked were wanted"):
        opened([("a", "b", "c", "d")], "linked")


def test_a_text_file(complaint: Any, written: Any) -> None:
    assert (
        "linked were asked for; give a .tsv, .csv, .jsonl or .parquet file with columns sentence/entity"
        in complaint(written("a.txt", "The cat sat.\n"), "linked")
    )


# ---- held out, batches, natural pairs


@pytest.fixture
def mentions(opened: Any) -> Corpus:
    """600 sentences with one to five entities each."""
    rows = [
        (f"one two three four five sentence {i}", f"entity {(i + k) % 80}")
        for i in range(600)
        for k in range(1 + i % 5)
    ]
    return opened(rows, "linked")


def test_the_entities_of_a_sentence_are_held_out_together(mentions: Corpus) -> None:
    train, held = hold_out(mentions, 150, 0)
    assert 140 < len(held) <= 150
    assert not set(mentions.keys[train].ravel().tolist()) & set(mentions.keys[held].ravel().tolist())


def test_a_sentence_stands_in_a_batch_with_one_of_its_entities(mentions: Corpus) -> None:
    for batch in batches("unique", mentions, np.arange(len(mentions)), 32, 0, 0):
        assert len(set(Records(mentions, batch.tolist()).texts())) == 32


def test_linked_sentences_give_halves_each_once(mentions: Corpus) -> None:
    record_type, first, second = natural_pairs(mentions, np.arange(90))
    assert record_type == "halves"
    assert len(set(second)) == len(first) == 30
