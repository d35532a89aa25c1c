"""Words that are looked up have the ids that the tokenizer gives their text."""

from __future__ import annotations

import copy
import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from isotrope.encoders.loading import load
from isotrope.tokens import known_words, text_tokenizer
from isotrope.tokens.known_words import KnownWords, rules_of
from isotrope.tokens.text_tokenizer import TextTokenizer

PIECES = "the cat dog walk runs un believ able 19 84 2 a b c e o # . , | ! [ ] - é ü 北 京 ß σ ς İ mask sep".split()
ODD = "\x00\x01\t\r\n\x0b\x0c\x1f\x7f\x85\xa0\u2009\u200b\u2028\u3000\u0301\u0307\ufffd\ue000\U0001f600ÉÅİΣςK北，“”…–|"
SPECIALS = ("[CLS]", "[MASK]", "[PAD]", "[SEP]", "[UNK]")


def backend_of(lower: bool, border: bool = True, strip: bool | None = None) -> Tokenizer:
    pieces = [*SPECIALS, *PIECES, "The", "##s", "##ed", "##t", "##e", "##é", "##1", "##京"]
    vocabulary = {piece: number for number, piece in enumerate(p for p in pieces if border or p != "|")}
    found = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=12))
    found.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=strip)
    found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    found.add_special_tokens(list(SPECIALS))
    return found


def asked(backend: Tokenizer, texts: list[str]) -> list[list[int]]:
    return [encoding.ids for encoding in backend.encode_batch(texts, add_special_tokens=False)]


def words_of(backend: Tokenizer) -> KnownWords:
    rules = rules_of(backend)
    assert rules is not None
    return KnownWords(lambda texts: asked(backend, texts), rules)


def split(found: tuple[np.ndarray, np.ndarray] | None) -> list[list[int]]:
    assert found is not None
    return [part.tolist() for part in np.split(found[0], np.cumsum(found[1])[:-1])]


def drawn(rng: random.Random) -> str:
    """A text of words, marks, odd characters and special tokens, with and without blanks between them."""
    parts = []
    for _ in range(rng.randint(0, 12)):
        kind = rng.random()
        word = rng.choice(PIECES) * rng.choice((1, 1, 1, 2, 5, 20))
        word = word.upper() if kind < 0.2 else rng.choice(ODD) if kind < 0.25 else word
        parts += [rng.choice(SPECIALS) if kind > 0.985 else word, rng.choice((" ", " ", "  ", "", "\n"))]
    return "".join(parts)


@pytest.mark.parametrize("border", [True, False])
@pytest.mark.parametrize(("lower", "strip"), [(True, None), (False, None), (True, False), (False, True)])
def test_thousands_of_drawn_texts_have_the_ids_of_the_tokenizer(lower, strip, border, monkeypatch):
    monkeypatch.setattr(known_words, "ODDEST", 1.0)
    backend, rng = backend_of(lower, border, strip), random.Random(1)
    words = words_of(backend)
    for _ in range(12):
        texts = [drawn(rng) for _ in range(250)]
        assert split(words.flat(texts)) == asked(backend, texts)
    assert (words.border is not None) == border


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), min_size=1, max_size=6))
def test_any_character_between_plain_words(texts):
    backend = backend_of(True)
    texts = [f"the cat walks {text} the dog runs, {text}the end of a long line of plain words" for text in texts]
    found = words_of(backend).flat(texts)
    assert found is None or split(found) == asked(backend, texts)


def test_words_that_share_a_slot_keep_their_own_ids(monkeypatch):
    monkeypatch.setattr(known_words, "BITS", 2)
    monkeypatch.setattr(known_words, "ODDEST", 1.0)
    backend, rng = backend_of(True), random.Random(2)
    words = words_of(backend)
    for _ in range(4):
        texts = [drawn(rng) for _ in range(200)]
        assert split(words.flat(texts)) == asked(backend, texts)
    assert (words.keys[1] > 0).sum() == 4


def test_words_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(known_words, "MOST", 50)
    backend = backend_of(True)
    words = words_of(backend)
    for block in range(5):
        texts = [f"the cat {100 * block + number} walks" for number in range(100)]
        assert split(words.flat(texts)) == asked(backend, texts)
        assert len(words.words) <= 50 + 103


