"""Emoji as labels: they are taken out of a text, and each different one labels a copy of what is left.

Which characters are emoji is Unicode's answer (the properties that ``regex`` knows). Symbols and dingbats count without
the mark that asks for colour, since many people leave it out (❤); letters, arrows and © count only with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import regex

from isotrope.data.record_types import Record
from isotrope.errors import InputError

JOINER, COLOURED = "\u200d", "\ufe0f"  # zero-width joiner; the mark that asks for the coloured form
TONE = r"\p{Emoji_Modifier}"
FLAG = r"\p{Regional_Indicator}{2}"
KEY = rf"[0-9#*]{COLOURED}?\u20e3"
TAGS = "[\U000e0020-\U000e007f]*"  # spell out the flag of a region
PICTURE = rf"[\p{{Emoji_Presentation}}--\p{{Regional_Indicator}}--{TONE}]"
SYMBOL = r"[\p{Extended_Pictographic}&&[\u2600-\u27bf\U0001f000-\U0001faff]]"
PLAIN = r"[\p{Emoji}--[0-9#*]--\p{Regional_Indicator}]"
ONE = rf"(?:(?:{PICTURE}|{SYMBOL}){COLOURED}?|{PLAIN}{COLOURED}){TONE}?{TAGS}"
EMOJI = regex.compile(f"{FLAG}|{KEY}|{ONE}(?:{JOINER}{ONE})*", regex.VERSION1)
STRAY = regex.compile(f"[{COLOURED}{JOINER}]|{TONE}")  # what is left of emoji that somebody cut out before
FORM = regex.compile(f"{COLOURED}|{TONE}")


def emoji_in(text: str) -> list[str]:
    """The different emoji of a text, in the order in which they come. Skin tone and form do not count: 👍🏽 is 👍."""
    return list(dict.fromkeys(FORM.sub("", found) for found in EMOJI.findall(text)))


def without_emoji(text: str) -> str:
    """The text between the emoji, white space folded."""
    return " ".join(STRAY.sub(" ", EMOJI.sub(" ", text)).split())


def labelled_by_emoji(records: Iterable[Record], where: str) -> Iterator[Record]:
    """A record for each different emoji of a text, labelled with it.

    A text without words or without emoji comes back empty, so that it is counted. Refused where no text has any.
    """
    found = texts = 0
    for record in records:
        text = without_emoji(record.texts[0])
        labels = emoji_in(record.texts[0]) if text else []
        texts, found = texts + 1, found + len(labels)
        for label in labels:
            yield record._replace(texts=(text,), value=label)
        if not labels:
            yield record._replace(texts=("",))
    if not found:
        raise InputError(
            f"{where}: no emoji found in {texts:,} texts, and they are the labels here; bring text with emoji, "
            "or a table with the columns text and label."
        )
