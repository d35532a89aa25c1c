"""Parse options: settings that only a method knows, settings of one method, and names joined by commas."""

from __future__ import annotations

import csv
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isotrope.cli.completion_words import method_names
from isotrope.errors import InputError

EXAMPLES = {"--vary": "temperature=0.01,0.05,0.1", "--search": "temperature=0.01:0.1"}


def split_settings(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Plain words, and the settings given as ``--name value`` or ``--name=value`` among them."""
    plain: list[str] = []
    settings: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            plain.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise InputError(f"--{name} needs a value.")
            value = rest.pop(0)
        settings[name.replace("-", "_")] = value
    return plain, settings


def check_free(settings: Mapping[str, Any], verb: Callable[..., Any]) -> None:
    """Refuse ``--data FILE`` and the like: what the verb takes itself has its own place or option."""
    taken = next((name for name in settings if name in inspect.signature(verb).parameters), None)
    if taken is not None:
        raise InputError(f"--{taken.replace('_', '-')} is no option or setting; --help shows how {taken} is given.")


def parse_train_words(words: Sequence[str], rest: Sequence[str]) -> tuple[str | None, list[str], dict[str, str]]:
    """METHOD where it is given, the files of DATA, and the settings: the first words may be settings already.

    A name of a method has neither a dot nor a slash; a file of data has an ending, and ``-`` is standard input. A
    folder alone is data, unless a method has its name.
    """
    plain, settings = split_settings([*words, *rest])
    if not plain:
        return None, [], settings
    alone = len(plain) == 1 and os.path.isdir(plain[0]) and plain[0] not in method_names()
    files = plain if alone or _names_data(plain[0]) else plain[1:]
    strange = next((word for word in files[1:] if not _names_data(word)), None)
    if strange is not None:
        raise InputError(f"'{strange}' was not understood; settings are given as --name value.")
    return None if files is plain else plain[0], files, settings


def _names_data(word: str) -> bool:
    return word == "-" or any(mark in word for mark in "./\\")


def parse_own_settings(given: Sequence[str]) -> dict[str, dict[str, str]]:
    """METHOD.SETTING=VALUE, as settings by method."""
    settings: dict[str, dict[str, str]] = {}
    for word in given:
        name, equals, value = word.partition("=")
        method, dot, setting = name.rpartition(".")
        if not (equals and dot and method and setting):
            raise InputError(
                f"--set {word} was not understood; write METHOD.SETTING=VALUE, such as simcse.temperature=0.1."
            )
        settings.setdefault(method, {})[setting] = value
    return settings


def parse_values(flag: str, given: Sequence[str]) -> dict[str, str]:
    """SETTING=VALUES, by setting; each may be given once."""
    found: dict[str, str] = {}
    for word in given:
        name, equals, values = word.partition("=")
        setting = name.strip().replace("-", "_")
        if not (equals and setting and values):
            raise InputError(f"{flag} {word} was not understood; write SETTING=VALUES, such as {EXAMPLES[flag]}.")
        if setting in found:
            raise InputError(f"{flag} names {setting} twice; join its values.")
        found[setting] = values
    return found


def split_names(joined: str | None) -> list[str] | None:
    """``a,b`` as a list; a name that holds a comma stands in double quotes. None stays None."""
    return next(csv.reader([joined], skipinitialspace=True)) if joined else None
