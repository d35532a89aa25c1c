"""Text → ids → padded rows, against what the tokenizer does by itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.tokens.text_tokenizer import TextTokenizer, Tokens, Words, join

TEXTS = ["the cat walks", "", "  blanks  at both ends ", "ÉCOLE 北京!", "the " * 40, "a", "the [SEP] fox <s> dog"]


def split(tokenizer: TextTokenizer, texts: list[str]) -> list[np.ndarray]:
    flat, lengths = tokenizer.flat(texts)
    return np.split(flat, np.cumsum(lengths)[:-1])


def view(*lengths: int, pad: int = 0, extra: int = 0) -> Tokens:
    """Rows 100·(row+1) + position, so that each token says where it comes from."""
    width = max(lengths) + extra
    present = torch.arange(width) < torch.tensor(lengths)[:, None]
    ids = torch.where(present, 100 * torch.arange(1, len(lengths) + 1)[:, None] + torch.arange(width), pad)
    return Tokens(ids, present.long(), np.array(lengths, dtype=np.int64))


def real(tokens: Tokens) -> list[list[int]]:
    return [tokens.ids[row, : tokens.lengths[row]].tolist() for row in range(len(tokens))]


# -----------------------------------------------------------------------------------------------------------------------
# tokenizer


@pytest.mark.parametrize("kind", ["tokenizer", "byte_tokenizer"])
@pytest.mark.parametrize("limit", [3, 4, 8, 32, 1000])
def test_framed_rows_are_those_of_the_tokeniser_itself(kind, limit, request):
    tokenizer = request.getfixturevalue(kind)
    tokens = tokenizer.frame(split(tokenizer, TEXTS), limit)
    expected = tokenizer.tokenizer(TEXTS, truncation=True, max_length=limit, padding=True, return_tensors="pt")
    torch.testing.assert_close(tokens.ids, expected["input_ids"])
    torch.testing.assert_close(tokens.mask, expected["attention_mask"])
    assert tokens.lengths.tolist() == expected["attention_mask"].sum(dim=1).tolist()


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=5))
def test_any_text_is_tokenised_as_by_the_tokeniser_itself(tokenizer, byte_tokenizer, texts):
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


def test_fingerprints_tell_tokenisers_apart(tokenizer, byte_tokenizer):
    assert tokenizer.fingerprint() == tokenizer.fingerprint() != byte_tokenizer.fingerprint()


# ---------------------------------------------------------------------------------------------------------------------------
# words


def spelled(tokenizer: TextTokenizer, text: str) -> list[str]:
    """Each word or special token of a text, as it is spelled."""
    ids = tokenizer.flat([text])[0]
    starts, _ = tokenizer.words.split(ids)
    return ["".join(tokenizer.tokenizer.convert_ids_to_tokens(part.tolist())) for part in np.split(ids, starts[1:])]


def split_pieces(words: Words, vocabulary: dict[str, int], pieces: str) -> list[str]:
    ids = np.array([vocabulary[piece] for piece in pieces.split()], dtype=np.int32)
    return ["".join(pieces.split()[i] for i in part) for part in np.split(np.arange(len(ids)), words.split(ids)[0][1:])]


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 9999), length=st.integers(1, 30))
def test_word_pieces_are_put_together_as_a_loop_does(tokenizer, seed, length):
    ids = np.random.default_rng(seed).integers(0, tokenizer.vocabulary, length)
    starts, words = tokenizer.words.split(ids)
    pieces = tokenizer.tokenizer.convert_ids_to_tokens(ids.tolist())
    expected = [
        i for i, piece in enumerate(pieces) if i == 0 or not piece.startswith("##") or pieces[i - 1].startswith("[")
    ]
    assert starts.tolist() == expected
    assert words.tolist() == [
        number for number, start in enumerate(expected) if pieces[start] not in ("[CLS]", "[SEP]", "[PAD]")
    ]


def test_words_of_a_text(tokenizer, byte_tokenizer):
    assert spelled(tokenizer, "the doxy walks old") == ["the", "do##x##y", "walks", "old"]
    assert spelled(byte_tokenizer, "the doxy walks, (old)!") == ["the", "Ġdoxy", "Ġwalks", ",", "Ġ(", "old", ")", "!"]
    assert spelled(byte_tokenizer, "the cat<s>dog") == ["the", "Ġcat", "<s>", "dog"]
    assert spelled(tokenizer, "the [SEP] 北 cat") == ["the", "[SEP]", "[UNK]", "cat"]


def test_scripts_without_blanks_have_words_too():
    pieces = ["▁", "▁我", "喜欢", "。", "▁the", "s", "▁한", "국", "▁(", "▁a.b", ".", "<s>"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    words = Words.of(vocabulary, frozenset({11}), frozenset({11}), None)
    assert split_pieces(words, vocabulary, "▁the s 。 s") == ["▁thes", "。", "s"]
    assert split_pieces(words, vocabulary, "▁我 喜欢 喜欢 s 。 s") == ["▁我", "喜欢", "喜欢", "s", "。", "s"]
    assert split_pieces(words, vocabulary, "▁한 국 . 국") == ["▁한국", ".", "국"]
    assert split_pieces(words, vocabulary, "▁( s ▁a.b s <s> s") == ["▁(", "s", "▁a.bs", "<s>", "s"]


def test_a_lone_blank_is_part_of_what_follows():
    vocabulary = {"▁": 0, "▁the": 1, "s": 2, "我": 3, "(": 4, "<s>": 5}
    words = Words.of(vocabulary, frozenset({5}), frozenset({5}), None)
    assert split_pieces(words, vocabulary, "▁ s ▁ 我 我 ▁ ( s") == ["▁s", "▁我", "我", "▁(", "s"]
    assert split_pieces(words, vocabulary, "▁ ▁the ▁ ▁ s") == ["▁▁the", "▁▁s"]
    assert split_pieces(words, vocabulary, "▁the ▁ <s> s") == ["▁the", "▁", "<s>", "s"]


def test_without_marks_each_piece_is_a_word():
    vocabulary = {"[CLS]": 0, "the": 1, "fox": 2}
    words = Words.of(vocabulary, frozenset({0}), frozenset({0}), None)
    starts, ordinary = words.split(np.array([0, 1, 2, 2]))
    assert (starts.tolist(), ordinary.tolist()) == ([0, 1, 2, 3], [1, 2, 3])


def test_unknown_and_mask_stand_for_words_unless_they_frame_the_text_too(tokenizer):
    from transformers import PreTrainedTokenizerFast

    known = tokenizer.tokenizer
    fixed = tokenizer.words.fixed.nonzero()[0].tolist()
    assert fixed == sorted([known.cls_token_id, known.sep_token_id, known.pad_token_id])
    backend = known.backend_tokenizer
    other = TextTokenizer(
        PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[SEP]", eos_token="[SEP]", mask_token="[MASK]")
    )
    assert other.words.fixed[known.sep_token_id]
    assert not other.words.fixed[known.mask_token_id]


def test_pieces_can_be_taken_for_words(tokenizer):
    ids = tokenizer.frame(split(tokenizer, ["the doxy"]), 100).ids[0].numpy()
    starts, words = tokenizer.words.split_pieces(ids)
    assert starts.tolist() == list(range(6))
    assert words.tolist() == [1, 2, 3, 4]


def test_no_ids_have_no_words(tokenizer):
    starts, words = tokenizer.words.split(np.empty(0, dtype=np.int32))
    assert starts.size == words.size == 0


# ----------------------------------------------------------------------------------------------------------------------------
# rows


def test_rows_come_without_the_padding_they_do_not_need():
    tokens = view(5, 2, 3, extra=4)
    some = tokens.rows(slice(1, 3))
    assert some.ids.tolist() == [[200, 201, 0], [300, 301, 302]]
    assert some.mask.tolist() == [[1, 1, 0], [1, 1, 1]]
    assert some.lengths.tolist() == [2, 3]
    assert real(tokens.rows(np.array([2, 0, 2]))) == [real(tokens)[i] for i in (2, 0, 2)]
    assert tokens.rows(np.array([1])).ids.shape == (1, 2)


def test_no_rows_are_rows_too():
    assert len(view(5, 2).rows(slice(0, 0))) == 0


@given(
    sizes=st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=4), min_size=1, max_size=4), extra=st.integers(0, 2)
)
def test_joined_views_keep_their_rows_in_order(sizes, extra):
    views = [view(*lengths, pad=9, extra=extra) for lengths in sizes]
    whole = join(views, pad=9)
    assert real(whole) == [row for part in views for row in real(part)]
    assert (
        whole.mask.sum(dim=1).tolist() == whole.lengths.tolist() == [length for lengths in sizes for length in lengths]
    )
    assert (whole.ids[whole.mask == 0] == 9).all()


def test_moving_keeps_the_lengths_on_the_host():
    moved = view(3, 1).to(torch.device("meta"))
    assert moved.ids.device.type == "meta"
    assert isinstance(moved.lengths, np.ndarray)
