"""Protected sentences, looked for in many texts at once: exactly those of a loop over all pairs."""

from __future__ import annotations

import html
import re
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.data import word_runs
from isotrope.data.compared_words import words_of
from isotrope.data.protected_sentences import SHORTEST, Protected
from isotrope.data.record_blocks import CHARACTERS, record_blocks
from isotrope.data.word_marks import MARKS, VOICING
from isotrope.data.word_runs import WIDTH, WordRuns

few_words = st.lists(st.sampled_from("a b c".split()), max_size=14).map(" ".join)
letters = "n t s m d re ve ll not can na gon x é Σ ß ™ ﬁ 漢 ガ 한 “ — . & - -lrb- b- &quot; &#10; &#39; ' ’ _ 5".split()
pieces = st.sampled_from([*letters, " ", "  ", "\t", "\n", "\xa0", "e\u0301", "か\u3099", "𝝨", "ς", "\x1c"])


def naive(protected: Protected, text: str) -> set[str]:
    """Every protected sentence, held against the text by itself."""
    line = " ".join(words_of(text))
    return {
        sentence
        for sentence in protected.sets
        if sentence == line or (len(sentence.split()) >= WIDTH and f" {sentence} " in f" {line} ")
    }


@settings(max_examples=300, deadline=None)
@given(secrets=st.lists(few_words, min_size=1, max_size=12), texts=st.lists(few_words, max_size=12))
def test_nothing_is_missed_and_nothing_made_up(secrets: list[str], texts: list[str]) -> None:
    """Three different words: sentences begin alike, overlap, and stand in one another."""
    protected = Protected([("one", ["a b c", *secrets]), ("other", secrets[::2])])
    expected = [naive(protected, text) for text in texts]
    assert [set(protected.found_in(text)) for text in texts] == expected
    together = protected.found_among([words_of(text) for text in texts])
    assert [together.get(number, set()) for number in range(len(texts))] == expected
    rows = [texts[place : place + 2] for place in range(0, len(texts), 2)]  # a table of two columns
    names = [
        {name for text in row for sentence in naive(protected, text) for name in protected.sets[sentence]}
        for row in rows
    ]
    assert protected.leaking(rows) == {number: own for number, own in enumerate(names) if own}


@settings(max_examples=100, deadline=None)
@given(secrets=st.lists(few_words, min_size=1, max_size=8), text=few_words)
def test_equal_hashes_of_other_words_find_nothing(secrets: list[str], text: str) -> None:
    """Whatever the hash says, words decide: here all of them have the same."""
    protected = Protected([("set", ["a b c", *secrets])])
    word_runs.hash = lambda word: 7  # type: ignore[attr-defined]
    try:
        collided = Protected([("set", ["a b c", *secrets])])
        assert set(collided.found_in(text)) == naive(protected, text)
    finally:
        del word_runs.hash  # type: ignore[attr-defined]


def test_sets_are_counted_by_their_different_sentences() -> None:
    protected = Protected([("one", ["a b c d", "A b, c d!", "e f"]), ("other", ["a b c d. Now e f g."])])
    assert protected.sizes == {"one": 1, "other": 3}
    assert protected.sets["a b c d"] == {"one", "other"}
    assert min(len(sentence.split()) for sentence in protected.sets) >= SHORTEST


def test_sentences_that_begin_alike_cost_one_look_for_each_length() -> None:
    beginning = "we all know that there is"
    runs = WordRuns(f"{beginning} {number} more" for number in range(1000))
    assert list(runs.candidates([f"so {beginning} no more".split()])) == [(0, f"{beginning} no more")]


def test_a_run_ends_with_its_text() -> None:
    runs = WordRuns(["a b c d e f g"])
    assert list(runs.candidates(["x a b c".split(), "d e f g".split(), []])) == []
    assert list(runs.candidates([])) == []
    assert list(WordRuns([]).candidates(["a b c d e f g".split()])) == []


def plain_words(text: str) -> list[str]:
    """The definition, letter by letter and without a shortcut."""
    text = unicodedata.normalize("NFKD", html.unescape(text).lower().replace("’", "'")).lower().replace("ς", "σ")
    text = "".join(letter for letter in text if letter in MARKS or not unicodedata.combining(letter))
    text = re.sub(r"-[lr][crs]b-", " ", text)
    text = re.sub(r" (n) ?'(t)\b|(?<=\w)(?: ?'|' )(s|t|m|d|re|ve|ll)\b", _joined, text).replace("'", "")
    text = re.sub(rf"(.)[{VOICING}]?", lambda found: f" {found[0]} " if _is_unspaced(found[1]) else found[0], text)
    words = " ".join(re.findall(rf"\w(?:\w|[{MARKS}])*", text))
    return re.sub(r"\b(?:(can) (not)|(gon|wan) (na)|(got) (ta)|(gim|lem) (me))\b", _joined, words).split()


def _is_unspaced(letter: str) -> bool:
    """Kana and Chinese characters; a voicing mark is a part of the one before."""
    blocks = (0x3040, 0x30FF), (0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)
    return letter not in VOICING and any(first <= ord(letter) <= last for first, last in blocks)


def _joined(match: re.Match[str]) -> str:
    return "".join(part for part in match.groups() if part)


@settings(max_examples=1000, deadline=None)
@given(st.lists(pieces, max_size=16).map("".join) | st.text(max_size=30))
def test_words_are_those_of_the_definition(text: str) -> None:
    assert words_of(text) == plain_words(text)


def test_a_capital_that_is_spelled_out_is_a_capital() -> None:
    assert words_of("&#201;LAN &#65;cid ™") == words_of("élan acid tm") == ["elan", "acid", "tm"]


def test_a_sigma_is_one_letter_wherever_it_stands() -> None:
    """``lower`` writes ς at the end of a word, but not for the sigma of formulas."""
    assert words_of("ΟΔΟΣ") == words_of("οδος") == words_of("οδοσ") == words_of("ΟΔΟ𝝨") == ["οδοσ"]
    assert words_of("A𝝨") == plain_words("A𝝨") == ["aσ"]


def test_a_chinese_sentence_is_protected_though_it_has_no_blanks() -> None:
    protected = Protected([("set", ["今天天气很好。", "Eine Zeile davor."])])
    assert protected.found_in("我们觉得今天天气很好，一起去公园。") == ["今 天 天 气 很 好"]
    assert protected.found_in("我们觉得昨天天气很好") == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([0, 1, CHARACTERS // 3, 2 * CHARACTERS]), max_size=20))
def test_blocks_hold_all_records_in_order_and_end_when_they_are_full(lengths: list[int]) -> None:
    blocks = list(record_blocks(lengths, int))
    assert [length for block in blocks for length in block] == lengths
    assert all(sum(block[:-1]) + len(block) <= CHARACTERS for block in blocks)
