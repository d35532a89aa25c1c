"""The library names a setting (``batch_size``); here its flag (``--batch-size``) is added to the sentence.

A name with an underscore is a setting wherever it stands. A plain word such as ``output`` is one only where the
sentence uses it so: at the beginning of a clause before a verb ("top must be …"), after an imperative ("choose another
output"), in quotes, or before a value in parentheses.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

KINDS = {"train": "training", "compare": "training", "fit-space": "space"}  # whose settings a free command takes
SOURCE = "Source '"  # how a sentence on one source of a recipe begins
_COLUMNS = r"\bno column .*?;|\bcolumns found: .*?(?:;|$)"
_NO_NAMING = re.compile(rf"; known: .*|{_COLUMNS}", re.DOTALL)
_COMPOUND = r"(?<![\w./\\-]){name}(?![\w/\\-]|\.\w)"
_PLAIN = (
    r"(?:^|; ){name} (?:must|is|takes|needs|has|belongs)\b",
    r"\b(?i:give|lower|raise|set|leave|choose|with|another|as) (?:(?:a|an|the|another|its) )?{name}\b(?![-/.]\w)",
    r"[`']{name}[`']",
    r"(?:^|[; ]){name} \(\d",
)


def with_flags(sentence: str, flags: Mapping[str, str], setting: str | None = None) -> str:
    """The sentence, with the flags of the settings that it names in parentheses before its end.

    ``flags`` maps a setting to its flag. ``setting`` is named by the error itself. A flag that the sentence holds
    already is not repeated; a list of known names, or of columns, is no naming.
    """
    if sentence.startswith(SOURCE):
        return sentence  # its settings stand in the recipe
    named = [
        *([setting] if setting is not None and setting in flags else []),
        *_settings_in(_NO_NAMING.sub("", sentence), flags),
    ]
    wanted = dict.fromkeys(flags[name] for name in named)
    added = [flag for flag in wanted if not re.search(rf"(?<!\S){flag}(?![\w-])", sentence)]
    if not added:
        return sentence
    body, end = (sentence[:-1], sentence[-1]) if sentence[-1:] in (".", "?", "!") else (sentence, "")
    return f"{body} ({', '.join(added)}){end}"


def _settings_in(sentence: str, known: Iterable[str]) -> list[str]:
    """In the order in which the sentence names them."""
    places = {}
    for name in known:
        patterns = (_COMPOUND,) if "_" in name else _PLAIN
        found = [match.start() for pattern in patterns if (match := re.search(pattern.format(name=name), sentence))]
        if found:
            places[name] = min(found)
    return sorted(places, key=places.__getitem__)


def flags_of(command: Any) -> dict[str, str]:
    """Each setting that a command takes, and its flag; a free command takes those of methods or spaces as well."""
    own = {
        option.name: flag
        for option in command.params
        if (flag := next((word for word in option.opts if word.startswith("--")), None)) is not None
    }
    return {**{name: f"--{name.replace('_', '-')}" for name in _free_settings(command.name)}, **own}


def _free_settings(command: str) -> set[str]:
    """Nothing where the methods are not imported yet: the error came before them and names none of their settings."""
    return set(_described(command)) if "isotrope.methods.frame.method_registry" in sys.modules else set()


@cache
def _described(command: str) -> frozenset[str]:
    from isotrope.catalogue import all_cards, describe_settings, own_settings

    if command in own_settings():
        return frozenset(setting.name for setting in own_settings()[command]())
    kinds = {KINDS.get(command), *(["head"] if command == "train" else [])}
    cards = [card for card in all_cards() if card.kind in kinds]
    settings = [setting for card in cards for setting in describe_settings(card.name)]
    own = {card.name for card in cards}
    return frozenset(setting.name for setting in settings if command != "compare" or setting.owner not in own)
