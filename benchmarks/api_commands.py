"""A command that trains or fits, called through the Python API: for a machine where the command line cannot start.

    python benchmarks/api_commands.py train [METHOD] DATA --output DIR [--SETTING VALUE …]
    python benchmarks/api_commands.py fit-space NAME MODEL TEXT --output DIR [--SETTING VALUE …]

The words are those of `isotrope`; switches (--no-final-table) take no value.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import isotrope

SWITCHES = {"--no-final-table": ("final_table", False), "--no-keep-start": ("keep_start", False)}


def call(words: Sequence[str]) -> Any:
    """What the command would give, and what it would write."""
    places, settings, rest = [], {}, iter(words[1:])
    for word in rest:
        if word in SWITCHES:
            name, value = SWITCHES[word]
            settings[name] = value
        elif word.startswith("--"):
            settings[word[2:].replace("-", "_")] = next(rest)
        else:
            places.append(word)
    if words[0] == "fit-space":
        return isotrope.fit_space(*places, **settings)
    if words[0] != "train":
        sys.exit(f"{words[0]}: train and fit-space are known here")
    method, data = places if len(places) == 2 else (None, *places)
    return isotrope.train(method, data, **settings)


if __name__ == "__main__":
    found = call(sys.argv[1:])
    print(*sys.argv[1:], f"selected step {found.selected_step}" if hasattr(found, "selected_step") else "")
