"""Mistakes on the caller's side, each said in one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Bad input: the message says what was found, where, and what to do.

    A message names a setting as the library does (``batch_size``). ``setting`` repeats that name for programs where the
    sentence does not hold it as a word of its own; the command line adds the flag (``--batch-size``) and exits with 2.
    Because it is a ``ValueError``, an ``except ValueError`` around code that may raise it hides its sentence.
    """

    def __init__(self, message: str, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting


def check_between(name: str, value: float, least: float, most: float) -> None:
    """Refuse a number that is not finite or lies outside its range; ``name`` is the setting's."""
    if not least <= value <= most:
        end = f"at most {most:,}" if value > most else f"at least {least:,}"
        raise InputError(f"{name} must be {end}, not {value}.", name)


def check_seed(seed: int, name: str = "seed") -> None:
    """Refuse what is no random seed: torch and numpy take 32 bits."""
    check_between(name, seed, 0, (1 << 32) - 1)


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name.

    Either "; did you mean 'simcse'?", with at most three names that are close, or the whole list where none is.
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return "; did you mean " + " or ".join(f"'{one}'" for one in close) + "?"
    return "; known: " + ", ".join(names) + "."
