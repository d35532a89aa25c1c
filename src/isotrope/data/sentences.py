"""Split running text into sentences: English and other spaced scripts, Chinese and Japanese.

docs/notes/own_code.md compares it with libraries: borders, speed.
"""

from __future__ import annotations

import re

# A full stop after one of these ends no sentence,
_ABBREVIATIONS = frozenset("vs etc cf al eg ie approx est e.g i.e a.m p.m u.s u.k u.n ph.d m.d b.a m.a d.c".split())
# nor after one of these where it has a capital (the sun sets, a cat sat),
_CAPITALISED = frozenset(
    """Mr Mrs Ms Dr Prof Sr Jr St Mt Rev Hon Gen Col Maj Capt Lt Sgt Gov Sen Rep Pres Inc Ltd Co Corp Dept Univ Assn
    Bros Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Wed Thu Fri Sat Sun""".split()
)
# nor after one of these where a number follows (No. 5, but: He said no.).
_NUMBERED = frozenset("fig figs eq eqs no nos vol vols p pp ed eds ch sec".split())
_LAST_WORD = re.compile(r"[^\s\u2e80-\uffff]*$")  # Chinese letters touch the word before or after them
_INITIALS = re.compile(r"(?:[A-Z]\.)*[A-Z]")
_CLOSERS = "\"'”’」』）)】》］]"
_CLOSING = f"[{re.escape(_CLOSERS)}]"
# An ellipsis goes on where a comma, another stop or a lower-case word follows. A run of marks is looked at from its
# first one alone: from each of them, a line of dots would take the square of its length.
_WIDE_END = re.compile(rf"[。！？]+{_CLOSING}*|(?<!…)…+{_CLOSING}*(?!…|{_CLOSING}|[。！？，、；：,.!?;:]| ?[a-z])")
_LAST = f".!?{_CLOSERS}"
_END = re.compile(rf"(?<![.!?])[.!?]+{_CLOSING}*(?=\s+\S)")
_OPENERS = "\"'“‘(［[「『（"


def split_sentences(text: str) -> list[str]:
    """Sentences of ``text`` in order, white space folded; nothing but white space is lost.

    A blank line always ends a sentence. A full stop does not after an abbreviation, an initial or before a lower-case
    word; nor does a quoted question before one ("Why?" she asked).
    """
    inner = text.rstrip(_LAST)
    if text.isascii() and "." not in inner and "!" not in inner and "?" not in inner and "\n" not in text:
        folded = _folded(text)  # a sentence that stands alone
        return [folded] if folded else []
    sentences: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        for piece in _split_wide(_folded(paragraph)):
            sentences.extend(_split_spaced(piece))
    return sentences


def _folded(text: str) -> str:
    if "  " not in text and text.isprintable():  # the blank is the only white space that can be printed
        return text.strip()
    return " ".join(text.split())


def _split_wide(text: str) -> list[str]:
    """Cut after 。！？ and …, which need no space behind them."""
    pieces, start = [], 0
    for match in _WIDE_END.finditer(text):
        pieces.append(text[start : match.end()])
        start = match.end()
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces if piece.strip()]


def _split_spaced(text: str) -> list[str]:
    pieces, start = [], 0
    for match in _END.finditer(text):
        # A few letters are enough, and the text may be a book.
        before = text[max(start, match.start() - 24) : match.start()]
        if not _ends_here(before, match.group(), text[match.end() + 1 : match.end() + 9]):
            continue
        pieces.append(text[start : match.end()].strip())
        start = match.end()
    pieces.append(text[start:].strip())
    return [piece for piece in pieces if piece]


def _ends_here(before: str, stop: str, after: str) -> bool:
    """Whether ``stop``, the marks between ``before`` and ``after``, ends a sentence."""
    following = after.lstrip(_OPENERS)[:1]
    if stop[0] != ".":
        return not (stop[-1] in _CLOSERS and following.islower())
    word = _LAST_WORD.findall(before)[0].lstrip(_OPENERS)
    if word.lower() in _ABBREVIATIONS or word in _CAPITALISED or (_INITIALS.fullmatch(word) and word != "I"):
        return False
    if word.lower() in _NUMBERED and following.isdigit():
        return False
    return not following.islower()
