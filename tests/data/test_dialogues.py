"""Dialogues and documents: read from every form alike, kept whole, handed out whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.data import corpus_writer
from isotrope.data.corpus import Corpus, Records
from isotrope.data.held_out import hold_out
from isotrope.evaluation.label_free import natural_pairs

DIALOGUES = [["Hello. Who is there?", "Me."], ["Tea?"], ["Hello. Who is there?", "You.", "No, you."]]
FORMS = {
    "a.txt": "\n\n".join("\n".join(dialogue) for dialogue in DIALOGUES) + "\n",
    "b.txt": "\n \n\n".join("\n".join(dialogue) for dialogue in DIALOGUES),
    "a.tsv": "dialogue\tutterance\n"
    + "".join(f"d{n}\t{text}\n" for n, dialogue in enumerate(DIALOGUES) for text in dialogue),
    "b.tsv": "text\tspeaker\tDialogue_ID\n"
    + "".join(f"{text}\tx\t{n}\n" for n, dialogue in enumerate(DIALOGUES) for text in dialogue),
    "a.jsonl": '{"utterances": ["Hello. Who is there?", "Me."]}\n{"utterances": ["Tea?", ""]}\n'
    '{"utterances": ["Hello. Who is there?", "You.", "No, you."], "dialogue_id": 7}\n',
    "b.jsonl": '{"dialogue": ["Hello. Who is there?", "Me."]}\n{"dialogue": []}\n{"dialogue": ["Tea?"]}\n'
    '{"dialogue": ["Hello. Who is there?", "You.", "No, you."]}\n',
}


def as_lists(corpus: Corpus) -> list[list[str]]:
    return [records.texts() for records in Records(corpus, corpus.starts.tolist()).whole()]


# ---- every form


@pytest.mark.parametrize("name", FORMS)
def test_a_file_gives_its_dialogues(opened: Any, written: Any, name: str) -> None:
    corpus = opened(written(name, FORMS[name]), "dialogues")
    assert as_lists(corpus) == DIALOGUES
    assert corpus.documents.tolist() == [0, 0, 1, 2, 2, 2]
    assert corpus.counts.documents == 3


@pytest.mark.parametrize("record_type", ["dialogues", "documents"])
@pytest.mark.parametrize("form", [list, tuple])
def test_a_list_of_lists_is_dialogues_or_documents_already_cut(opened: Any, record_type: str, form: type) -> None:
    assert as_lists(opened([form(dialogue) for dialogue in DIALOGUES], record_type)) == DIALOGUES


def test_a_list_of_dictionaries(opened: Any) -> None:
    rows = [{"turn": text, "talk": n} for n, dialogue in enumerate(DIALOGUES) for text in dialogue]
    assert as_lists(opened(rows, "dialogues", columns=["turn", "talk"])) == DIALOGUES


def test_utterances_are_split_only_when_asked(opened: Any, written: Any) -> None:
    corpus = opened(written("a.tsv", FORMS["a.tsv"]), "dialogues", split=True)
    assert as_lists(corpus)[0] == ["Hello.", "Who is there?", "Me."]
    assert corpus.counts.documents == 3


def test_dialogues_cross_the_borders_of_blocks(opened: Any, written: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_writer, "BLOCK", 2)
    for name in ("a.txt", "a.tsv"):
        assert as_lists(opened(written(name, FORMS[name]), "dialogues")) == DIALOGUES


def test_the_published_dialogues(opened: Any, shared_data: Path) -> None:
    corpus = opened(shared_data / "corpora" / "dialog_sgd.txt.xz", "dialogues")
    assert (len(corpus), corpus.counts.documents, len(corpus.starts)) == (312_248, 17_193, 17_193)
    _, held = hold_out(corpus, 512, 0)
    assert len(held) > 480  # "Thank you." stands on both sides, and the dialogues are kept for all that


# ---- bad input


@pytest.mark.parametrize("content", ["utterance\nhello\n", "utterance\tdialogue\nhello\t\n", "dialogue\nhello\n"])
def test_an_utterance_without_a_dialogue(complaint: Any, written: Any, content: str) -> None:
    path = written("a.tsv", content)
    message = complaint(path, "dialogues")
    assert message.startswith(f"{path}:2: an utterance that names no dialogue;")
    assert "dialogue_id" in message


def test_a_list_of_strings_is_no_list_of_dialogues(complaint: Any) -> None:
    assert complaint(["hello", "you"], "dialogues").startswith("the given list:1: an utterance that names no dialogue")


def test_a_dialogue_that_goes_on_later_is_not_taken_for_a_new_one(complaint: Any, written: Any) -> None:
    path = written("a.csv", "dialogue,utterance\nx,one\nx,two\ny,three\nx,four\n")
    assert (
        complaint(path, "dialogues")
        == f"{path}:5: dialogue 'x' goes on here after another one began; sort the rows by dialogue."
    )


def test_something_else_than_a_text_in_a_dialogue(complaint: Any, written: Any) -> None:
    path = written("a.jsonl", '{"utterances": ["fine"]}\n{"utterances": ["fine", {"text": "not fine"}]}\n')
    assert complaint(path, "dialogues") == f"{path}:2: a text was expected, and a dict found."


def test_too_many_columns_are_counted_and_the_possible_one_named(complaint: Any, written: Any) -> None:
    path = written("a.tsv", FORMS["b.tsv"])
    message = complaint(path, "dialogues", columns=["text", "speaker", "Dialogue_ID"])
    assert message.startswith(
        f"{path}: dialogues take 1 column (utterance) and, if there is one, dialogue, and `columns` names 3"
    )


# ---- whole documents


@pytest.fixture
def documents(opened: Any) -> Corpus:
    lists = [[f"sentence {i} of document {d}" for i in range(1 + d % 4)] for d in range(50)]
    return opened(lists, "documents")


def test_any_row_leads_to_its_whole_document(documents: Corpus) -> None:
    for row in range(len(documents)):
        whole = documents.document(row)
        assert row in whole
        assert {documents.documents[other] for other in whole} == {documents.documents[row]}
        assert len(whole) == 1 + documents.documents[row] % 4


def test_joined_tokens_are_those_of_the_sentences_one_after_another(documents: Corpus) -> None:
    records = Records(documents, [len(documents) - 1, 0, 7, 5])
    for joined, whole in zip(records.joined(), records.whole(), strict=True):
        assert joined.tolist() == np.concatenate(whole.tokens()).tolist()
        assert joined.dtype == np.int32


def test_records_know_their_documents_and_neighbours(documents: Corpus) -> None:
    rows = [0, 1, 2, 3, 5, 6]  # documents 0, 1, 1, 2, 2, 3; row 4 is left out
    records = Records(documents, rows)
    assert records.documents().tolist() == [0, 1, 1, 2, 2, 3]
    near = (np.diff(records.positions()) == 1) & (np.diff(records.documents()) == 0)
    assert near.tolist() == [False, True, False, False, False]


# ---- held out


@pytest.mark.parametrize("record_type", ["dialogues", "documents"])
@pytest.mark.parametrize("seed", range(5))
def test_dialogues_are_held_out_whole_though_they_share_utterances(opened: Any, record_type: str, seed: int) -> None:
    corpus = opened([["Hello.", f"What about {d}?", "Thank you.", "Good-bye."] for d in range(300)], record_type)
    train, held = hold_out(corpus, 100, seed)
    assert len(held) == 100
    assert not set(corpus.documents[train].tolist()) & set(corpus.documents[held].tolist())
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(1200))


def test_a_dialogue_all_of_whose_utterances_are_shared_is_left_out_of_both(opened: Any) -> None:
    corpus = opened(
        [["Hello.", "Good-bye."] if d % 2 else ["Hello.", f"What about {d}?"] for d in range(300)], "dialogues"
    )
    train, held = hold_out(corpus, 60, 0)
    texts = Records(corpus, held.tolist()).texts()
    assert "Good-bye." not in texts
    assert len(train) == 540
    assert 20 <= len(held) < 60


def test_of_documents_longer_than_asked_for_the_shortest_is_held_out(opened: Any) -> None:
    sizes = [3, *range(200, 220)]
    corpus = opened([[f"sentence {i} of {d}" for i in range(size)] for d, size in enumerate(sizes)], "documents")
    train, held = hold_out(corpus, 50, 0)
    assert set(corpus.documents[held].tolist()) == {1}
    assert (len(held), len(train)) == (200, len(corpus) - 200)
    assert len(hold_out(corpus, 0, 0)[1]) == 0


def test_a_document_over_a_tenth_is_not_held_out(opened: Any) -> None:
    corpus = opened([[f"sentence {i} of {d}" for i in range(200)] for d in range(5)], "documents")
    assert [len(side) for side in hold_out(corpus, 50, 0)] == [1000, 0]


def test_a_lone_document_is_held_out_by_sentence(opened: Any, written: Any) -> None:
    corpus = opened(written("book.txt", "\n".join(f"sentence {i}" for i in range(1000))), "documents")
    assert 50 < len(hold_out(corpus, 100, 0)[1]) < 150


# ---- natural pairs


def test_neighbours_stay_within_a_dialogue(opened: Any) -> None:
    corpus = opened([[f"dialogue {d} turn {i}" for i in range(3)] for d in range(60)], "dialogues")
    record_type, first, second = natural_pairs(corpus, np.arange(30, 150))
    assert record_type == "neighbours"
    assert len(first) == 40
    for a, b in zip(first, second, strict=True):
        assert a.split()[1] == b.split()[1]
        assert int(b.split()[3]) == int(a.split()[3]) + 1


def test_what_stood_around_a_gap_is_no_pair(opened: Any) -> None:
    corpus = opened([[f"dialogue {d} turn {i}" for i in range(60)] for d in range(2)], "dialogues")
    rows = np.array([row for row in range(120) if row % 3])
    record_type, first, second = natural_pairs(corpus, rows)
    assert record_type == "neighbours"
    assert {*first, *second} <= set(Records(corpus, rows.tolist()).texts())


def test_a_row_without_a_text_ends_no_dialogue(opened: Any) -> None:
    rows = [{"text": text, "dialogue_id": name} for text, name in (("Hello.", "a"), ("", "b"), ("Bye.", "a"), ("", ""))]
    corpus = opened(rows, "dialogues")
    assert as_lists(corpus) == [["Hello.", "Bye."]]
    assert corpus.counts.empty == 2
