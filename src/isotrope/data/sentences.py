"""Split running text into sentences: English and other spaced scripts, Chinese and Japanese."""

from __future__ import annotations

import re

# A full stop after one of these ends no sentence.
_ABBREVIATIONS = frozenset(
    """mr mrs ms dr prof sr jr st mt rev hon gen col maj capt lt sgt gov sen rep pres
    inc ltd co corp dept univ assn bros vs etc cf al eg ie approx est fig figs eq eqs no nos vol vols pp ed eds ch sec
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun
    e.g i.e a.m p.m u.s u.k u.n ph.d m.d b.a m.a d.c""".split()
)
_CLOSERS = "\"'”’」』）)】》］]"
_WIDE_END = re.compile(rf"(?<=[。！？])[{re.escape(_CLOSERS)}]*|(?<=…)…*[{re.escape(_CLOSERS)}]*(?=[^…])")
_END = re.compile(rf"[.!?]+[{re.escape(_CLOSERS)}]*(?=\s+\S)")
_OPENERS = "\"'“‘(［[「『（"


def split_sentences(text: str) -> list[str]:
    """Sentences of ``text`` in order, white space folded; nothing but white space is lost.

    A blank line always ends a sentence. A full stop does not after an abbreviation, an initial or before a lower-case word.
    """
    sentences: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        for piece in _split_wide(" ".join(paragraph.split())):
            sentences.extend(_split_spaced(piece))
    return sentences


def _split_wide(text: str) -> list[str]:
    """Cut after 。！？ and …, which need no space behind them."""
    pieces, start = [], 0
    for match in _WIDE_END.finditer(text):
        if match.end() > start:
            pieces.append(text[start : match.end()])
            start = match.end()
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces if piece.strip()]


def _split_spaced(text: str) -> list[str]:
    pieces, start = [], 0
    for match in _END.finditer(text):
        before, after = text[start : match.start()], text[match.end() :].lstrip()
        if match.group()[0] == "." and not _ends_here(before, after):
            continue
        pieces.append(text[start : match.end()].strip())
        start = match.end()
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def _ends_here(before: str, after: str) -> bool:
    word = before.rsplit(maxsplit=1)[-1].lstrip(_OPENERS) if before.strip() else ""
    following = after.lstrip(_OPENERS)
    if word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I"):
        return False
    return not following[:1].islower()
