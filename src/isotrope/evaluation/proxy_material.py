"""What proxies of a checkpoint are measured on, made once of plain sentences: halves, distractors, pairs, edits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError
from isotrope.evaluation.label_free import halves
from isotrope.evaluation.lexical import lexical_scores

QUERIES, DISTRACTORS, SENTENCES, PAIRS = 512, 8000, 2000, 4000
EDITED = 400  # sentences
STRENGTHS = (0.1, 0.25, 0.5, 0.75)  # share of the words that are replaced
FEWEST = 20
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Edits:
    """copies[i] is originals[i] with the share strengths[i] of its words replaced."""

    originals: list[str]
    copies: list[str]
    strengths: npt.NDArray[np.float64]


@dataclass(frozen=True)
class ProxyMaterial:
    """``first[i]`` and ``second[i]`` are halves of a sentence, ``distractors`` second halves of others.

    ``pairs``: rows of ``sentences`` drawn at random; ``easy``: each sentence with the one that shares most words with
    it, and as many random ones; ``shared_words`` are their TF-IDF cosines.
    """

    first: list[str]
    second: list[str]
    distractors: list[str]
    sentences: list[str]
    pairs: Numbers
    easy: Numbers
    shared_words: npt.NDArray[np.float64]
    edits: Edits

    def texts(self) -> list[str]:
        """Every text that is encoded."""
        return [
            *self.first,
            *self.second,
            *self.distractors,
            *self.sentences,
            *self.edits.originals,
            *self.edits.copies,
        ]


def make_material(texts: Sequence[str], seed: int = 0) -> ProxyMaterial:
    """Material of held-out sentences of six words and more; the same for the same texts and seed."""
    rng = np.random.default_rng(seed)
    long = [text for text in dict.fromkeys(texts) if len(text.split()) >= 6]
    if len(long) < FEWEST:
        raise InputError(f"{len(long)} sentences of six words and more were found; proxies need at least {FEWEST}.")
    order = rng.permutation(len(long))
    cut = [half for row in order if (half := halves(long[row]))]
    own = {b for _, b in cut[:QUERIES]}
    sentences = [long[row] for row in order[:SENTENCES]]
    scores = lexical_scores(long, sentences, sentences)
    easy = _easy(scores, rng)
    return ProxyMaterial(
        [a for a, _ in cut[:QUERIES]],
        [b for _, b in cut[:QUERIES]],
        [b for _, b in cut[QUERIES : QUERIES + DISTRACTORS] if b not in own],
        sentences,
        _drawn(len(sentences), PAIRS, rng),
        easy,
        scores[easy[:, 0], easy[:, 1]],
        make_edits(sentences[:EDITED], rng),
    )


def _drawn(count: int, pairs: int, rng: np.random.Generator) -> Numbers:
    """Pairs of different rows."""
    first = rng.integers(count, size=pairs)
    return np.stack([first, (first + rng.integers(1, count, size=pairs)) % count], axis=1)


def _easy(scores: npt.NDArray[np.float64], rng: np.random.Generator) -> Numbers:
    """Pairs on which shared words are clear: the nearest by words, and random ones, which share hardly any."""
    others = scores.copy()
    np.fill_diagonal(others, -1)
    near = np.stack([np.arange(len(scores)), others.argmax(axis=1)], axis=1)
    return np.concatenate([near[others.max(axis=1) > 0], _drawn(len(scores), len(scores), rng)])


def make_edits(texts: Sequence[str], rng: np.random.Generator) -> Edits:
    """Each text in each strength: so many of its words, at least one, are replaced by words of another text.

    Words are replaced and not deleted: the length would give the strength away.
    """
    originals, copies, strengths = [], [], []
    for row, text in enumerate(texts):
        words = text.split()
        strange = texts[(row + 1 + int(rng.integers(len(texts) - 1))) % len(texts)].split()
        places = rng.permutation(len(words))  # a stronger edit also holds the weaker ones
        new = rng.choice(strange, size=len(words))
        for strength in STRENGTHS:
            count = max(1, round(strength * len(words)))
            changed = list(words)
            for place in places[:count]:
                changed[place] = str(new[place])
            originals.append(text)
            copies.append(" ".join(changed))
            strengths.append(count / len(words))
    return Edits(originals, copies, np.array(strengths))
