"""Pairs → a .tsv file that is whole or absent; what is no pair is counted by its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from isotrope.errors import InputError
from isotrope.files import written_file
from isotrope.progress import bar

Pair = tuple[str | None, str | None]


def write_pairs(target: Path, pairs: Iterable[Pair], total: int, label: str, nothing: str) -> Counter[str]:
    """Write anchor and positive; the counts are "pairs", "missing" (None), "empty" and "unchanged".

    ``label`` is that of the progress bar; ``nothing`` begins the message where no pair is left.
    """
    counts: Counter[str] = Counter()
    with (
        written_file(target) as temporary,
        open(temporary, "w", encoding="utf-8") as lines,
        bar(label, total) as advance,
    ):
        lines.write("anchor\tpositive\n")
        for first, second in pairs:
            advance(1)
            fate = _fate(first, second)
            counts[fate] += 1
            if fate == "pairs":
                lines.write(f"{first}\t{second}\n")
        if not counts["pairs"]:
            reasons = ", ".join(f"{count:,} {fate}" for fate, count in counts.items())
            raise InputError(f"{nothing} ({reasons}).")
    return counts


def _fate(first: str | None, second: str | None) -> str:
    if first is None or second is None:
        return "missing"
    if not first or not second:
        return "empty"
    return "unchanged" if first == second else "pairs"
