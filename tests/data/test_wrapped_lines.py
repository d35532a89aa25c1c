"""Wrapped prose is known by its lines, and a corpus with a sentence a line is not taken for it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from isotrope.data.wrapped_lines import are_wrapped, paragraphs

PROSE = (
    "The encoder reads a sentence and returns a vector. Its distances mean something once it was trained, and this "
    "guide says how that is done with the text that you have. Begin with a small file, look at it, and go on from "
    "there when you know what is in it. Nothing else is needed for the first hour."
)


@pytest.mark.parametrize("width", [50, 72, 100, 150])
def test_prose_that_was_wrapped(width: int) -> None:
    lines = textwrap.wrap(4 * f"{PROSE} ", width)
    assert are_wrapped(lines)
    assert are_wrapped([*4 * [*lines, ""], "https://example.org/" + "x" * 150])


def test_sentences_a_line_are_not_wrapped(topics: list[str], sentences: Path) -> None:
    assert not are_wrapped(PROSE.replace(". ", ".\n").splitlines())
    assert not are_wrapped(topics)
    assert not are_wrapped([PROSE, PROSE.lower(), PROSE])  # a paragraph a line
    assert not are_wrapped(["a man plays", "a dog runs over the wide field. yes", "two cats"])
    assert not are_wrapped([])


def test_paragraphs_keep_their_line_numbers() -> None:
    lines = enumerate(["", "a", "b", "", "", "c"], 1)
    assert list(paragraphs(lines)) == [[(2, "a"), (3, "b")], [(6, "c")]]
