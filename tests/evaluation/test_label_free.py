"""Measures without labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.data.corpus import Corpus, open_corpus
from isotrope.evaluation.checkpoint_judge import make_judge
from isotrope.evaluation.label_free import (
    Retrieval,
    draw_halves,
    find_other_half,
    halves,
    label_free,
    natural_pairs,
    retrieval,
)


def open_with(folder: Path, source: object, kinds: tuple[str, ...]) -> Corpus:
    tokenizer = isotrope.load(folder).text_tokenizer
    return open_corpus(source, kinds, tokenizer)  # type: ignore[arg-type]


def test_retrieval_of_perfect_reversed_and_collapsed_pairs() -> None:
    assert retrieval(np.eye(5), np.eye(5)) == Retrieval(mrr=1.0, first=1.0)
    assert retrieval(np.eye(2), np.eye(2)[::-1]).mrr == 0.5
    collapsed = retrieval(np.ones((9, 3)), np.ones((9, 3)))
    assert collapsed.first == 0  # a space in which everything is equal finds nothing
    assert collapsed.mrr == pytest.approx(1 / 5)


def test_halves_are_cut_between_words_or_characters() -> None:
    assert halves("one two three four five six") == ("one two three", "four five six")
    assert halves("今天天气很好我们去公园散步吧") == ("今天天气很好我", "们去公园散步吧")
    assert halves("too short") is None
    assert halves("too short", words=2) == ("too", "short")


def test_documents_give_neighbours_pairs_give_pairs_and_loose_sentences_give_halves(
    tiny: Path, sentences: Path
) -> None:
    corpus = open_with(tiny, sentences, ("sentences",))
    origin, first, second = natural_pairs(corpus, np.arange(80))
    assert origin == "neighbours"
    position = {corpus.text(row): row for row in range(80)}
    assert all(
        position[b] == position[a] + 1 and position[a] // 8 == position[b] // 8
        for a, b in zip(first, second, strict=True)
    )
    assert natural_pairs(open_with(tiny, [("a b", "b c"), ("d e", "f g")], ("pairs",)), np.arange(2)) == (
        "pairs",
        ["a b", "d e"],
        ["b c", "f g"],
    )
    loose = [f"one two three four five number {i}" for i in range(30)]
    assert natural_pairs(open_with(tiny, loose, ("sentences",)), np.arange(30))[0] == "halves"


def test_label_free_measures_are_finite_and_named(tiny: Path, sentences: Path) -> None:
    corpus = open_with(tiny, sentences, ("sentences",))
    measures = label_free(isotrope.load(tiny), natural_pairs(corpus, np.arange(200)))
    assert set(measures) == {
        "retrieval_mrr",
        "retrieval_first",
        "alignment",
        "uniformity",
        "effective_rank",
        "mean_cosine",
    }
    assert all(np.isfinite(value) for value in measures.values())


def test_halves_are_asked_for_of_held_out_text_and_told_apart_from_the_rest(tiny: Path) -> None:
    lines = [f"sentence {number} begins here and ends with word {number}" for number in range(200)]
    corpus, held = open_with(tiny, lines, ("sentences",)), np.arange(100, 150)
    drawn = draw_halves(corpus, held, queries=30, distractors=60)
    assert drawn is not None
    sentences = [f"{a} {b}" for a, b in zip(drawn.first, drawn.second, strict=True)]
    assert len(set(sentences)) == 30
    assert set(sentences) <= {lines[row] for row in held}
    assert len(set(drawn.distractors)) == 60
    assert not set(drawn.distractors) & {half[1] for row in held if (half := halves(lines[row]))}
    assert drawn == draw_halves(corpus, held, queries=30, distractors=60)  # the same for every checkpoint and process
    encoder = isotrope.load(tiny)
    a, b, others = (encoder.encode(side, normalize_embeddings=True) for side in drawn)
    ranks = [1 + sum(a[row] @ other > a[row] @ b[row] for other in [*b, *others]) for row in range(30)]
    assert find_other_half(encoder, drawn) == pytest.approx(np.mean([1 / rank for rank in ranks]), rel=1e-3)


def test_a_checkpoint_is_chosen_by_the_other_half_by_pairs_where_there_are_some_and_by_scores_first(
    tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    encoder = isotrope.load(tiny)
    text = open_with(tiny, sentences, ("sentences",))
    judged = make_judge(text, np.arange(200), ())(encoder)
    assert judged.chosen_by == "other_view"
    assert 0 < judged.score == judged.measures["other_view"] < 1
    pairs = open_with(tiny, [(f"question {n} of all", f"answer {n} to it") for n in range(60)], ("pairs",))
    assert draw_halves(pairs, np.arange(30)) is None
    assert make_judge(pairs, np.arange(30), ())(encoder).chosen_by == "retrieval_mrr"
    scored = tmp_path / "scored.tsv"
    scored.write_text("sentence1\tsentence2\tscore\na b\ta c\t1\na b\td e\t0\nf g\tf g\t5\n", encoding="utf-8")
    by_scores = make_judge(text, np.arange(200), (scored,))(encoder)
    assert by_scores.chosen_by == "spearman"
    assert "other_view" not in by_scores.measures
    assert draw_halves(open_with(tiny, ["too short"] * 50, ("sentences",)), np.arange(25)) is None
