"""Near-duplicates: texts that share at least four fifths of their shingles, found in linear time.

    J(A, B) = |A ∩ B| / |A ∪ B| ≥ 0.8        over sets of word 3-shingles (``shingles.py``)

MinHash proposes and the sets decide. A hash function picks the same smallest shingle of two sets with probability J;
64 of them, cut into 16 bands of 4, put two texts into one bucket of some band with probability

    1 − (1 − J⁴)¹⁶        0.9998 at J = 0.8, 0.64 at 0.5, 0.02 at 0.2

and only pairs whose Jaccard similarity is then computed and large enough count. In a bucket each text is held against
the 16 that come first, so a bucket of a million copies of a form letter costs sixteen million comparisons, not 10¹².

Use it on sentences and paragraphs that were copied with small changes. It is strict for short texts: one other word in
the middle of a sentence breaks three shingles, and a sentence of fewer than 29 words then falls below 0.8 (11 words
where the last one differs). Paraphrases are not found. Texts with the same words are equal here; count them by their
words first, it is cheaper. ``protected_sentences.py`` looks for a sentence inside a longer line, which no set
similarity can see.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from isotrope.data.shingles import ShingleSets
from isotrope.progress import bar

LEAST = 0.8  # Jaccard similarity of near-duplicates
BANDS, ROWS = 16, 4
LIKELY = 0.55  # agreement of two signatures below which J ≥ 0.8 is out of the question: five standard deviations
FIRST = 16  # texts of a bucket that the others are compared with
BLOCK = 1 << 18  # shingles, or pairs, looked at together
Rows = npt.NDArray[np.int64]
Signatures = npt.NDArray[np.uint32]


def near_groups(sets: ShingleSets) -> Rows:
    """For each text the first text of its group: itself, or an earlier one with J ≥ 0.8.

    Groups are stars: texts are taken in order, and one that belongs to none begins a group of all later near-duplicates
    that belong to none either. Two texts of a group are both near the first one, hence J ≥ 0.6 between them (1 − J is a
    metric). Chains do not grow: a text near a member alone stays outside.
    """
    first = np.arange(len(sets))
    taken = np.zeros(len(sets), dtype=np.bool_)
    pairs = near_pairs(sets)
    for later, earlier in pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))].tolist():
        if first[earlier] == earlier and not taken[later]:
            first[later], taken[later] = earlier, True
    return first


def near_pairs(sets: ShingleSets, references: ShingleSets | None = None) -> Rows:
    """[pairs, 2]: a text and a reference with J ≥ 0.8; without references, a text and an earlier one."""
    signatures = signatures_of(sets)
    others = signatures if references is None else signatures_of(references)
    seen = np.empty((0, 2), dtype=np.int64)
    with bar("looking for near-duplicates", BANDS) as advance:
        for band in range(BANDS):
            proposed = [seen]
            for pairs in _bucket_pairs(_band_key(signatures, band), _band_key(others, band), references is None):
                agreement = (signatures[pairs[:, 0]] == others[pairs[:, 1]]).mean(axis=1)
                proposed.append(pairs[agreement >= LIKELY])
            seen = np.unique(np.concatenate(proposed), axis=0)
            advance()
    return seen[jaccard(sets, sets if references is None else references, seen) >= LEAST]


def jaccard(sets: ShingleSets, others: ShingleSets, pairs: Rows) -> npt.NDArray[np.float64]:
    """The exact similarity of the texts of each pair, ``pairs[:, 0]`` in ``sets`` and ``pairs[:, 1]`` in ``others``."""
    found = [np.empty(0)]
    for part in np.array_split(pairs, max(1, len(pairs) // 8192)):
        (left, left_sizes), (right, right_sizes) = sets.of(part[:, 0]), others.of(part[:, 1])
        number = np.arange(len(part), dtype=np.uint64) << np.uint64(32)
        both = np.intersect1d(
            np.repeat(number, left_sizes) | left, np.repeat(number, right_sizes) | right, assume_unique=True
        )
        shared = np.bincount((both >> np.uint64(32)).astype(np.int64), minlength=len(part))
        found.append(shared / np.maximum(left_sizes + right_sizes - shared, 1))
    return np.concatenate(found)


def signatures_of(sets: ShingleSets) -> Signatures:
    """[texts, 64]: the smallest value of each hash function (a · x + b, the upper 32 bits) over the shingles."""
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 1 << 63, BANDS * ROWS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    shifts = rng.integers(0, 1 << 63, BANDS * ROWS, dtype=np.uint64)
    signatures = np.empty((len(sets), BANDS * ROWS), dtype=np.uint32)
    for begin, end in _blocks(sets.starts):
        values = sets.values[sets.starts[begin] : sets.starts[end]].astype(np.uint64)
        starts = sets.starts[begin:end] - sets.starts[begin]
        for place in range(BANDS * ROWS):
            hashed = ((values * factors[place] + shifts[place]) >> np.uint64(32)).astype(np.uint32)
            signatures[begin:end, place] = np.minimum.reduceat(hashed, starts)
    return signatures


def _blocks(starts: Rows) -> Iterator[tuple[int, int]]:
    """Stretches of texts with about ``BLOCK`` shingles each."""
    begin = 0
    while begin < len(starts) - 1:
        end = max(begin + 1, int(np.searchsorted(starts, starts[begin] + BLOCK, side="right")) - 1)
        yield begin, end
        begin = end


def _band_key(signatures: Signatures, band: int) -> npt.NDArray[np.uint64]:
    key = np.zeros(len(signatures), dtype=np.uint64)
    for place in range(band * ROWS, (band + 1) * ROWS):
        key = (key ^ signatures[:, place]) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(32)
    return key


def _bucket_pairs(
    keys: npt.NDArray[np.uint64], references: npt.NDArray[np.uint64], earlier_only: bool
) -> Iterator[Rows]:
    """Each text with the first references of its bucket."""
    order = np.argsort(references, kind="stable")
    ranked = references[order]
    begins, ends = (np.searchsorted(ranked, keys, side=side) for side in ("left", "right"))
    sizes = np.minimum(ends - begins, FIRST)
    if earlier_only:
        sizes[ends - begins < 2] = 0
    texts = np.flatnonzero(sizes)
    for part in np.array_split(texts, max(1, len(texts) * FIRST // BLOCK)):
        counts = sizes[part]
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        pairs = np.column_stack([np.repeat(part, counts), order[np.repeat(begins[part], counts) + within]])
        yield pairs[pairs[:, 1] < pairs[:, 0]] if earlier_only else pairs
