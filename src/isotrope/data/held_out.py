"""The held-out split: which records a run never trains on, so that it is judged on text it never saw."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isotrope.data.batches import Rows, borders
from isotrope.data.corpus import Corpus
from isotrope.data.corpus_files import Keys

FEWEST = 20  # records that are worth holding out


def hold_out(corpus: Corpus, count: int, seed: int) -> tuple[Rows, Rows]:
    """(rows to train on, rows held out): about ``count`` records at most, and at most a tenth of the corpus.

    Whole documents are held out where there are some, and each class in its share. No text stands on both sides: a
    drawn record that shares a text with the rest is left out of both, and a document or dialogue that has to stay whole
    is left out where all of its texts are shared. Where fewer than 20 records could be held out, such as of questions
    with several answers each, first texts are drawn with all of their records; where that leaves fewer than 20 of them,
    nothing is held out. Relations are few: any number of them is held out.
    """
    total = len(corpus)
    most = min(count, total // 10)
    stays, held = _alone(corpus, _draw(corpus, most, seed))
    enough = len(held) >= (1 if corpus.record_type.names else FEWEST)
    if not enough and not corpus.record_type.names and corpus.keys.shape[1] > 1:
        stays, held = _alone(corpus, _draw_evenly(corpus, most, seed))
        enough = len(np.unique(corpus.keys[held, 0])) >= FEWEST
    if enough:
        return np.flatnonzero(stays), held
    return np.arange(total, dtype=np.int64), np.empty(0, dtype=np.int64)


def _alone(corpus: Corpus, drawn: Rows) -> tuple[npt.NDArray[np.bool_], Rows]:
    """Which rows were not drawn, and the drawn ones that share no text with them."""
    stays = np.ones(len(corpus), dtype=bool)
    stays[drawn] = False
    kept = ~np.isin(corpus.keys[drawn], _shared(corpus, drawn, stays)).any(axis=1)
    if corpus.record_type.whole:
        documents = corpus.documents[drawn]
        kept = np.isin(documents, documents[kept])
    return stays, drawn[kept]


def _shared(corpus: Corpus, drawn: Rows, stays: npt.NDArray[np.bool_]) -> Keys:
    """Keys of the drawn texts that also stand in a row that stays."""
    texts = np.unique(corpus.keys[drawn])
    shared = np.zeros(len(texts), dtype=bool)
    for start, end in _blocks(len(corpus) if len(texts) else 0):
        keys = corpus.keys[start:end][stays[start:end]].ravel()
        places = np.minimum(np.searchsorted(texts, keys), len(texts) - 1)
        shared[places[texts[places] == keys]] = True
        corpus.release()
    return texts[shared]


def _draw(corpus: Corpus, count: int, seed: int) -> Rows:
    if corpus.record_type.names:
        return _draw_known(corpus, count, seed)
    if corpus.record_type.value in ("label", "entity"):
        return _draw_evenly(corpus, count, seed)
    drawn = _draw_documents(corpus, count, seed)
    if len(drawn) >= count // 2 or (corpus.record_type.whole and corpus.counts.documents > 1):
        return drawn
    return _draw_rows(len(corpus), count, seed)


def _draw_documents(corpus: Corpus, count: int, seed: int) -> Rows:
    """Rows of documents taken in random order until ``count`` is reached.

    A document too long for what is left is passed over. Where that gives too little and documents have to stay whole,
    the shortest document that is enough is taken, if it is no more than a tenth of the corpus.
    """
    if corpus.counts.documents < 2:
        return np.empty(0, dtype=np.int64)
    # More than enough, and not millions to sort.
    documents = len(corpus.starts)
    candidates = _drawn(documents, (2 * count + 1000) / documents, seed)
    taken: list[Rows] = []
    left = count
    for document in candidates[np.argsort(_dice(candidates, seed), kind="stable")]:
        end = corpus.starts[document + 1] if document + 1 < documents else len(corpus)
        size = int(end - corpus.starts[document])
        if size <= left:
            taken.append(np.arange(corpus.starts[document], end))
            left -= size
        if left <= 0:
            break
    if corpus.record_type.whole and count and count - left < FEWEST:
        starts, ends = borders(corpus)
        sizes = ends - starts
        fitting = np.flatnonzero((sizes >= FEWEST) & (sizes <= len(corpus) // 10))
        taken = [np.arange(starts[d], ends[d]) for d in fitting[np.argsort(sizes[fitting])][:1]]
    return np.sort(np.concatenate(taken)) if taken else np.empty(0, dtype=np.int64)


def _draw_evenly(corpus: Corpus, count: int, seed: int) -> Rows:
    """``count`` rows, each class in its share.

    The draw depends on the first text alone: the hypotheses of a premise, or the entities of a sentence, are drawn
    together, or else hardly one could be held out.
    """
    total = len(corpus)
    labels = corpus.numbers("label") if corpus.record_type.value == "label" else np.broadcast_to(np.int32(0), total)
    quota = np.diff(np.cumsum(_counted(labels)) * count // total, prepend=0)
    drawn = np.empty(0, dtype=np.int64)
    for start, end in _blocks(total):
        rows = np.concatenate([drawn, np.arange(start, end)])
        rows = rows[np.lexsort((_dice(corpus.keys[rows, 0], seed), labels[rows]))]
        of = labels[rows]
        drawn = rows[np.arange(len(rows)) - np.searchsorted(of, of) < quota[of]]
    return np.sort(drawn)


def _counted(labels: npt.NDArray[np.int32]) -> Rows:
    """How many records each class has."""
    found = np.zeros(int(labels.max()) + 1, dtype=np.int64)
    for start, end in _blocks(len(labels)):
        found += np.bincount(labels[start:end], minlength=len(found))
    return found


def _draw_known(corpus: Corpus, count: int, seed: int) -> Rows:
    """``count`` rows whose names and relation also stand in rows that stay: nobody could complete the others."""
    _, names = np.unique(corpus.field_keys, return_inverse=True)
    names = names.reshape(corpus.field_keys.shape)
    relations = corpus.numbers("relation")
    left_names, left_relations = np.bincount(names.ravel()), np.bincount(relations)
    drawn: list[int] = []
    for row in np.argsort(_dice(np.arange(len(corpus)), seed), kind="stable"):
        if len(drawn) == count:
            break
        own = 2 if names[row][0] == names[row][-1] else 1  # how often the row itself holds its rarest name
        if left_relations[relations[row]] > 1 and left_names[names[row]].min() > own:
            left_relations[relations[row]] -= 1
            np.subtract.at(left_names, names[row], 1)
            drawn.append(int(row))
    return np.sort(np.array(drawn, dtype=np.int64))


def _draw_rows(total: int, count: int, seed: int) -> Rows:
    return _drawn(total, count / max(total, 1), seed)


def _drawn(total: int, share: float, seed: int) -> Rows:
    """About this share of the numbers below ``total``."""
    return np.concatenate(
        [start + np.flatnonzero(_dice(np.arange(start, end), seed) < share) for start, end in _blocks(total)]
    )


def _blocks(total: int, size: int = 1 << 16) -> list[tuple[int, int]]:
    return [(start, min(start + size, total)) for start in range(0, total, size)]


def _dice(numbers: npt.NDArray[np.int64] | npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.float64]:
    """A number in [0, 1) for each, the same in every process (the finaliser of SplitMix64)."""
    x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64((seed * 0xD1B54A32D192ED03 + 1) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))).astype(np.float64) / 2.0**64
