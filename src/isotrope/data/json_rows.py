"""One line of JSON → a value, or a sentence that says what is wrong with it."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from isotrope.errors import InputError


def parse_row(line: str, where: str) -> Any:
    """The value of a line. Refused is also what Python would take without a word: a key twice, NaN and Infinity."""
    try:
        return json.loads(line, object_pairs_hook=_once, parse_constant=_no_number)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not JSON ({error.msg}, column {error.colno}).") from error
    except RecursionError as error:
        raise InputError(f"{where}: the JSON is nested too deeply; a row is an object of texts.") from error
    except ValueError as error:  # more digits than Python reads
        raise InputError(f"{where}: a number has too many digits; write it as a text, in quotes.") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InputError(f"the key {twice[:60]!r} stands twice in one object; take one of them out.")
    return found


def _no_number(word: str) -> NoReturn:
    raise InputError(f"{word} is not JSON; write null where a value is missing.")
