"""Combining marks that are a part of the word: vowel signs and tones of the scripts of India and South-East Asia.

    कि (that)  का (of)  की (of)   three words, one letter क without its signs
    が (ga)  か (ka)               two syllables: so are the voicing marks of kana
    é  e                          one letter: accents are folded, and so are the vowel points of Arabic and Hebrew

Python's ``\\w`` matches no mark, so an expression for words has to name them.
"""

from __future__ import annotations

import unicodedata

VOICING = "\u3099\u309a"  # of kana: か + U+3099 is が
_SCRIPTS = ((0x0900, 0x109F), (0x1700, 0x1A7F), (0x1B00, 0x1CFF), (0xA800, 0xABFF), (0x11000, 0x11FFF))
_KEPT = frozenset(
    chr(code)
    for first, last in _SCRIPTS
    for code in range(first, last + 1)
    if unicodedata.category(chr(code)) in ("Mn", "Mc")
) | frozenset(VOICING)
MARKS = "".join(sorted(_KEPT))  # for a class of characters in an expression


def is_accent(letter: str) -> bool:
    """A combining mark that is folded where words are compared."""
    return unicodedata.combining(letter) > 0 and letter not in _KEPT
