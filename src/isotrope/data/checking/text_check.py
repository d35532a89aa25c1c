"""Check a text: read it once, look closer at a sample, and put all findings together."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from isotrope.data.checking.check_advice import with_advice
from isotrope.data.checking.check_rows import rows_of
from isotrope.data.checking.fitting_types import columns_of, common_types, unread_columns
from isotrope.data.checking.language_guess import guess_language
from isotrope.data.checking.leaked_sets import LeakedSets, find_leaked_sets
from isotrope.data.checking.repetition import Duplicates, FalseNegatives, false_negatives, find_duplicates
from isotrope.data.checking.tally import Tally
from isotrope.data.checking.token_lengths import LengthTokenizer, TokenLengths, token_lengths
from isotrope.data.checking.value_profiles import ClassBalance, ScoreSpread, class_balance, score_spread
from isotrope.data.emoji import labelled_by_emoji
from isotrope.data.packed_streams import unpacking
from isotrope.data.prose_files import is_prose
from isotrope.data.protected_sentences import Protected
from isotrope.data.readers import read
from isotrope.data.record_types import RecordType, record_type_named
from isotrope.data.tables import FORMATS, check_file, format_of, header_of
from isotrope.data.text_lines import lines_of
from isotrope.data.wrapped_lines import LOOKED_AT, are_wrapped
from isotrope.errors import InputError, check_between

SEED = 42


@dataclass(frozen=True)
class TextCheck:
    """What ``check`` found. ``sample`` is the number of records that near-duplicates, tokens and languages are of.

    ``advice`` holds one sentence for each thing to do, the gravest first. ``languages`` maps a guess to its share of
    the sample. ``methods`` maps each method that can use the text to the record type that it would take. ``documents``
    is none where the record type has no documents; ``leaks`` where no test sets were given. ``wrapped``: the plain
    texts whose lines are parts of sentences.
    """

    files: list[str]
    format: str
    columns: list[str]
    record_types: list[str]
    record_type: str
    records: int
    empty: int
    long: int
    short: int
    longest_characters: int
    documents: int | None
    sample: int
    model: str
    duplicates: Duplicates
    lengths: TokenLengths
    languages: dict[str, float]
    false_negatives: FalseNegatives | None
    classes: ClassBalance | None
    scores: ScoreSpread | None
    methods: dict[str, str]
    leaks: LeakedSets | None
    advice: list[str] = field(default_factory=list)
    unread_columns: list[str] = field(default_factory=list)
    wrapped: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        facts = asdict(self)
        return {"advice": facts.pop("advice"), **facts}

    def rows(self) -> list[dict[str, Any]]:
        return rows_of(self)


@dataclass(frozen=True)
class Reader:
    """The model that the text is checked for: its tokenizer, and the most tokens that it takes."""

    name: str
    tokenizer: LengthTokenizer
    unknown_id: int | None
    longest: int


def check_text(
    paths: Sequence[Path],
    reader: Reader,
    protected: Protected | None,
    usable: Mapping[str, Sequence[str]],
    *,
    max_length: int,
    batch_size: int,
    sample: int,
    columns: Sequence[str] | None = None,
    record_type: str | None = None,
    data_dir: str | None = None,
) -> TextCheck:
    """``usable`` maps each method to the record types that it takes, in the order in which it tries them.

    ``data_dir`` is where ``protected`` comes from, for the advice.
    """
    fitting, chosen = choose_type(paths, columns, record_type)
    tally = Tally(chosen, protected, sample, SEED)
    for number, path in enumerate(paths):
        records = read(path, chosen, columns)
        tally.add_file(number, str(path), labelled_by_emoji(records, str(path)) if chosen.in_text else records)
    if not tally.records:
        raise InputError(f"{paths[0]}: no records found; {tally.empty:,} lines are empty.")
    tally.finish()
    plain = header_of(paths[0]) is None
    if plain and not 1 < tally.documents < tally.records:  # nothing says where one ends
        fitting = [name for name in fitting if not record_type_named(name).whole or name == record_type]
    duplicates, groups = find_duplicates(tally)
    found = TextCheck(
        [str(path) for path in paths],
        format_name(paths[0]),
        columns_of(paths[0], chosen, columns),
        fitting,
        chosen.name,
        tally.records,
        tally.empty,
        tally.long,
        tally.short,
        tally.longest,
        tally.documents if plain or chosen.whole else None,
        len(tally.sample),
        reader.name,
        duplicates,
        token_lengths([one.record.texts for one in tally.sample], reader.tokenizer, max_length, reader.unknown_id),
        _languages(tally),
        false_negatives(tally, groups, batch_size),
        class_balance(tally.values) if chosen.value == "label" else None,
        score_spread(tally.values) if chosen.value == "score" else None,
        _methods(usable, fitting),
        None if protected is None else find_leaked_sets(tally, protected),
        unread_columns=unread_columns(paths[0], chosen, columns),
        wrapped=[str(path) for path in paths if _is_wrapped(path)],
    )
    return with_advice(found, reader.longest, data_dir)


def choose_type(
    paths: Sequence[Path], columns: Sequence[str] | None, asked: str | None
) -> tuple[list[str], RecordType]:
    """All record types that fit, and the one asked for, or the first."""
    fitting = common_types(paths, columns)
    if asked is None:
        return fitting, record_type_named(fitting[0])
    wanted = record_type_named(asked)
    if asked not in fitting:
        raise InputError(f"{paths[0]} cannot be read as {asked}; it holds {' or '.join(fitting)}.", "record_type")
    return fitting, wanted


def check_numbers(max_length: int, batch_size: int, sample: int) -> None:
    """Refuse what cannot be counted with."""
    for name, value in (("max_length", max_length), ("batch_size", batch_size), ("sample", sample)):
        check_between(name, value, 2, 1_000_000_000)


def check_files(data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files to look at; missing, empty and unreadable ones are refused, and the same one twice."""
    given = [data] if isinstance(data, str | os.PathLike) else list(data)
    if not given:
        raise InputError("No file was given; name one or more as `data`.", "data")
    for file in given:
        check_file(file)
    files = [Path(file) for file in given]
    twice = next((file for file, count in Counter(file.resolve() for file in files).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{twice}: the file was given twice; all of its records would be duplicates.")
    return files


def format_name(path: Path) -> str:
    """``txt.xz``, ``tsv``: the format and the packing that the name states; ``documents`` of a folder of them."""
    if is_prose(path):
        return "documents"
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = max(place for place, suffix in enumerate(suffixes) if suffix in FORMATS)
    return "".join(suffixes[last:]).lstrip(".")


def _is_wrapped(path: Path) -> bool:
    """Of a .txt, whose lines are taken for texts."""
    if is_prose(path) or format_of(path) != ".txt":
        return False
    with unpacking(path):
        return are_wrapped([line for _, line in islice(lines_of(path), LOOKED_AT)])


def _languages(tally: Tally) -> dict[str, float]:
    counts = Counter(guess_language(" ".join(one.record.texts), " ".join(one.lines).split()) for one in tally.sample)
    return {name: round(count / len(tally.sample), 4) for name, count in counts.most_common()}


def _methods(usable: Mapping[str, Sequence[str]], fitting: Sequence[str]) -> dict[str, str]:
    found = {name: next((one for one in types if one in fitting), None) for name, types in usable.items()}
    return {name: record_type for name, record_type in found.items() if record_type is not None}
