"""A long text as passages: whole sentences, joined while they fit.

A model reads a fixed number of tokens, so one vector stands for the beginning of a long text alone. An index of
passages has a vector for each, and a hit is the passage that answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from isotrope.data.sentences import split_sentences
from isotrope.search.query_words import words_of


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
