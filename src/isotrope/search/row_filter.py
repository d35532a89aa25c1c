"""A filter on the kept columns, read by a small grammar; nothing of it is ever run as code.

    either     = both ("or" both)*
    both       = one ("and" one)*
    one        = "not" one | "(" either ")" | COLUMN test
    test       = ("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") VALUE | ["not"] "in" "(" VALUE, … ")"
               | ["not"] "like" TEXT | "is" ["not"] "null"

    year > 2020 and lang in ('en', 'de') and not title like 'Draft%'

A text is quoted, once or twice; a column whose name is no word stands in `backquotes`. In ``like`` % stands for any
letters and _ for one. A row without a value passes ``is null`` and nothing else. ``not`` is worked into the tests
(not year > 2020 is year <= 2020), so that every engine gives the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import NoReturn

from isotrope.errors import InputError, nearest

Value = str | int | float | bool
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
SPELLED = {"=": "==", "<>": "!="}
LONGEST, DEEPEST = 10_000, 40
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])|(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")"""
    r"""|`(?P<quoted>[^`]+)`|(?P<sign><=|>=|!=|<>|==|=|<|>|\(|\)|,)|(?P<word>[^\W\d]\w*))"""
)
KEYWORDS = ("and", "or", "not", "in", "like", "is", "null", "true", "false")


@dataclass(frozen=True)
class ColumnTest:
    """One test of a column: ``sign`` is ==, !=, <, <=, >, >=, in, not in, like, not like, null or not null."""

    column: str
    sign: str
    values: tuple[Value, ...] = ()

    def negated(self) -> ColumnTest:
        sign = OPPOSITE.get(self.sign) or (self.sign[4:] if self.sign.startswith("not ") else f"not {self.sign}")
        return ColumnTest(self.column, sign, self.values)


@dataclass(frozen=True)
class Joined:
    """Several filters of which all (``and``) or one (``or``) must hold."""

    word: str
    parts: tuple[Filter, ...]

    def negated(self) -> Joined:
        return Joined("or" if self.word == "and" else "and", tuple(part.negated() for part in self.parts))


Filter = ColumnTest | Joined


def read_filter(text: str, columns: Mapping[str, str]) -> Filter:
    """The filter that ``text`` states, over columns with their kinds (number, text, boolean, json)."""
    return _Reader(text, columns).whole()


