"""Labels: any strings, numbered by sorted order, alone or on pairs; held out class by class."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.data import corpus_writer
from isotrope.data.corpus import Records
from isotrope.data.held_out import hold_out
from isotrope.data.sources import find_records
from isotrope.errors import InputError
from isotrope.evaluation.label_free import natural_pairs

NAMES = ["zebra", "10", "2", "à la carte", "x", "Entailment", "0 1 0 0"]


# ---- numbers


@pytest.mark.parametrize("order", [1, -1])
def test_classes_are_numbered_by_sorted_name_whatever_the_order_of_the_file(opened: Any, order: int) -> None:
    corpus = opened([(f"text {name}", name) for name in NAMES[::order]], "labelled")
    assert corpus.classes == sorted(NAMES)
    records = Records(corpus, range(len(NAMES)))
    assert records.labels().tolist() == [sorted(NAMES).index(name) for name in NAMES[::order]]
    assert records.labels().dtype == np.int64
    assert records.values() == corpus.values == NAMES[::order]


def test_numbers_and_truth_values_are_names_too(opened: Any, written: Any) -> None:
    path = written("a.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": true}\n{"text": "c", "label": 1.5}\n')
    assert opened(path, "labelled").classes == ["1", "1.5", "True"]


def test_labels_stay_with_their_texts_over_the_borders_of_blocks(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_writer, "BLOCK", 3)
    rows = [(f"text {i}" if i % 5 else "", NAMES[i % 4]) for i in range(40)]
    corpus = opened(rows, "labelled")
    expected = {text: name for text, name in rows if text}
    assert len(corpus) == len(expected) == 32
    assert {corpus.text(row): corpus.classes[corpus.numbers("label")[row]] for row in range(32)} == expected


def test_labels_are_mapped_not_held_in_memory(opened: Any) -> None:
    assert isinstance(opened([("a", "x"), ("b", "y")], "labelled").numbers("label"), np.memmap)


def test_records_may_come_in_any_order_and_number(opened: Any) -> None:
    corpus = opened([("a", "x"), ("b", "y"), ("c", "x")], "labelled")
    assert Records(corpus, [2, 1, 2]).labels().tolist() == [0, 1, 0]
    assert Records(corpus, []).labels().tolist() == []


@pytest.mark.parametrize(
    ("label", "record_type"), [("entailment", "labelled-pairs"), ("2", "scored-pairs"), ("0.5", "scored-pairs")]
)
def test_a_column_called_label_is_read_as_what_it_holds(written: Any, label: str, record_type: str) -> None:
    path = written("a.tsv", f"sentence1\tsentence2\tlabel\na\tb\t{label}\n")
    assert find_records(path, ["scored-pairs", "labelled-pairs"], None, False).record_type.name == record_type
    assert find_records(path, ["scored-pairs"], None, False).record_type.name == "scored-pairs"


def test_what_carries_no_label_says_which_kinds_do(opened: Any) -> None:
    records = Records(opened(["a", "b"], "sentences"), [0])
    with pytest.raises(InputError, match=r"^sentences carry no label; bring labelled or labelled-pairs\.$"):
        records.labels()
    with pytest.raises(InputError, match=r"^labelled carry no entity; bring linked\.$"):
        assert opened([("a", "x")], "labelled").entities
    with pytest.raises(InputError, match=r"^scored-pairs carry no label"):
        assert opened([("a", "b", 1)], "scored-pairs").classes


def test_scores_are_numbers(opened: Any) -> None:
    corpus = opened([("a", "b", 0.5), ("c", "d", "1e1"), ("e", "f", -2)], "scored-pairs")
    assert Records(corpus, [2, 0, 1]).scores().tolist() == [-2.0, 0.5, 10.0]


# ---- pairs


@pytest.mark.parametrize(
    "header",
    ["premise\thypothesis\tlabel", "label\tpremise\thypothesis", "sentence2\tsentence1\tLabel", "sent0\tsent1\tlabel"],
)
def test_labelled_pairs_are_found_by_their_columns(opened: Any, written: Any, header: str) -> None:
    cells = {
        "premise": "a",
        "sentence1": "a",
        "sent0": "a",
        "hypothesis": "b",
        "sentence2": "b",
        "sent1": "b",
        "label": "neutral",
    }
    path = written("a.tsv", f"{header}\n" + "\t".join(cells[name] for name in header.lower().split("\t")) + "\n")
    corpus = opened(path, "labelled-pairs")
    assert (corpus.text(0, "premise"), corpus.text(0, "hypothesis"), corpus.classes) == ("a", "b", ["neutral"])


def test_labelled_pairs_of_a_list(opened: Any) -> None:
    records = Records(opened([("a", "b", "no"), ("c", "d", "yes")], "labelled-pairs"), [1, 0])
    assert (records.texts("premise"), records.texts("hypothesis"), records.labels().tolist()) == (
        ["c", "a"],
        ["d", "b"],
        [1, 0],
    )


def test_the_published_files_of_inference_and_paraphrase(opened: Any, shared_data: Path) -> None:
    nli = opened(shared_data / "nli" / "rte.dev.tsv.gz", "labelled-pairs")
    assert (len(nli), nli.classes) == (277, ["entailment", "not_entailment"])
    paraphrases = opened(shared_data / "transfer" / "mrpc.test.tsv.gz", "labelled-pairs")
    assert (len(paraphrases), paraphrases.classes) == (1725, ["0", "1"])
    sick = opened(
        shared_data / "sts" / "sick.trial.tsv.gz", "labelled-pairs", columns=["sentence1", "sentence2", "entailment"]
    )
    assert sick.classes == ["contradiction", "entailment", "neutral"]


# ---- bad input


def test_an_empty_label_is_named_with_its_line(complaint: Any, written: Any) -> None:
    path = written("a.tsv", "text\tlabel\none\tx\n\t\ntwo\t \n")
    assert complaint(path, "labelled") == f"{path}:4: the label is empty; fill it in, or take the row out."


def test_a_row_without_text_and_label_is_only_counted(opened: Any, written: Any) -> None:
    assert opened(written("a.tsv", "text\tlabel\none\tx\n\t\n"), "labelled").counts.empty == 1


def test_a_json_row_without_the_label(complaint: Any, written: Any) -> None:
    path = written("a.jsonl", '{"text": "one", "label": "x"}\n{"text": "two"}\n')
    assert complaint(path, "labelled").startswith(f"{path}:2: the label is empty")


def test_a_list_of_labels_where_one_belongs(complaint: Any, written: Any) -> None:
    path = written("a.jsonl", '{"text": "one", "label": ["x", "y"]}\n')
    assert complaint(path, "labelled") == f"{path}:1: a text was expected, and a list found."


@pytest.mark.parametrize("score", ["high", "nan", "inf", "4,5"])
def test_a_score_that_is_no_number_is_named_with_its_line(complaint: Any, score: str) -> None:
    message = complaint([("a", "b", 1), ("c", "d", score)], "scored-pairs")
    assert message == f"the given list:2: the score is '{score}', and a number was expected."


def test_missing_columns_are_named(complaint: Any, written: Any) -> None:
    message = complaint(written("a.csv", "premise,hypothesis,gold\na,b,c\n"), "labelled-pairs")
    assert "'premise', 'hypothesis', 'gold'" in message
    assert "premise/hypothesis/label" in message
    assert "name 3 of those found as `columns`" in message


# ---- held out


def test_every_class_is_held_out_by_its_share(opened: Any) -> None:
    sizes = {"common": 3000, "rare": 60, "some": 940}
    rows = [(f"{name} text {i}", name) for name, size in sizes.items() for i in range(size)]
    corpus = opened(rows, "labelled")
    train, held = hold_out(corpus, 400, 0)
    assert Counter(Records(corpus, held.tolist()).values()) == {"common": 300, "rare": 6, "some": 94}
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(4000))


def test_blocks_draw_the_same_rows(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from isotrope.data import held_out

    corpus = opened([(f"text {i}", str(i * i % 7)) for i in range(1000)], "labelled")
    whole = hold_out(corpus, 100, 3)[1].tolist()
    monkeypatch.setattr(
        held_out, "_blocks", lambda total: [(start, min(start + 37, total)) for start in range(0, total, 37)]
    )
    assert hold_out(corpus, 100, 3)[1].tolist() == whole


def test_many_small_classes_still_give_something_to_hold_out(opened: Any) -> None:
    corpus = opened([(f"text {i}", f"class {i // 4}") for i in range(2000)], "labelled")
    _, held = hold_out(corpus, 200, 0)
    assert len(held) == 200
    assert max(Counter(Records(corpus, held.tolist()).values()).values()) == 1


def test_the_seed_chooses_what_is_held_out(opened: Any) -> None:
    corpus = opened([(f"text {i}", str(i % 3)) for i in range(600)], "labelled")
    first, again, other = (hold_out(corpus, 60, seed)[1].tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_the_hypotheses_of_a_premise_are_held_out_together(opened: Any) -> None:
    labels = ("entailment", "neutral", "contradiction")
    corpus = opened(
        [(f"premise {i % 1000}", f"hypothesis {i}", labels[i // 1000]) for i in range(3000)], "labelled-pairs"
    )
    train, held = hold_out(corpus, 300, 0)
    assert len(held) > 270  # drawn one by one, hardly a premise would be free of the other side
    assert not set(corpus.keys[train].ravel().tolist()) & set(corpus.keys[held].ravel().tolist())
    counts = Counter(Records(corpus, held.tolist()).values())
    assert max(counts.values()) - min(counts.values()) <= 10


# ---- natural pairs


def test_labelled_texts_give_halves_each_text_once(opened: Any) -> None:
    corpus = opened([(f"one two three four five number {i % 25}", "x") for i in range(50)], "labelled")
    record_type, first, second = natural_pairs(corpus, np.arange(50))
    assert (record_type, len(first), len(set(second))) == ("halves", 25, 25)


def test_of_labelled_pairs_only_entailments_are_alike(opened: Any) -> None:
    labels = ("Entailment", "neutral", "contradiction")
    corpus = opened([(f"premise {i}", f"hypothesis {i}", labels[i % 3]) for i in range(90)], "labelled-pairs")
    record_type, first, second = natural_pairs(corpus, np.arange(90))
    assert (record_type, first) == ("pairs", [f"premise {i}" for i in range(0, 90, 3)])
    assert second == [text.replace("premise", "hypothesis") for text in first]


def test_labelled_pairs_without_entailments_give_halves(opened: Any) -> None:
    corpus = opened(
        [(f"one two three four five {i}", f"hypothesis {i}", str(i % 2)) for i in range(60)], "labelled-pairs"
    )
    record_type, first, second = natural_pairs(corpus, np.arange(60))
    assert (record_type, len(first)) == ("halves", 60)
    assert first[0] + " " + second[0] == "one two three four five 0"


def test_of_scored_pairs_the_highest_are_alike(opened: Any) -> None:
    corpus = opened([(f"first {i}", f"second {i}", i % 6) for i in range(240)], "scored-pairs")
    record_type, first, _ = natural_pairs(corpus, np.arange(240))
    assert (record_type, first) == ("pairs", [f"first {i}" for i in range(5, 240, 6)])
