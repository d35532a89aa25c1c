"""A check as rows for people: what was looked at, and what was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from isotrope.data.checking.leaked_sets import leaking_sets

if TYPE_CHECKING:
    from isotrope.data.checking.text_check import TextCheck

BAR = 24  # columns of the longest bar
SHOWN = 5


def rows_of(check: TextCheck) -> list[dict[str, Any]]:
    pairs = (*_text(check), *_repetition(check), *_values(check), *_lengths(check), *_uses(check))
    lines = ((what, found.split("\n")) for what, found in pairs)  # a bar a row: a terminal's cell holds one line
    return [{"what": "" if later else what, "found": line} for what, found in lines for later, line in enumerate(found)]


def _text(check: TextCheck) -> Iterator[tuple[str, str]]:
    columns = f", columns {', '.join(check.columns)}" if check.columns else ""
    columns += f"; not read: {', '.join(check.unread_columns)}" if check.unread_columns else ""
    others = [name for name in check.record_types if name != check.record_type]
    yield "files", f"{', '.join(check.files)} ({check.format}{columns})"
    yield "records", f"{check.records:,}, and {check.empty:,} empty lines or rows"
    yield "record type", check.record_type + (f"; also fits: {', '.join(others)}" if others else "")
    if check.documents is not None:
        yield "dialogues" if check.record_type == "dialogues" else "documents", f"{check.documents:,}"
    if check.sample < check.records:
        yield "sample", f"{check.sample:,} random records, for the rows marked with *"
    guessed = [f"{name} {share:.1%}" for name, share in check.languages.items()]
    yield f"language, a guess{_star(check)}", ", ".join(guessed[:SHOWN])


def _repetition(check: TextCheck) -> Iterator[tuple[str, str]]:
    found = check.duplicates
    yield "exact duplicates", _part(found.exact, check.records)
    yield "same words", _part(found.same_words, check.records)
    if found.near is not None:
        yield f"near-duplicates{_star(check)}", _part(found.near, check.sample)
    if found.conflicting is not None:
        yield "texts with two labels", f"{found.conflicting:,}"
    expected = check.false_negatives
    if expected is not None:
        classes = "" if expected.same_class is None else f", {_rate(expected.same_class)} of the same class"
        yield (
            f"expected in a batch of {expected.batch_size}",
            f"{_rate(expected.copies)} pairs of copies, {_rate(expected.near)} of (nearly) the same words{classes}",
        )
    yield (
        "short and long",
        f"{check.short:,} with a text of under 3 words, {check.long:,} with one over 1,000 characters",
    )


def _values(check: TextCheck) -> Iterator[tuple[str, str]]:
    if check.classes is not None:
        balance = check.classes
        yield (
            "classes",
            f"{balance.classes:,}; the smallest has {balance.smallest:,}, {balance.single:,} have one record",
        )
        yield "largest classes", histogram(balance.largest)
    if check.scores is not None:
        spread = check.scores
        yield "scores", f"{spread.lowest:g} to {spread.highest:g}, mean {spread.mean:.3g}"
        yield "scores from", histogram(spread.histogram)


def _lengths(check: TextCheck) -> Iterator[tuple[str, str]]:
    lengths = check.lengths
    yield (
        f"tokens of {check.model}{_star(check)}",
        f"median {lengths.median}, 95 % {lengths.percentile_95}, longest {lengths.longest:,}",
    )
    yield "texts of up to … tokens", histogram(lengths.histogram)
    yield (
        f"cut at max_length {lengths.max_length}",
        f"{lengths.cut_records:.1%} of the records, {lengths.lost_tokens:.1%} of the tokens",
    )
    if lengths.unknown:
        yield "unknown tokens", f"{lengths.unknown:.2%}"


def _uses(check: TextCheck) -> Iterator[tuple[str, str]]:
    for record_type in check.record_types:
        names = [name for name, taken in check.methods.items() if taken == record_type]
        if names:
            yield f"methods, as {record_type}", ", ".join(names)
    if check.leaks is None:
        yield "test sets", "not looked at: give data_dir or set ISOTROPE_DATA"
        return
    yield (
        f"leaks of {len(check.leaks.sets)} sets",
        f"{check.leaks.exact:,} records hold a sentence, {check.leaks.near:,}{_star(check)} are near one",
    )
    for name in leaking_sets(check.leaks):
        one = check.leaks.sets[name]
        yield f"  {name}", f"{one.exact:,} exact, {one.near:,} near, of {one.sentences:,} sentences"


def histogram(counts: Mapping[str, int]) -> str:
    """One line a bin, with a bar; empty bins at either end are left out."""
    names = _without_empty_ends(counts)
    width = max(map(len, names))
    highest = max(counts.values())
    lines = (
        f"{name:>{width}} {'█' * round(BAR * counts[name] / highest) or '·':<{BAR}} {counts[name]:,}" for name in names
    )
    return "\n".join(lines)


def _without_empty_ends(counts: Mapping[str, int]) -> list[str]:
    filled = [place for place, count in enumerate(counts.values()) if count]
    return list(counts)[filled[0] : filled[-1] + 1]


def _part(count: int, total: int) -> str:
    return f"{count:,} ({count / total:.1%})" if count else "none"


def _rate(expected: float) -> str:
    return "under 0.001" if 0 < expected < 0.001 else f"{expected:.3g}"


def _star(check: TextCheck) -> str:
    return " *" if check.sample < check.records else ""
