"""A long text as passages: whole sentences, joined while they fit.

A model reads a fixed number of tokens, so one vector stands for the beginning of a long text alone. An index of
passages has a vector for each, and a hit is the passage that answers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise, takewhile
from typing import NamedTuple

from isotrope.data.sentences import split_sentences
from isotrope.errors import check_between
from isotrope.search.query_words import words_of

WORDS = (5, 10_000)  # of a passage: the least and the most


class Passage(NamedTuple):
    """Which one of its text, from 1, of how many, and its characters in the text: ``text[start:end]``.

    The text is as the file has it: the line, or the cell of the column that was split.
    """

    number: int
    of: int
    start: int
    end: int


def check_passages(passages: int | None) -> int | None:
    if passages is None:
        return None
    check_between("passages", passages, *WORDS)
    return int(passages)  # JSON takes no whole number of numpy


def passages_of(text: str, most: int) -> list[str]:
    """The text in order, nothing lost but white space: at most ``most`` words each, as search counts words.

    A sentence that is longer than that is cut between its words; a word that is longer stays whole.
    """
    found: list[str] = []
    room = 0
    for sentence in split_sentences(text):
        for piece in _pieces(sentence, most):
            size = len(words_of(piece))
            if found and size <= room:
                found[-1], room = f"{found[-1]} {piece}", room - size
            else:
                found.append(piece)
                room = most - size
    return found


def placed(passages: Sequence[str], text: str) -> list[Passage]:
    """Where passages of a text stand in it. They have its letters in order, and other white space."""
    words = [found.span() for found in re.finditer(r"\S+", text)]
    before = [0, *accumulate(end - start for start, end in words)]  # letters before each word

    def place(letter: int) -> int:
        number = bisect_right(before, letter) - 1
        return words[number][0] + letter - before[number]

    letters = [0, *accumulate(sum(map(len, passage.split())) for passage in passages)]
    spans = [(place(first), place(last - 1) + 1) if first < last else (0, 0) for first, last in pairwise(letters)]
    return [Passage(number, len(spans), *span) for number, span in enumerate(spans, start=1)]


def joined_passages(passages: Sequence[str]) -> str:
    """The words of a text, of all its passages; the title that stands before each of them is there once."""
    words = [passage.split() for passage in passages]
    columns = list(takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False)))
    lead = len(columns) if len(words) > 1 else 0
    return " ".join([*words[0][:lead], *(word for own in words for word in own[lead:])])


def _pieces(sentence: str, most: int) -> Iterator[str]:
    if len(words_of(sentence)) <= most:
        yield sentence
        return
    piece: list[str] = []
    size = 0
    for word in _parts(sentence, most):
        count = len(words_of(word))
        if piece and size + count > most:
            yield " ".join(piece)
            piece, size = [], 0
        piece.append(word)
        size += count
    yield " ".join(piece)


def _parts(sentence: str, most: int) -> Iterator[str]:
    """Between blanks; a run of letters without any, such as Chinese, every ``most`` letters."""
    for part in sentence.split():
        if len(words_of(part)) <= most:
            yield part
        else:
            yield from (part[start : start + most] for start in range(0, len(part), most))
