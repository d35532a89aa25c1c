"""A template around every text: its ids, what is cut, what a text may say."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.tokens.template import Template, templated
from isotrope.tokens.text_tokenizer import TextTokenizer

WRITTEN = 'A text: "[X]" means [MASK].'
TEXTS = ["the fox", "a", "a a", "", "the old [MASK] river", "the cat eats one stone over the old river " * 9]


@pytest.fixture(params=["tokenizer", "byte_tokenizer", "sentence_pieces"])
def plain(request: pytest.FixtureRequest) -> TextTokenizer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def framed(plain: TextTokenizer) -> TextTokenizer:
    return TextTokenizer(templated(plain.tokenizer, Template.parse(WRITTEN)))


def rows(tokenizer: TextTokenizer, texts: list[str], most: int = 64) -> list[list[int]]:
    flat, lengths = tokenizer.flat(texts)
    tokens = tokenizer.framed(flat, lengths, most)
    return [ids[:length].tolist() for ids, length in zip(tokens.ids, tokens.lengths, strict=True)]


def test_a_row_is_what_stands_before_the_text_alone_and_what_stands_behind(
    plain: TextTokenizer, framed: TextTokenizer
) -> None:
    """As published: three calls of the tokenizer, whose ids are put one behind another."""
    mask = str(plain.tokenizer.mask_token)
    before, text, behind = (list(plain.flat([part])[0]) for part in ('A text: "', "the fox", f'" means {mask}.'))
    assert rows(framed, ["the fox"]) == [[*plain.start, *before, *text, *behind, *plain.suffix]]


def test_transformers_reads_the_same_rows(framed: TextTokenizer) -> None:
    given = framed.tokenizer(TEXTS, truncation=True, max_length=40)["input_ids"]
    assert rows(framed, TEXTS, 40) == given


def test_a_row_has_one_mask_whatever_the_text_says(framed: TextTokenizer) -> None:
    texts = [*TEXTS, f"{framed.tokenizer.mask_token} and {framed.tokenizer.mask_token}"]
    assert [row.count(framed.mask) for row in rows(framed, texts, 32)] == [1] * len(texts)


def test_a_long_text_is_cut_and_not_the_template(framed: TextTokenizer) -> None:
    (row,) = rows(framed, TEXTS[-1:], 32)
    assert len(row) == 32
    assert row[: len(framed.start)] == framed.start
    assert row[-len(framed.suffix) :] == framed.suffix


def test_the_frame_is_found_though_the_template_holds_the_probe(tokenizer: TextTokenizer) -> None:
    """The letter that the tokenizer is asked with stands in the template too."""
    framed = TextTokenizer(templated(tokenizer.tokenizer, Template.parse("a a [X] a [MASK] a")))
    (letter,) = tokenizer.flat(["a"])[0].tolist()
    assert framed.start == [*tokenizer.start, letter, letter]
    assert framed.suffix == [letter, tokenizer.mask, letter, *tokenizer.suffix]


def test_another_template_takes_its_place(plain: TextTokenizer, framed: TextTokenizer) -> None:
    other = Template.parse("[MASK] is the old [X]")
    again, first = (TextTokenizer(templated(one.tokenizer, other)) for one in (framed, plain))
    assert rows(again, TEXTS) == rows(first, TEXTS)


def test_two_segments_stand_in_no_template(plain: TextTokenizer, framed: TextTokenizer) -> None:
    assert framed.pair_frame == plain.pair_frame


def test_the_template_alone_keeps_the_positions_of_a_text(framed: TextTokenizer) -> None:
    """Behind a text of n tokens, each token of the template stands where it stands in the row with the text."""
    gaps = np.array([0, 3, 7])
    tokens = framed.frame_alone(gaps)
    assert tokens.positions is not None
    for row, gap in enumerate(gaps):
        whole = np.arange(len(framed.start) + gap + len(framed.suffix))
        expected = [*whole[: len(framed.start)], *whole[len(framed.start) + gap :]]
        assert tokens.positions[row].tolist() == expected
        assert tokens.ids[row].tolist() == [*framed.start, *framed.suffix]


@pytest.mark.parametrize("written", ["no place", "[X] alone", "[MASK] alone", "[X] [X] [MASK]", "[X] [MASK] [MASK]"])
def test_a_template_without_its_two_places_is_refused(written: str) -> None:
    with pytest.raises(InputError, match=r"one \[X\] for the text and one \[MASK\]"):
        Template.parse(written)
