"""Which pieces begin a word, for vocabularies with every sort of mark and for scripts without blanks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.tokens.word_pieces import Words

# How byte-level vocabularies write bytes: printed ones as they are in Latin-1, the others from U+0100 on.
HIDDEN = [byte for byte in range(256) if byte not in {*range(33, 127), *range(161, 173), *range(174, 256)}]
BYTE_LETTERS = {byte: 256 + place for place, byte in enumerate(HIDDEN)}


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


def test_bytes_of_scripts_without_blanks_begin_words_too():
    """Byte-level pieces: 我 and 😀 whole, 喜 cut behind its first and 欢 behind its second byte; é and 국 go on."""

    def piece(raw: bytes) -> str:
        return raw.decode("latin1").translate(BYTE_LETTERS)

    whole = {name: piece(name.encode()) for name in ("我", "😀", "é", "국", "a", ".", "’", "我我", "a我")}
    cut = {"喜": ("喜".encode()[:1], "喜".encode()[1:]), "欢": ("欢".encode()[:2], "欢".encode()[2:])}
    named = {**whole, " a": "Ġa", " 我": "Ġ" + whole["我"]}
    named |= {f"{name}{place}": piece(raw) for name, parts in cut.items() for place, raw in enumerate(parts)}
    vocabulary = {spelling: number for number, spelling in enumerate(named.values())}
    words = Words.of(vocabulary, frozenset(), frozenset(), None)

    def split(*names: str) -> list[list[str]]:
        starts, _ = words.split(np.array([vocabulary[named[name]] for name in names]))
        return [list(part) for part in np.split(np.array(names, dtype=object), starts[1:])]

    assert split(" a", "é", "a", ".", " a", "’", "a") == [[" a", "é", "a"], ["."], [" a", "’", "a"]]
    assert split(" 我", "我", "a", "我我", "국") == [[" 我"], ["我"], ["a"], ["我我"], ["국"]]
    assert split("我", "喜0", "喜1", "欢0", "欢1", "😀", "a") == [["我"], ["喜0", "喜1"], ["欢0", "欢1"], ["😀"], ["a"]]
    assert split(" a", "국", "국", "a我", "我") == [[" a", "국", "국", "a我"], ["我"]]


def test_bytes_that_sentencepiece_falls_back_to_are_one_letter():
    names = ["▁a", "▁b", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "<0xC3>", "<0xA9>", "s"]
    vocabulary = {name: number for number, name in enumerate(names)}
    words = Words.of(vocabulary, frozenset(), frozenset(), None)
    face = "<0xF0> <0x9F> <0x98> <0x80>"
    assert split_pieces(words, vocabulary, f"▁a {face} {face}") == ["▁a", *[face.replace(" ", "")] * 2]
    assert split_pieces(words, vocabulary, "▁a <0xC3> <0xA9> s ▁b") == ["▁a<0xC3><0xA9>s", "▁b"]


def test_a_chinese_text_of_a_real_byte_level_tokenizer_has_a_word_a_letter(byte_tokenizer):
    ids = byte_tokenizer.flat(["我喜欢 the cat。"])[0]
    starts, _ = byte_tokenizer.words.split(ids)
    texts = [byte_tokenizer.tokenizer.decode(part.tolist()) for part in np.split(ids, starts[1:])]
    assert [text.strip() for text in texts] == ["我", "喜", "欢", "the", "cat", "。"]


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
    ids = tokenizer.frame([tokenizer.flat(["the doxy"])[0]], 100).ids[0].numpy()
    starts, words = tokenizer.words.split_pieces(ids)
    assert starts.tolist() == list(range(6))
    assert words.tolist() == [1, 2, 3, 4]


def test_no_ids_have_no_words(tokenizer):
    starts, words = tokenizer.words.split(np.empty(0, dtype=np.int32))
    assert starts.size == words.size == 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from("aé我あ국’，😀\ue000."), min_size=1, max_size=8), st.integers(0, 9999))
def test_a_word_begins_with_a_letter_however_its_bytes_are_cut(letters, seed):
    raw = "".join(letters).encode()
    cuts = [0, *(np.random.default_rng(seed).random(len(raw) - 1) < 0.5).nonzero()[0] + 1, len(raw)]
    pieces = [raw[start:end].decode("latin1").translate(BYTE_LETTERS) for start, end in pairwise(cuts)]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys([*pieces, "Ġx", "Ġy"]))}
    words = Words.of(vocabulary, frozenset(), frozenset(), None)
    ids = np.array([vocabulary[piece] for piece in ("Ġx", *pieces)])
    starts = {cuts[place - 1] for place in words.split(ids)[0].tolist() if place}
    assert all(raw[start] not in range(0x80, 0xC0) for start in starts)


@pytest.mark.parametrize("letter", "é我あ국’，😀\ue000")
def test_the_first_byte_of_a_letter_shows_its_script(letter):
    pieces = ["Ġx", *letter.encode().decode("latin1").translate(BYTE_LETTERS)]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys([*pieces, "Ġy"]))}
    words = Words.of(vocabulary, frozenset(), frozenset(), None)
    starts, _ = words.split(np.array([vocabulary[piece] for piece in pieces]))
    assert starts.tolist() == ([0] if letter in "é국’" else [0, 1])
