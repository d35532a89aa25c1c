"""Which source of a run the next batch comes from, so that shares hold at every step.

    n batches so far, c_s of them from source s, p_s its share:    next = argmax_s  p_s · (n + 1) − c_s

The source that is furthest behind its share is next; of equals the first. No number is drawn: a resumed run repeats the
turns, every process has the same, and no source has a streak or a gap by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus


def turns(shares: Sequence[float]) -> Iterator[int]:
    """Numbers of sources, without end. ``shares`` are any positive numbers; only their ratios count."""
    wanted = np.asarray(shares, dtype=np.float64) / np.sum(shares, dtype=np.float64)
    counts = np.zeros(len(wanted))
    while True:
        source = int(np.argmax(wanted * (counts.sum() + 1) - counts))
        counts[source] += 1
        yield source


def without_texts(corpus: Corpus, rows: Rows, others: Sequence[tuple[Corpus, Rows]]) -> Rows:
    """Those of ``rows`` that share no text with the given rows of other corpora: what one source holds out, no other
    source trains on. Where sentences stand in documents, a document goes as a whole: methods read what follows a row.
    """
    if not others:
        return rows
    hidden = np.unique(np.concatenate([np.asarray(other.field_keys[held]).ravel() for other, held in others]))
    if not len(hidden):
        return rows
    if corpus.counts.documents < 2:
        return rows[~np.isin(corpus.field_keys[rows], hidden).any(axis=1)]
    touched = corpus.documents[np.isin(corpus.field_keys, hidden).any(axis=1)]
    return rows[~np.isin(corpus.documents[rows], touched)]
