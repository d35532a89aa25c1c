"""The words by which two texts are compared: the same for a text and for its tokenised release.

    -lrb- 2002 -rrb-  (2002)  [2002]         → 2002
    ca n't   can't   ca n 't                 → cant
    can not   cannot                         → cannot
    `` so ''   "so"   “so”   &quot;so&quot;  → so
    Café                                     → cafe
    ΟΔΟΣ   οδος   οδοσ                       → οδοσ

    我喜欢你。                                → 我 喜 欢 你
    がく  か\u3099く  ｶﾞｸ                     → か\u3099 く, か\u3099 く, カ\u3099 ク

Case, accents, punctuation and brackets go; what a tokenizer of the Penn Treebank cut apart is joined again. Both sides
of a comparison must pass through it. Spelling (can't, cannot) stays: other words are another text.
"""

from __future__ import annotations

import html
import re
import unicodedata

from isotrope.data.word_marks import MARKS, VOICING, is_accent

_BRACKET = re.compile(r"-[lr][crs]b-")
_ENDING = r"(s|t|m|d|re|ve|ll)\b"
_CLITIC = re.compile(  # does n't, it 's, the speaker' s; what begins with a blank or an apostrophe is found fast
    rf"[ '](?:(?<= )(?:(n) ?'(t)\b|(?<=\w )'{_ENDING})|(?<=\w') ?{_ENDING})"
)
_CUT = re.compile(r"\b(?:(can) (not)|(gon|wan) (na)|(got) (ta)|(gim|lem) (me))\b")
_SECOND = frozenset(("not", "na", "ta", "me"))  # halves of words that were cut
# Kana and Chinese characters: no blanks stand between words, so each character counts as one.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"(?=\w)[{_UNSPACED}][{VOICING}]?|[^\W{_UNSPACED}]+(?:[{MARKS}]+[^\W{_UNSPACED}]*)*")
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_BLANKED = bytes(code if code < 128 and _WORD.match(chr(code)) else 32 for code in range(256))  # ASCII: words stay


def words_of(text: str) -> list[str]:
    """What is compared: lower-cased words without accents and punctuation."""
    text = (html.unescape(text) if "&" in text else text).lower()
    if not text.isascii():
        text = _FOREIGN.sub(_without_accents, text)
    if "b-" in text:
        text = _BRACKET.sub(" ", text)
    if "'" in text:
        text = _CLITIC.sub(_joined, text).replace("'", "")
    words = text.encode().translate(_BLANKED).decode().split() if text.isascii() else _WORD.findall(text)
    if _SECOND.isdisjoint(words):
        return words
    return _CUT.sub(_joined, " ".join(words)).split()


class _Plain(dict[int, str]):
    """What stands for a letter, by its code: its decomposition (NFKD) without accents."""

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(code)).lower().replace("ς", "σ")  # ™ is TM, and that is tm
        self[code] = "".join(one for one in plain if not is_accent(one))
        return self[code]


_PLAIN = _Plain({ord("’"): "'"})


def _without_accents(match: re.Match[str]) -> str:
    return match[0].translate(_PLAIN)


def _joined(match: re.Match[str]) -> str:
    return "".join(part for part in match.groups() if part)
