"""Emoji as labels: they are taken out of a text, and each different one labels a copy of what is left."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from isotrope.data.record_types import Record
from isotrope.errors import InputError

JOINER, COLOURED = "\u200d", "\ufe0f"  # zero-width joiner; the mark that asks for the coloured form
TONE = "[\U0001f3fb-\U0001f3ff]"
# Symbols that are pictures in any form, then those that are letters and arrows until the mark asks for colour.
PICTURE = "[\U0001f000-\U0001f0ff\U0001f18e\U0001f191-\U0001f19a\U0001f200-\U0001f3fa\U0001f400-\U0001faff\u2600-\u27bf\u2b50\u2b55\u2b1b\u2b1c]"
PLAIN = "[\xa9\xae\u203c\u2049\u2100-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u25ff\u2900-\u297f\u2b05-\u2b07\u3030\u303d\u3297\u3299]"
CLOCK = "[\u231a\u231b\u23e9-\u23f3\u23f8-\u23fa]"
TAGS = "[\U000e0020-\U000e007f]*"  # spell out the flag of a region
ONE = f"(?:(?:{PICTURE}|{CLOCK}){COLOURED}?|{PLAIN}{COLOURED}){TONE}?{TAGS}"
FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
KEY = f"[0-9#*]{COLOURED}?\u20e3"
EMOJI = re.compile(f"{FLAG}|{KEY}|{ONE}(?:{JOINER}{ONE})*")
STRAY = re.compile(f"[{COLOURED}{JOINER}]|{TONE}")  # what is left of emoji that somebody cut out before
FORM = re.compile(f"{COLOURED}|{TONE}")


def emoji_in(text: str) -> list[str]:
    """The different emoji of a text, in the order in which they come. Skin tone and form do not count: 👍🏽 is 👍."""
    return list(dict.fromkeys(FORM.sub("", found) for found in EMOJI.findall(text)))


def without_emoji(text: str) -> str:
    return " ".join(STRAY.sub(" ", EMOJI.sub(" ", text)).split())


def labelled_by_emoji(records: Iterable[Record], where: str) -> Iterator[Record]:
    """A record for each different emoji of a text, labelled with it; one without words or without emoji comes back
    empty.
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