def test_words_too_long_to_be_remembered_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(known_words, "WIDEST_POOL", 50)
    backend = backend_of(True)
    words = words_of(backend)
    for block in range(5):
        texts = [f"the {'cat' * 30}{100 * block + number} walks" for number in range(100)]
        found = words.flat(texts)
        assert split(found) == asked(backend, texts)
        assert len(words.pool) <= 50 + len(found[0])


def test_the_tokenizer_is_asked_for_a_word_once():
    backend, calls = backend_of(True), []
    rules = rules_of(backend)
    assert rules is not None
    words = KnownWords(lambda texts: [calls.append(texts), asked(backend, texts)][1], rules)
    words.flat(["the cat walks", "the dog runs"])
    calls.clear()
    words.flat(["the dog walks", "the cat runs", ""])
    assert calls == []


def test_text_without_ascii_and_half_characters_are_left_to_the_tokenizer():
    words = words_of(backend_of(True))
    assert words.flat(["北京北京北京"]) is None
    assert words.flat(["the cat \ud800"]) is None


def test_other_tokenizers_are_not_of_the_kind(byte_tokenizer):
    assert rules_of(byte_tokenizer.tokenizer.backend_tokenizer) is None
    changed = backend_of(True)
    changed.add_tokens([AddedToken("runs", normalized=True)])
    assert rules_of(changed) is None
    bare = backend_of(True)
    bare.pre_tokenizer = pre_tokenizers.Whitespace()
    assert rules_of(bare) is None


def many(tokenizer: TextTokenizer) -> list[str]:
    known = [word for word in tokenizer.tokenizer.get_vocab() if not word.startswith("#")]
    rng = random.Random(3)
    return [" ".join(rng.choices(known, k=9)) for _ in range(5000)]


def plain(tokenizer: TextTokenizer, texts: list[str]) -> tuple[list[int], list[int]]:
    rows = tokenizer._ids(texts)
    return [i for row in rows for i in row], [len(row) for row in rows]


def listed(found: tuple[np.ndarray, np.ndarray]) -> tuple[list[int], list[int]]:
    return found[0].tolist(), found[1].tolist()


def test_a_changed_tokenizer_forgets_its_words(tokenizer):
    own = TextTokenizer(copy.deepcopy(tokenizer.tokenizer))
    texts = [text.upper() for text in many(own)]
    before = listed(own.flat(texts))
    assert before == plain(own, texts)
    own.tokenizer.backend_tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    after = listed(own.flat(texts))
    assert after == plain(own, texts)
    assert after != before


def test_a_special_token_that_is_added_later_is_seen(tokenizer):
    own = TextTokenizer(copy.deepcopy(tokenizer.tokenizer))
    texts = [*many(own), "the <<cat>> walks"]
    own.flat(texts)
    own.tokenizer.add_special_tokens({"additional_special_tokens": ["<<cat>>"]})
    found = listed(own.flat(texts))
    assert found == plain(own, texts)
    assert own.tokenizer.convert_tokens_to_ids("<<cat>>") in found[0]


def test_copies_and_pickles_work_after_words_were_met(tokenizer):
    texts = many(tokenizer)
    expected = listed(tokenizer.flat(texts))
    for other in (copy.deepcopy(tokenizer), pickle.loads(pickle.dumps(tokenizer))):
        assert listed(other.flat(texts)) == expected


def test_threads_share_the_words(tokenizer, monkeypatch):
    monkeypatch.setattr(text_tokenizer, "BLOCK", 100)
    own = TextTokenizer(tokenizer.tokenizer)
    texts = many(own)
    parts = [texts[start : start + 500] for start in range(0, len(texts), 500)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(own.flat, parts * 2))
    assert [listed(each) for each in found] == [plain(own, part) for part in parts * 2]


def test_the_encoder_of_the_package_has_the_ids_of_its_tokenizer():
    tokenizer = load("builtin", device="cpu").text_tokenizer
    rng = random.Random(4)
    texts = [f"{drawn(rng)} {text}" for text in many(tokenizer)[:1500]]
    assert tokenizer._known_words() is not None
    assert listed(tokenizer.flat(texts)) == plain(tokenizer, texts)
