"""The record types, and the column names by which each is recognised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from isotrope.errors import InputError, nearest


class Record(NamedTuple):
    """One row of a file: its texts, and what it carries besides."""

    texts: tuple[str, ...]
    value: str | None  # a score, a label or an entity, as written
    document: int
    line: int
    others: tuple[str, ...] = ()  # hard negatives of the value
    type: str = ""  # the category of the value, as "person" for an entity
    page: str = ""  # where the text stands, as the title of an article


@dataclass(frozen=True)
class RecordType:
    """What one row of the data holds: sentences, pairs, triples, …

    - ``fields``: our names for the text columns; ``known``: the headers under which people publish them.
    - ``value``: what a record carries besides its texts ("score", "label", "entity", "relation"). With ``in_text`` it
      has no column and is taken out of the text.
    - ``whole``: what several records make up ("document", "dialogue"); it is held out whole.
    - ``extra``: the names of one more, optional column; ``types``: those of a column with the category of the value,
      ``pages``: those of a column with the page that the text stands on.
    - ``spoken``: the order of the columns in a tuple, where it differs from ``known``.
    - ``names``: the fields are names of things and recur in many records; only a whole record identifies itself.
    """

    name: str
    fields: tuple[str, ...]
    value: str | None
    known: tuple[tuple[str, ...], ...]
    whole: str | None = None
    extra: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    in_text: bool = False
    spoken: tuple[str, ...] = ()
    names: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Our names for the columns that must be there."""
        return self.fields if self.value is None or self.in_text else (*self.fields, self.value)

    @property
    def width(self) -> int:
        return len(self.columns)


RECORD_TYPES = {
    record_type.name: record_type
    for record_type in (
        RecordType(
            "sentences",
            ("text",),
            None,
            (("text",), ("sentence",), ("sentences",), ("sent0",), ("content",), ("caption",)),
        ),
        RecordType(
            "documents", ("text",), None, (("text",), ("document",), ("content",), ("sentences",)), whole="document"
        ),
        RecordType(
            "dialogues",
            ("utterance",),
            None,
            (("utterance",), ("utterances",), ("turns",), ("text",), ("dialogue",), ("dialog",)),
            whole="dialogue",
            extra=("dialogue", "dialogue_id", "dialog_id", "conversation_id"),
        ),
        RecordType(
            "pairs",
            ("anchor", "positive"),
            None,
            (
                ("anchor", "positive"),
                ("sent0", "sent1"),
                ("premise", "entailment"),
                ("query", "answer"),
                ("question", "answer"),
                ("query", "passage"),
                ("sentence1", "sentence2"),
            ),
        ),
        RecordType(
            "triples",
            ("anchor", "positive", "negative"),
            None,
            (
                ("anchor", "positive", "negative"),
                ("sent0", "sent1", "hard_neg"),
                ("premise", "entailment", "contradiction"),
                ("query", "positive", "negative"),
            ),
        ),
        RecordType(
            "scored-pairs",
            ("sentence1", "sentence2"),
            "score",
            (
                ("sentence1", "sentence2", "score"),
                ("sent0", "sent1", "score"),
                ("text1", "text2", "score"),
                ("sentence1", "sentence2", "label"),
                ("text1", "text2", "label"),
            ),
        ),
        RecordType("labelled", ("text",), "label", (("text", "label"), ("sentence", "label"))),
        RecordType("emoji", ("text",), "label", (("text",), ("sentence",), ("tweet",), ("content",)), in_text=True),
        RecordType(
            "labelled-pairs",
            ("premise", "hypothesis"),
            "label",
            (
                ("premise", "hypothesis", "label"),
                ("sentence1", "sentence2", "label"),
                ("text1", "text2", "label"),
                ("sent0", "sent1", "label"),
            ),
        ),
        RecordType(
            "linked",
            ("sentence",),
            "entity",
            (("sentence", "entity"), ("text", "entity")),
            extra=("hard_entities", "negative_entities"),
            types=("entity_type",),
            pages=("page",),
        ),
        RecordType(
            "relations",
            ("head", "tail"),
            "relation",
            (
                ("head", "tail", "relation"),
                ("subject", "object", "predicate"),
                ("subject", "object", "relation"),
                ("a", "b", "relation"),
            ),
            spoken=("head", "relation", "tail"),
            names=True,
        ),
    )
}