class _Reader:
    def __init__(self, text: str, columns: Mapping[str, str]) -> None:
        self.text, self.columns = text, columns
        if not text.strip():
            self.refuse("it is empty")
        if len(text) > LONGEST:
            raise InputError(f"The filter is longer than {LONGEST:,} characters; ask for less at once.", "where")
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            self.refuse("it holds half a character (a lone surrogate)")
        self.tokens = self._tokens()
        self.place = self.depth = 0

    def _tokens(self) -> list[tuple[str, str]]:
        found, end = [], 0
        while self.text[end:].strip():
            match = _TOKEN.match(self.text, end)
            if match is None:
                self.refuse(f"{self.text[end:].strip()[:20]!r} was not understood")
            kind = str(match.lastgroup)
            found.append((kind, match[kind]))
            end = match.end()
        return found

    def refuse(self, reason: str) -> NoReturn:
        shown = self.text if len(self.text) <= 80 else self.text[:80] + "…"
        raise InputError(
            f"where is no filter ({shown!r}): {reason}; write such as year > 2020 and lang in ('en', 'de').", "where"
        )

    def word(self) -> str:
        """The next token as a keyword, or ''."""
        if self.place == len(self.tokens):
            return ""
        kind, value = self.tokens[self.place]
        return value.lower() if kind == "word" and value.lower() in KEYWORDS else value if kind == "sign" else ""

    def taken(self, *words: str) -> str:
        """The next token where it is one of ``words``, which is then read; else ''."""
        found = self.word()
        if found and found in words:
            self.place += 1
            return found
        return ""

    def whole(self) -> Filter:
        found = self.either()
        if self.place < len(self.tokens):
            self.refuse(f"{self.tokens[self.place][1]!r} follows where the filter should end")
        return found

    def either(self) -> Filter:
        return self._joined("or")

    def _joined(self, word: str) -> Filter:
        parts = [self._part(word)]
        while self.taken(word):
            parts.append(self._part(word))
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _part(self, word: str) -> Filter:
        return self._joined("and") if word == "or" else self.one()

    def one(self) -> Filter:
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse(f"it is nested more than {DEEPEST} deep")
        try:
            if self.taken("not"):
                return self.one().negated()
            if self.taken("("):
                inner = self.either()
                if not self.taken(")"):
                    self.refuse("a parenthesis is not closed")
                return inner
            return self.test()
        finally:
            self.depth -= 1

    def test(self) -> ColumnTest:
        column = self.column()
        sign = self.taken("=", "==", "!=", "<>", "<", "<=", ">", ">=")
        if sign:
            return ColumnTest(column, SPELLED.get(sign, sign), (self.value(column),))
        if self.taken("is"):
            sign = "not null" if self.taken("not") else "null"
            if not self.taken("null"):
                self.refuse("'is' is followed by null or not null")
            return ColumnTest(column, sign)
        no = "not " if self.taken("not") else ""
        if self.taken("in"):
            return ColumnTest(column, f"{no}in", self.listed(column))
        if not self.taken("like"):
            self.refuse(f"after the column '{column}' a test such as > 2020 is expected")
        return ColumnTest(column, f"{no}like", (self.pattern(column),))

    def column(self) -> str:
        if self.place == len(self.tokens):
            self.refuse("it ends where a column is expected")
        kind, name = self.tokens[self.place]
        if kind not in ("word", "quoted") or (kind == "word" and name.lower() in KEYWORDS):
            self.refuse(f"a column is expected where {name!r} stands")
        if name not in self.columns:
            known = nearest(name, self.columns) if self.columns else "; the index keeps no columns."
            raise InputError(f"where names an unknown column '{name}'{known}", "where")
        self.place += 1
        return name

    def value(self, column: str) -> Value:
        if self.place == len(self.tokens):
            self.refuse("it ends where a value is expected")
        kind, found = self.tokens[self.place]
        self.place += 1
        wanted = self.columns[column]
        if wanted == "json":
            raise InputError(f"where cannot compare the column '{column}': it holds lists or objects.", "where")
        if kind == "number" and wanted == "number":
            number = float(found)
            if not isfinite(number):
                self.refuse(f"{found[:20]} is too large a number")
            whole = int(found) if re.fullmatch(r"-?\d{1,19}", found) else None
            return number if whole is None or abs(whole) >= 1 << 63 else whole  # as an index keeps it
        if kind == "text" and wanted == "text":
            return found[1:-1].replace(found[0] * 2, found[0])
        if kind == "word" and found.lower() in ("true", "false") and wanted == "boolean":
            return found.lower() == "true"
        if kind == "word" and found.lower() not in KEYWORDS:
            self.refuse(f"{found} is no value; put a text in quotes: '{found}'")
        expected = {"number": "numbers", "text": "texts, which stand in quotes", "boolean": "true or false"}[wanted]
        raise InputError(f"where compares the column '{column}' with {found}; it holds {expected}.", "where")

    def listed(self, column: str) -> tuple[Value, ...]:
        if not self.taken("("):
            self.refuse("'in' is followed by values in parentheses")
        values = [self.value(column)]
        while self.taken(","):
            values.append(self.value(column))
        if not self.taken(")"):
            self.refuse("a parenthesis is not closed")
        return tuple(values)

    def pattern(self, column: str) -> Value:
        if self.columns[column] != "text":
            raise InputError(f"where: 'like' is for texts; the column '{column}' holds none.", "where")
        return self.value(column)
