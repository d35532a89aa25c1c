"""What goes wrong on the user's side, said in one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(Exception):
    """Bad input: the message says what was found, where, and what to do. The command line exits with 2."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence: "; did you mean 'simcse'?", or the whole list where nothing is close."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return "; did you mean " + " or ".join(f"'{c}'" for c in close) + "?"
    return "; known: " + ", ".join(names) + "."