def record_type_named(name: str) -> RecordType:
    if name not in RECORD_TYPES:
        raise InputError(f"Unknown record type '{name}'{nearest(name, RECORD_TYPES)}")
    return RECORD_TYPES[name]


def choose_columns(
    header: Sequence[str], record_type: RecordType, asked: Sequence[str] | None, where: str
) -> tuple[str, ...]:
    """The columns of ``header`` that hold this record type: those asked for, or those with a known name.

    The extra column comes last, where it is there.
    """
    if asked is not None:
        return _asked_columns(header, record_type, asked, where)
    lowered = {name.strip().lower(): name for name in header}
    for names in record_type.known:
        if all(name in lowered for name in names):
            extra = [name for name in record_type.extra if name in lowered and name not in names][:1]
            _check_once(header, (*names, *extra), where)
            return tuple(lowered[name] for name in (*names, *extra))
    if record_type.width == 1 and len(header) == 1:
        return (header[0],)
    wanted = " or ".join("/".join(names) for names in record_type.known)
    raise InputError(
        f"{where}: columns found: {_listed(header)}; {record_type.name} need {wanted}; "
        f"name {record_type.width} of those found as `columns`."
    )


def _check_once(header: Sequence[str], names: Sequence[str], where: str) -> None:
    """Refuse two columns that are known by one name ("text", "Text"): the last would win."""
    for known in names:
        alike = [name for name in header if name.strip().lower() == known]
        if len(alike) > 1:
            raise InputError(
                f"{where}: the columns {' and '.join(map(repr, alike))} differ in case or blanks alone; rename one of "
                "them, or name the right one as `columns`."
            )


def _asked_columns(header: Sequence[str], record_type: RecordType, asked: Sequence[str], where: str) -> tuple[str, ...]:
    missing = [name for name in asked if name not in header and name.partition(".")[0] not in header]
    if missing:
        commas = any("," in name for name in header)
        raise InputError(
            f"{where}: no column {', '.join(map(repr, missing))}; columns found: {_listed(header)}"
            f"{'; a name with a comma goes in double quotes' if commas else ''}."
        )
    aside = optional_columns(header, record_type, asked, (*record_type.types, *record_type.pages))
    if not record_type.width <= len(asked) - len(aside) <= record_type.width + bool(record_type.extra):
        more = f" and, if there is one, {record_type.extra[0]}" if record_type.extra else ""
        raise InputError(
            f"{where}: {record_type.name} take {record_type.width} column{'s' * (record_type.width > 1)} "
            f"({', '.join(record_type.columns)}){more}, and `columns` names {len(asked)} ({', '.join(asked)})."
        )
    return tuple(name for place, name in enumerate(asked) if place < record_type.width or name not in aside)


def _listed(header: Sequence[str]) -> str:
    """Names for a message; a file that is no table may have thousands, or one of a megabyte."""
    names = [repr(name if len(name) <= 60 else name[:60] + "…") for name in header[:20]]
    return ", ".join([*names, f"{len(header) - 20:,} more"] if len(header) > 20 else names)


def optional_columns(
    header: Sequence[str], record_type: RecordType, asked: Sequence[str] | None, names: Sequence[str]
) -> tuple[str, ...]:
    """The columns with one of ``names``: categories of the values, or pages.

    Where the user names columns, these stand behind the required ones.
    """
    candidates = header if asked is None else asked[record_type.width :]
    return tuple(name for name in candidates if name.strip().lower() in names)
