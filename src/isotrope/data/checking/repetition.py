"""Copies and near-duplicates among the records of a text, and the false negatives that they make of a batch.

Copies are counted over all records, near-duplicates over the sample. A record of several texts is a duplicate where all
of its texts are; a false negative where its anchor or its positive is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isotrope.data.checking.batch_collisions import expected_pairs, pairs_of_sizes, pairs_sharing
from isotrope.data.checking.tally import Sampled, Tally
from isotrope.data.corpus_files import combined
from isotrope.data.near_duplicates import near_groups
from isotrope.data.prose_text import origin
from isotrope.data.shingles import shingle_sets

EXAMPLES = 3
CONTRASTED = 2  # texts of a record that can be a candidate of another one: its anchor and its positive
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Duplicates:
    """Records beyond the first of their group: taking them out leaves one of each.

    ``exact``: the same text, white space folded. ``same_words``: the same words besides those, with another case or
    punctuation. ``near``: further records of the sample with J ≥ 0.8. ``conflicting``: texts that carry another label
    in another record; none where there are no labels.
    """

    exact: int
    same_words: int
    near: int | None
    conflicting: int | None
    examples: list[dict[str, str]]


@dataclass(frozen=True)
class FalseNegatives:
    """Expected pairs of records in one batch that are no negatives of each other.

    ``copies`` share a text exactly, ``near`` share (almost) all of their words, ``same_class`` a label.
    """

    batch_size: int
    copies: float
    near: float
    same_class: float | None

    @property
    def per_anchor(self) -> float:
        """False negatives that an anchor meets on average, copies left out: the default order of batches does so."""
        return 2 * self.near / self.batch_size


def find_duplicates(tally: Tally) -> tuple[Duplicates, npt.NDArray[np.int64] | None]:
    """The counts, and the groups of near-duplicates in the sample: [sampled records, fields]."""
    texts, words = len(np.unique(combined(_raw_keys(tally)))), len(np.unique(tally.word_keys))
    labelled = tally.record_type.value == "label" and not tally.record_type.in_text
    conflicting = len(np.unique(tally.valued_keys)) - words if labelled else None
    groups, near, examples = None, None, []
    if not tally.record_type.names:
        groups = _near_groups(tally)
        distinct = len(np.unique(tally.word_keys[tally.places]))
        near = max(0, distinct - len(np.unique(groups, axis=0)))
        examples = _examples(tally, groups)
    return Duplicates(tally.records - texts, texts - words, near, conflicting, examples), groups


def false_negatives(tally: Tally, groups: npt.NDArray[np.int64] | None, batch_size: int) -> FalseNegatives | None:
    """None for scored pairs, labelled pairs and relations: their methods take no record as a negative of another."""
    kind = tally.record_type
    if groups is None or (len(kind.fields) > 1 and kind.value is not None):
        return None
    size = min(batch_size, tally.records)
    keys = tally.text_keys[:, :CONTRASTED]
    sampled = len(tally.sample)
    near = pairs_sharing(groups[:, :CONTRASTED]) - pairs_sharing(keys[tally.places])
    classes = pairs_of_sizes(list(tally.values.values())) if kind.value == "label" else None
    return FalseNegatives(
        size,
        expected_pairs(pairs_sharing(keys), tally.records, size),
        expected_pairs(max(near, 0), sampled, size),
        None if classes is None else expected_pairs(classes, tally.records, size),
    )


def _raw_keys(tally: Tally) -> Keys:
    """Names recur in many relations: there the relation belongs to the record."""
    keys = tally.text_keys
    return np.column_stack([keys, tally.word_keys]) if tally.record_type.names else keys


def _near_groups(tally: Tally) -> npt.NDArray[np.int64]:
    columns = []
    for place in range(len(tally.record_type.fields)):
        numbers: dict[str, int] = {}  # the different texts in the order of the file
        inverse = [numbers.setdefault(one.lines[place], len(numbers)) for one in tally.sample]
        columns.append(near_groups(shingle_sets(numbers))[inverse])
    return np.column_stack(columns)


def _examples(tally: Tally, groups: npt.NDArray[np.int64]) -> list[dict[str, str]]:
    """The first records with the group of an earlier one whose words differ."""
    found, seen = [], dict[bytes, int]()
    words = tally.word_keys[tally.places]
    for row, group in enumerate(groups):
        first = seen.setdefault(group.tobytes(), row)
        if words[first] == words[row]:
            continue
        this, other = tally.sample[row], tally.sample[first]
        found.append(
            {
                "record": _place(this),
                "text": this.record.texts[0],
                "near": _place(other),
                "near_text": other.record.texts[0],
            }
        )
        if len(found) == EXAMPLES:
            break
    return found


def _place(one: Sampled) -> str:
    file, line = origin(Path(one.file), one.record.line) or (one.file, one.record.line)
    return f"{file}:{line}"
