"""Records of a text that hold, or nearly equal, a sentence of the test sets, by set.

``protected_sentences.py`` decides what holds a sentence, over all records; near-duplicates are those of
``near_duplicates.py``, over the sample. A record that holds a sentence of a set is not counted as near to it as well.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from isotrope.data.checking.tally import Tally
from isotrope.data.near_duplicates import near_pairs
from isotrope.data.protected_sentences import Protected
from isotrope.data.shingles import shingle_sets


@dataclass(frozen=True)
class SetLeaks:
    """``sentences`` of the set; records that hold one (``exact``), and records of the sample near one (``near``)."""

    sentences: int
    exact: int
    near: int


@dataclass(frozen=True)
class LeakedSets:
    """By test set; ``exact`` and ``near`` are different records over all sets."""

    exact: int
    near: int
    sets: dict[str, SetLeaks]


def find_leaked_sets(tally: Tally, protected: Protected) -> LeakedSets:
    """The exact leaks that were counted, and the near ones of the sample."""
    near: Counter[str] = Counter()
    records = 0
    found = _near_sets(tally, protected)
    held = protected.leaking([tally.sample[row].record.texts for row in found])
    for place, names in enumerate(found.values()):
        others = names - held.get(place, set())
        near.update(others)
        records += bool(others)
    sets = {name: SetLeaks(size, tally.leaks[name], near[name]) for name, size in protected.sizes.items()}
    return LeakedSets(tally.leaking, records, sets)


def _near_sets(tally: Tally, protected: Protected) -> dict[int, set[str]]:
    """By record of the sample, the sets with a sentence that one of its texts is near to."""
    sentences = list(protected.sets)
    references = shingle_sets(sentences)
    found: dict[int, set[str]] = {}
    for place in range(len(tally.record_type.fields)):
        texts = shingle_sets(one.lines[place] for one in tally.sample)
        for row, sentence in near_pairs(texts, references).tolist():
            found.setdefault(row, set()).update(protected.sets[sentences[sentence]])
    return found


def leaking_sets(leaks: LeakedSets) -> list[str]:
    """Names of the sets that leak, the most first."""
    totals = {name: one.exact + one.near for name, one in leaks.sets.items()}
    return [name for name in sorted(totals, key=lambda name: -totals[name]) if totals[name]]
