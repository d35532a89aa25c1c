"""Text → ids → framed rows, against what the tokenizer does by itself."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.tokens.padded import Tokens
from isotrope.tokens.text_tokenizer import TextTokenizer

TEXTS = ["the cat walks", "", "  blanks  at both ends ", "ÉCOLE 北京!", "the " * 40, "a", "the [SEP] fox <s> dog"]


def split(tokenizer: TextTokenizer, texts: list[str]) -> list[np.ndarray]:
    flat, lengths = tokenizer.flat(texts)
    return np.split(flat, np.cumsum(lengths)[:-1])


def real(tokens: Tokens) -> list[list[int]]:
    return [tokens.ids[row, : tokens.lengths[row]].tolist() for row in range(len(tokens))]


@pytest.mark.parametrize("kind", ["tokenizer", "byte_tokenizer"])
@pytest.mark.parametrize("limit", [3, 4, 8, 32, 1000])
def test_framed_rows_are_those_of_the_tokenizer_itself(kind, limit, request):
    tokenizer = request.getfixturevalue(kind)
    tokens = tokenizer.frame(split(tokenizer, TEXTS), limit)
    expected = tokenizer.tokenizer(TEXTS, truncation=True, max_length=limit, padding=True, return_tensors="pt")
    torch.testing.assert_close(tokens.ids, expected["input_ids"])
    torch.testing.assert_close(tokens.mask, expected["attention_mask"])
    assert tokens.lengths.tolist() == expected["attention_mask"].sum(dim=1).tolist()


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=5))
def test_any_text_is_tokenized_as_by_the_tokenizer_itself(tokenizer, byte_tokenizer, texts):
    for each in (tokenizer, byte_tokenizer):
        expected = each.tokenizer(texts)["input_ids"]
        assert real(each.frame(split(each, texts), 10_000)) == expected


def test_the_frame_of_each_family_is_found(tokenizer, byte_tokenizer):
    pieces, pieces_of_bytes = tokenizer.tokenizer, byte_tokenizer.tokenizer
    assert (tokenizer.prefix, tokenizer.suffix) == ([pieces.cls_token_id], [pieces.sep_token_id])
    assert (byte_tokenizer.prefix, byte_tokenizer.suffix) == (
        [pieces_of_bytes.bos_token_id],
        [pieces_of_bytes.eos_token_id],
    )
    assert (byte_tokenizer.pad, byte_tokenizer.mask) == (1, pieces_of_bytes.mask_token_id)
    assert tokenizer.specials == {0, 1, 2, 3, 4}


def test_flat_ids_of_nothing(tokenizer):
    for texts in ([], [""]):
        flat, lengths = tokenizer.flat(texts)
        assert flat.shape == (0,)
        assert lengths.tolist() == [0] * len(texts)
    assert flat.dtype == np.int32
    assert lengths.dtype == np.int64


def test_somebody_elses_truncation_and_padding_do_not_matter(tokenizer):
    expected = tokenizer.flat(TEXTS)[0].tolist()
    tokenizer.tokenizer(TEXTS, truncation=True, max_length=4, padding="max_length")  # stays set in the tokenizer
    assert tokenizer.flat(TEXTS)[0].tolist() == expected


def test_fingerprints_tell_tokenizers_apart(tokenizer, byte_tokenizer):
    assert tokenizer.fingerprint() == tokenizer.fingerprint() != byte_tokenizer.fingerprint()


def test_a_fingerprint_knows_what_the_text_of_a_tokenizer_does_not_say(byte_tokenizer, tokenizer):
    """Truncation that somebody set changes no ids here; reading special tokens as letters does."""
    plain = copy.deepcopy(tokenizer.tokenizer)
    before = TextTokenizer(plain).fingerprint()
    text = TextTokenizer(plain)
    plain.backend_tokenizer.enable_truncation(3)
    assert text.fingerprint() == before
    letters = copy.deepcopy(tokenizer.tokenizer)
    letters.split_special_tokens = True
    assert TextTokenizer(letters).flat(["[SEP]"])[0].tolist() != TextTokenizer(plain).flat(["[SEP]"])[0].tolist()
    assert TextTokenizer(letters).fingerprint() != before


def test_a_text_that_grows_into_its_prompt_is_taken_alone(byte_tokenizer):
    """Behind "the ca" a "t" makes another word of it: the ids of the prompt are not there to be cut off."""
    prompted = TextTokenizer(byte_tokenizer.tokenizer, "the ca")
    whole = prompted.flat(["the cat"])[0].tolist()
    assert whole[: len(prompted.prompt_ids)] != prompted.prompt_ids
    assert prompted.opening(["t", "2"])[0].tolist() == [*prompted.flat(["t"])[0], *prompted.flat(["2"])[0]]
