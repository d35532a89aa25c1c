"""Marks that carry meaning stay in the words that are compared; accents go."""

from __future__ import annotations

import re
from unicodedata import normalize

import pytest

from isotrope.data import compared_words
from isotrope.evaluation import lexical
from isotrope.search import query_words


@pytest.mark.parametrize("words_of", [compared_words.words_of, query_words.words_of])
def test_vowel_signs_are_a_part_of_the_word(words_of) -> None:  # type: ignore[no-untyped-def]
    assert words_of("हिन्दी भाषा, कि का की") == ["हिन्दी", "भाषा", "कि", "का", "की"]
    assert words_of("தமிழ் மொழி") == ["தமிழ்", normalize("NFKD", "மொழி")]
    assert words_of("น้ำ") != words_of("นำ")


@pytest.mark.parametrize("words_of", [compared_words.words_of, query_words.words_of])
def test_voicing_marks_are_a_part_of_the_syllable(words_of) -> None:  # type: ignore[no-untyped-def]
    assert words_of("か") != words_of("が")
    assert words_of("ハ") != words_of("バ") != words_of("パ") != words_of("ハ")
    for composed in ("がくせい", "パン", "ゔ"):
        assert words_of(composed) == words_of(normalize("NFD", composed))
        assert len(words_of(composed)) == len(composed)


@pytest.mark.parametrize("words_of", [compared_words.words_of, query_words.words_of])
def test_accents_are_folded_however_they_are_written(words_of) -> None:  # type: ignore[no-untyped-def]
    assert words_of("Café") == words_of("Cafe\u0301") == words_of("cafe") == ["cafe"]
    assert words_of("cafe\u0301s") == ["cafes"]
    assert words_of("Ёлка") == words_of("елка")


def test_the_words_of_tf_idf_have_their_signs() -> None:
    assert re.findall(lexical.WORD, "हिन्दी की भाषा a at 東京") == ["हिन्दी", "की", "भाषा", "at", "東", "京"]
