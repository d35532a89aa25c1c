"""Two segments of a text: consecutive runs of sentences, or one run and another from elsewhere (NSP, SOP).

Both are cut to fit into a row together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.data.corpus import Corpus, Records
from isotrope.errors import InputError

Ids = npt.NDArray[Any]
Hidden = npt.NDArray[np.bool_]
TRIES = 4


def document_sizes(corpus: Corpus, wanted_by: str) -> npt.NDArray[np.int64]:
    """Sentences of each document; refused where there is one document only, or no sentence follows another."""
    sizes: npt.NDArray[np.int64] = np.diff(corpus.starts, append=len(corpus))
    if len(sizes) < 2:
        raise InputError(
            f"The text is one document, and {wanted_by} needs several; put an empty line between documents."
        )
    if sizes.max() < 2:
        raise InputError(
            f"Each document is a single sentence, and {wanted_by} needs some that follow each other; put them in a row."
        )
    return sizes


def has_documents(corpus: Corpus) -> bool:
    """Whether there are several documents, and sentences that follow each other in one."""
    return 1 < len(corpus.starts) < len(corpus)


def draw_length(most: int, short_share: float, rng: np.random.Generator) -> int:
    """How many tokens a pair should have: all that there is room for, and with ``short_share`` fewer.

    So short texts are seen too.
    """
    return int(rng.integers(2, most + 1)) if rng.random() < short_share else most


def run_from(corpus: Corpus, row: int, tokens: int, fewest: int = 1, hidden: Hidden | None = None) -> range:
    """Sentences from ``row`` on until they hold ``tokens`` tokens and are ``fewest``, or the document ends.

    With ``hidden``, which says of each row whether it is held out, the run stays on the side of ``row``.
    """
    run = range(row, min(row + max(corpus.reach(row, tokens), fewest), corpus.document(row).stop))
    if hidden is None:
        return run
    others = np.flatnonzero(hidden[run.start : run.stop] != hidden[row])
    return run[: int(others[0])] if len(others) else run


def cut_in_two(run: range, rng: np.random.Generator) -> tuple[range, range]:
    """Between two sentences; a single one is the first part, and the second is empty."""
    cut = int(rng.integers(1, len(run))) if len(run) > 1 else 1
    return run[:cut], run[cut:]


def draw_elsewhere(records: Records, row: int, rng: np.random.Generator) -> int:
    """A row of another document.

    It is one of the batch's own records where there is one, so that held-out text stays unseen.
    """
    own, total = records.corpus.document(row), len(records.corpus)
    for _ in range(TRIES):  # nearly all of a large batch are of other documents
        drawn = int(records.rows[int(rng.integers(len(records)))])
        if drawn not in own:
            return drawn
    near = [other for other in records.rows if other not in own]
    if near:
        return int(near[rng.integers(len(near))])
    if len(own) == total:
        raise InputError("The text is one document, so nothing can be drawn from another one.")
    drawn = int(rng.integers(total - len(own)))
    return drawn if drawn < own.start else drawn + len(own)


def ids_of(corpus: Corpus, run: range) -> Ids:
    """The tokens of a run of sentences."""
    return corpus.stretch(run)


def fit_pair(first: Ids, second: Ids, most: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """BERT's truncation: the longer side loses a token until both have ``most`` together.

    Whether the token goes at the front or at the back is drawn at random.
    """
    from_first, from_second = _too_many(len(first), len(second), most)
    return _shortened(first, from_first, rng), _shortened(second, from_second, rng)


def trim_pair(first: Ids, second: Ids, most: int) -> tuple[Ids, Ids]:
    """BERT's truncation for fine-tuning: like ``fit_pair``, always at the back."""
    from_first, from_second = _too_many(len(first), len(second), most)
    return first[: len(first) - from_first], second[: len(second) - from_second]


def _too_many(first: int, second: int, most: int) -> tuple[int, int]:
    """How many tokens each side loses."""
    over = max(first + second - most, 0)
    from_first, from_second = (min(over, max(gap, 0)) for gap in (first - second, second - first))
    rest = over - from_first - from_second  # both are equally long now; the second is cut first
    return from_first + rest // 2, from_second + (rest + 1) // 2


def _shortened(ids: Ids, count: int, rng: np.random.Generator) -> Ids:
    front = int(rng.binomial(count, 0.5))
    return ids[front : len(ids) - (count - front)]
