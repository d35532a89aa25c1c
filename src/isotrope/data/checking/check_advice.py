"""One sentence for each thing to do about a text, the gravest first: what was found, then what to do."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from isotrope.data.checking.language_guess import UNKNOWN
from isotrope.data.checking.leaked_sets import leaking_sets
from isotrope.data.record_types import record_type_named

if TYPE_CHECKING:
    from isotrope.data.checking.text_check import TextCheck

MANY_REPEATED = 0.01  # of the records
MANY_FALSE = 0.01  # false negatives an anchor
MANY_CUT = 0.05  # of the records
MANY_LOST = 0.2  # of the tokens: a few long records may hold most of a text
MANY_UNKNOWN = 0.01  # of the tokens
MIXED = 0.9  # share of a language below which a text has several
FEW = 1000  # records
FEW_CLASSES = 2
FEW_LABELS = 5000  # records; with more, training the encoder too may pay (docs/guides/predict.md)
UNEVEN = 10  # times that the largest class may be larger than the smallest
LENGTHS = (16, 32, 64, 128, 256, 512)
SAME_TEXT = "'!NF || !seen[$0]++'"
SAME_LETTERS = """'{key = tolower($0); gsub(/[[:punct:]]/, "", key)} !NF || !seen[key]++'"""
UNPACKERS = {"gz": "zcat", "xz": "xzcat"}


def with_advice(check: TextCheck, longest: int, data_dir: str | None = None) -> TextCheck:
    """``longest``: the most tokens that the model takes; ``data_dir``: the folder of test sets, if one was given."""
    return replace(
        check,
        advice=[
            *_leaks(check, data_dir),
            *_wrapped(check),
            *_repeated(check),
            *_false(check),
            *_labels(check),
            *_cut(check, longest),
            *_language(check),
            *_size(check),
            *_methods(check),
            *_head(check),
        ],
    )


def _leaks(check: TextCheck, data_dir: str | None) -> Iterator[str]:
    if check.leaks is None or not (check.leaks.exact or check.leaks.near):
        return
    names = leaking_sets(check.leaks)
    where = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    found = f"{check.leaks.exact:,} records hold a sentence of {where}, and {check.leaks.near:,} are near one"
    if check.format.split(".")[0] in ("txt", "tsv", "documents"):
        given = "" if data_dir is None else f" --data-dir {shlex.quote(data_dir)}"
        todo = f"`isotrope leaks {shlex.join(check.files)}{given} --output clean` writes a copy without the former"
    else:
        todo = "take them out, or do not quote scores on these sets"
    yield f"{found}; {todo}."


def _wrapped(check: TextCheck) -> Iterator[str]:
    for name in check.wrapped:
        unpack = UNPACKERS.get(Path(name).suffix.lower().removeprefix("."), "cat")
        plain = Path(name).name if unpack == "cat" else Path(name).stem  # packed files of a folder are not read
        folder = f"{Path(plain).stem}.documents"
        target = shlex.quote(f"{folder}/{plain}")
        yield (
            f"Most lines of {name} end inside a sentence: they are wrapped, and each is read as a text of its own. In "
            f"a folder of documents wrapped lines are joined: `mkdir {shlex.quote(folder)} && {unpack} "
            f"{shlex.quote(name)} > {target}`, and give that folder."
        )


def _repeated(check: TextCheck) -> Iterator[str]:
    found = check.duplicates
    repeated = found.exact + found.same_words
    if repeated >= MANY_REPEATED * check.records:
        yield (
            f"{repeated:,} of {check.records:,} records ({repeated / check.records:.1%}) repeat an earlier one, "
            f"{found.exact:,} of them exactly; {_unique_command(check)}."
        )
    if found.near is not None and found.near >= MANY_REPEATED * check.sample:
        example = found.examples[0] if found.examples else None
        such = f", such as {example['record']} and {example['near']}" if example else ""
        yield (
            f"{found.near:,} of {check.sample:,} records ({found.near / check.sample:.1%}) are near-duplicates of "
            f"others{such}; look whether a form or a heading repeats, and keep one of each."
        )
    if found.conflicting:
        texts = "One text carries" if found.conflicting == 1 else f"{found.conflicting:,} texts carry"
        yield f"{texts} more than one label; decide on one, or take such texts out."


def _unique_command(check: TextCheck) -> str:
    """A line is a record in these formats, unless it has columns that are not read; blank lines end documents and
    stay.
    """
    form, _, packing = check.format.partition(".")
    keep = "keep one of each" + (", unless documents have to stay whole" if (check.documents or 1) > 1 else "")
    if form not in ("txt", "tsv", "jsonl") or len(check.files) > 1 or check.unread_columns:
        return keep
    rule = SAME_TEXT if check.duplicates.same_words < MANY_REPEATED * check.records else SAME_LETTERS
    name = shlex.join(check.files)
    command = f"{UNPACKERS[packing]} {name} | awk {rule}" if packing in UNPACKERS else f"awk {rule} {name}"
    return f"{keep}: `{command} > unique.{form}`"


def _false(check: TextCheck) -> Iterator[str]:
    found = check.false_negatives
    if found is None or found.per_anchor <= MANY_FALSE:
        return
    # The rate grows with batch_size − 1.
    most = 1 + math.floor((found.batch_size - 1) * MANY_FALSE / found.per_anchor)
    lower = f", or lower batch_size to {most}" if most >= 8 else ""
    yield (
        f"A batch of {found.batch_size} is expected to hold {found.near:.2g} pairs of (nearly) the same words that are "
        f"negatives of each other; keep one of each{lower}."
    )


def _labels(check: TextCheck) -> Iterator[str]:
    balance = check.classes
    if balance is not None:
        if balance.classes < FEW_CLASSES:
            yield "All records have the same label; nothing can be learned from it, so train without labels."
        elif balance.single:
            yield f"Classes of one record: {balance.single:,}; such a record has no positive, so join or drop them."
        elif balance.largest_size > UNEVEN * balance.smallest:
            yield (
                f"The largest class has {balance.largest_size:,} records and the smallest {balance.smallest:,}; "
                "judge by a measure that counts classes alike, and bring more of the small ones."
            )
    if check.scores is not None and check.scores.different < 2:
        yield "All pairs have the same score; there is no order to learn."


def _cut(check: TextCheck, longest: int) -> Iterator[str]:
    lengths = check.lengths
    if lengths.cut_records <= MANY_CUT and lengths.lost_tokens <= MANY_LOST:
        return
    found = f"{lengths.cut_records:.1%} of the records are cut at max_length {lengths.max_length}"
    wanted = next((length for length in LENGTHS if length >= lengths.percentile_95), LENGTHS[-1])
    raised = min(wanted, longest)
    one_text = len(record_type_named(check.record_type).fields) == 1
    todo = []
    if raised > lengths.max_length:
        todo.append(f"raise max_length to {raised}" + ("" if raised == wanted else f", the most {check.model} takes"))
    if one_text and (check.long >= MANY_REPEATED * check.records or not todo):
        todo.append("cut the texts into sentences with split")
    yield f"{found}, and {lengths.lost_tokens:.1%} of the tokens are lost; {', or '.join(todo) or 'shorten the texts'}."


def _language(check: TextCheck) -> Iterator[str]:
    known = {name: share for name, share in check.languages.items() if name != UNKNOWN}
    total = sum(known.values())
    if not known:
        return
    first = next(iter(known))
    if known[first] < MIXED * total:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in list(known.items())[:3])
        yield f"The text seems to hold several languages ({shares}, a guess); start from a multilingual model."
    elif first != "English" and check.model.startswith("builtin"):
        yield f"The text seems to be {first} (a guess), and {check.model} knows English; give another model."
    if check.lengths.unknown is not None and check.lengths.unknown > MANY_UNKNOWN:
        yield (
            f"{check.lengths.unknown:.1%} of the tokens are unknown to {check.model}; give a model whose vocabulary "
            "has the letters of the text."
        )


def _size(check: TextCheck) -> Iterator[str]:
    if check.records < FEW:
        yield f"The text is short (records: {check.records:,}); bring more, or begin with a trained encoder."
    if check.record_type in ("sentences", "documents") and check.short > check.records // 2:
        yield "Most texts have fewer than three words; is each line a sentence?"
    if check.lengths.longest and check.long > check.records // 2 and check.record_type == "sentences":
        yield "Most texts have over 1,000 characters; cut them into sentences with split."


def _methods(check: TextCheck) -> Iterator[str]:
    """What the records carry is lost on methods that take their texts alone."""
    names = [name for name, taken in check.methods.items() if taken == check.record_type]
    carried = record_type_named(check.record_type)
    if not check.methods:
        yield "No method takes this record type; `isotrope methods` lists what each needs."
    elif names and (carried.value is not None or len(carried.fields) > 1):
        what = f"{carried.value}s" if carried.value is not None and not carried.in_text else check.record_type
        yield f"Of the methods, {_listed(names)} {'uses' if len(names) == 1 else 'use'} the {what} of this text."


def _head(check: TextCheck) -> Iterator[str]:
    """Few labels are the case for a classifier on frozen vectors; it is no method of the loop, so none names it."""
    carried, balance = record_type_named(check.record_type), check.classes
    if balance is None or carried.in_text or len(carried.fields) > 1:
        return
    if balance.classes >= FEW_CLASSES and check.records < FEW_LABELS:
        yield (
            f"To classify such texts with few labels ({check.records:,}), begin with `isotrope train head`: it fits a "
            "classifier to frozen vectors in seconds, and `isotrope predict` uses it."
        )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
