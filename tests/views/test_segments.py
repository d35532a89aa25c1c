"""Segment pairs: what stands in them, how they are cut, how they are framed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from isotrope.data.corpus import Corpus, Records, open_corpus
from isotrope.errors import InputError
from isotrope.tokens.padded import join
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.masking import mask_tokens
from isotrope.views.segments import cut_in_two, draw_elsewhere, draw_length, fit_pair, ids_of, run_from


@pytest.fixture
def corpus(tokenizer: TextTokenizer, tmp_path: Path) -> Corpus:
    """Documents of 4, 1 and 3 sentences."""
    path = tmp_path / "text.txt"
    path.write_text(
        "the fox runs\nthe dog\nthe cat walks\na fox\n\nthe dog walks\n\na cat\nthe fox walks\na dog runs\n",
        encoding="utf-8",
    )
    return open_corpus(path, ("documents",), tokenizer)


def twin(first: list[int], second: list[int], most: int) -> tuple[int, int]:
    """BERT's loop, sizes only."""
    sizes = [len(first), len(second)]
    while sum(sizes) > most:
        sizes[0 if sizes[0] > sizes[1] else 1] -= 1
    return sizes[0], sizes[1]


@pytest.mark.parametrize("most", [2, 5, 8, 13, 40])
def test_the_longer_side_is_cut_as_by_berts_loop(most: int) -> None:
    rng = np.random.default_rng(0)
    for one, other in [(1, 1), (1, 20), (20, 1), (9, 9), (7, 12), (12, 7)]:
        first, second = np.arange(one), np.arange(100, 100 + other)
        found = fit_pair(first, second, most, rng)
        assert (len(found[0]), len(found[1])) == twin(list(first), list(second), most)
        for part, whole in zip(found, (first, second), strict=True):
            assert part.tolist() == list(range(part[0], part[-1] + 1))  # a run, from front or back
            assert set(part.tolist()) <= set(whole.tolist())


def test_tokens_go_at_the_front_and_at_the_back_alike() -> None:
    rng = np.random.default_rng(0)
    fronts = [int(fit_pair(np.arange(30), np.arange(10), 30, rng)[0][0]) for _ in range(400)]
    assert set(fronts) > {3, 5, 7}
    assert np.mean(fronts) == pytest.approx(5, abs=3 * np.sqrt(10 / 4 / 400))


def test_a_run_stays_in_its_document(corpus: Corpus) -> None:
    assert run_from(corpus, 1, 1000) == range(1, 4)
    assert run_from(corpus, 4, 1000) == range(4, 5)
    assert run_from(corpus, 5, 1) == range(5, 6)
    assert run_from(corpus, 5, 1, fewest=2) == range(5, 7)
    assert run_from(corpus, 7, 0) == range(7, 8)
    assert ids_of(corpus, range(5, 8)).tolist() == corpus.joined(5).tolist()


def test_a_run_has_no_more_sentences_than_it_takes(corpus: Corpus) -> None:
    for row in range(len(corpus)):
        for tokens in range(40):
            for fewest in (1, 2):
                end, length = row, 0
                while end < corpus.document(row).stop and (length < tokens or end - row < fewest):
                    length += len(corpus.tokens(end))
                    end += 1
                assert run_from(corpus, row, tokens, fewest) == range(row, end)


def test_both_parts_of_a_run_have_a_sentence() -> None:
    rng = np.random.default_rng(0)
    cuts = {len(cut_in_two(range(3, 8), rng)[0]) for _ in range(200)}
    assert cuts == {1, 2, 3, 4}
    first, second = cut_in_two(range(3, 8), rng)
    assert [*first, *second] == list(range(3, 8))
    assert cut_in_two(range(3, 4), rng) == (range(3, 4), range(4, 4))


def test_elsewhere_is_another_document_of_the_batch_where_there_is_one(corpus: Corpus) -> None:
    rng = np.random.default_rng(0)
    assert {draw_elsewhere(Records(corpus, [0, 1, 4]), 1, rng) for _ in range(50)} == {4}
    assert {draw_elsewhere(Records(corpus, [0, 1]), 1, rng) for _ in range(100)} == {4, 5, 6, 7}
    assert {draw_elsewhere(Records(corpus, [4]), 4, rng) for _ in range(200)} == {0, 1, 2, 3, 5, 6, 7}


def test_one_document_has_no_elsewhere(tokenizer: TextTokenizer, tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("the fox\nthe dog\n", encoding="utf-8")
    corpus = open_corpus(path, ("documents",), tokenizer)
    with pytest.raises(InputError, match="one document"):
        draw_elsewhere(Records(corpus, [0, 1]), 0, np.random.default_rng(0))


def test_some_pairs_are_short() -> None:
    rng = np.random.default_rng(0)
    lengths = [draw_length(60, 0.1, rng) for _ in range(2000)]
    assert max(lengths) == 60
    assert min(lengths) < 8
    assert np.mean(np.array(lengths) < 60) == pytest.approx(0.1 * 58 / 59, abs=3 * np.sqrt(0.09 / 2000))
    assert {draw_length(60, 0.0, rng) for _ in range(50)} == {60}


@pytest.mark.parametrize("kind", ["tokenizer", "byte_tokenizer"])
def test_pairs_are_framed_as_by_the_tokenizer_itself(kind: str, request: pytest.FixtureRequest) -> None:
    tokenizer: TextTokenizer = request.getfixturevalue(kind)
    texts = [("the fox", "the dog walks"), ("a", "a"), ("the cat walks", "fox")]
    sides = [
        [np.array(ids) for ids in tokenizer.tokenizer(list(side), add_special_tokens=False)["input_ids"]]
        for side in zip(*texts, strict=True)
    ]
    found = tokenizer.frame_pairs(*sides)
    expected = tokenizer.tokenizer(*map(list, zip(*texts, strict=True)), padding=True, return_tensors="pt")
    assert torch.equal(found.ids, expected["input_ids"])
    assert torch.equal(found.mask, expected["attention_mask"])
    if kind == "tokenizer":
        assert found.segments is not None
        assert torch.equal(found.segments, expected["token_type_ids"])


def test_segment_ids_go_where_the_rows_go(tokenizer: TextTokenizer) -> None:
    pairs = tokenizer.frame_pairs([np.array([7, 8]), np.array([7])], [np.array([9]), np.array([9, 9, 9, 9])])
    assert pairs.segments is not None
    assert pairs.segments.tolist() == [[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1, 1, 1]]
    part = pairs.rows(slice(0, 1))
    assert part.segments is not None
    assert part.segments.tolist() == [[0, 0, 0, 0, 1, 1]]
    plain = tokenizer.frame([np.array([7])], 10)
    both = join([plain, pairs], tokenizer.pad)
    assert both.segments is not None
    assert both.segments.tolist() == [[0] * 8, *pairs.segments.tolist()]
    assert plain.segments is None is join([plain, plain], tokenizer.pad).segments
    moved = pairs.to(torch.device("cpu"))
    assert moved.segments is not None
    masked = mask_tokens(pairs, tokenizer, np.random.default_rng(0)).tokens
    assert masked.segments is not None
    assert torch.equal(masked.segments, pairs.segments)
