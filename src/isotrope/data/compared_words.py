"""The words by which two texts are compared: the same for a text and for its tokenised release.

    -lrb- 2002 -rrb-  (2002)  [2002]         → 2002
    ca n't   can't   ca n 't                 → cant
    can not   cannot                         → cannot
    `` so ''   "so"   “so”   &quot;so&quot;  → so
    Café                                     → cafe

Case, accents, punctuation and brackets go; what a tokenizer of the Penn Treebank cut apart is joined again. Both sides
of a comparison must pass through it. Spelling (can't, cannot) stays: other words are another text.
"""

from __future__ import annotations

import html
import re
import unicodedata

_BRACKET = re.compile(r"-[lr][crs]b-")
_CLITIC = re.compile(r" (n) ?'(t)\b|(?<=\w)(?: ?'|' )(s|t|m|d|re|ve|ll)\b")  # does n't, it 's, the speaker' s
_CUT = re.compile(r"\b(?:(can) (not)|(gon|wan) (na)|(got) (ta)|(gim|lem) (me))\b")
_SECOND = frozenset(("not", "na", "ta", "me"))  # halves of words that were cut
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """What is compared: lower-cased words without accents and punctuation."""
    text = text.lower()
    if "&" in text:
        text = html.unescape(text)
    if not text.isascii():
        text = text.replace("’", "'")
        text = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    if "b-" in text:
        text = _BRACKET.sub(" ", text)
    if "'" in text:
        text = _CLITIC.sub(_joined, text).replace("'", "")
    words = _WORD.findall(text)
    if _SECOND.isdisjoint(words):
        return words
    return _CUT.sub(_joined, " ".join(words)).split()


def _joined(match: re.Match[str]) -> str:
    return "".join(part for part in match.groups() if part)
