"""Bitext: is the translation of a sentence its nearest neighbour in the other language? Tatoeba, language by language.

    accuracy = share of sentences whose nearest text of the other side, by cosine, is their translation; × 100

Both directions; the score of a language is their mean. Another pair with the very same text counts as right, a tie with
a different text as wrong. No margin or other correction for hubs, which papers on mining add.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation import lexical, random_baseline
from isotrope.evaluation.benchmark_files import data_folder, find_task
from isotrope.evaluation.items import Items
from isotrope.evaluation.lexical import lexical_sides
from isotrope.evaluation.random_baseline import random_vectors
from isotrope.evaluation.results import ENCODER, Results, nested_sides, read_out
from isotrope.evaluation.retrieval_files import table_rows
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.intervals import Interval, mean_share_interval, normal_interval

PROTOCOL = "bitext-nearest-v1"
FOLDER, TASK = "parallel", "tatoeba_eng"
FIELDS = (("language",), ("sentence",), ("english",))
COLUMNS = ("language", "matched by", "accuracy", "95 % interval", "to English", "from English", "pairs")
AT_ONCE = 1024  # texts compared with all of the other side
TIE = 1e-6
Floats = npt.NDArray[np.float64]
Matrix = Any  # dense, or sparse of scipy


@dataclass(frozen=True)
class Bitext:
    """``sentences[i]`` and ``english[i]`` are translations."""

    sentences: list[str]
    english: list[str]


@dataclass(frozen=True)
class MatchScore:
    """× 100; ``accuracy`` is the mean of both directions."""

    accuracy: float
    low: float
    high: float
    to_english: float
    from_english: float
    pairs: int


class BitextMatching(Suite):
    """Do translations lie together? Accuracy of the nearest neighbour, for every language of Tatoeba.

    An encoder that saw English alone is near what shared names and numbers give, the TF-IDF row. A thousand candidates
    are few: mining among millions is much harder.
    """

    card = SuiteCard(
        name="bitext",
        title="Translations as nearest neighbours, every language of Tatoeba",
        protocol=PROTOCOL,
        takes=("data_dir", "seeds", "baselines"),
    )

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        read_bitext(_file(options.data_dir))

    def run(self, encoder: Encoder, options: Options) -> Results:
        """Accuracy × 100 of each language and their plain mean, next to TF-IDF and random vectors. Nothing is drawn."""
        languages, baselines = read_bitext(_file(options.data_dir)), options.baselines
        every = [text for found in languages.values() for text in (*found.sentences, *found.english)]
        vectors = TextVectors.encoded(encoder, every, normalize=True)
        hits: dict[str, dict[str, Floats]] = {}
        for name, found in languages.items():
            sides: dict[str, tuple[Matrix, Matrix]] = {
                ENCODER: (vectors.of(found.sentences), vectors.of(found.english))
            }
            if baselines:
                sides[lexical.TITLE] = lexical_sides(found.sentences, found.english)
                chance = random_vectors((*found.sentences, *found.english), encoder.dimension)
                sides[random_baseline.TITLE] = chance.of(found.sentences), chance.of(found.english)
            hits[name] = {title: matches(*both, found) for title, both in sides.items()}
        scores = {name: {title: _score(each) for title, each in sides.items()} for name, sides in hits.items()}
        titles = list(next(iter(scores.values())))
        averages = {title: _average([sides[title] for sides in scores.values()]) for title in titles}
        described = {
            lexical.TITLE: f"{lexical.DESCRIPTION}, fitted on each language",
            random_baseline.TITLE: random_baseline.described(encoder.dimension),
        }
        protocol = {
            "protocol": PROTOCOL,
            "search": "exact, cosine, among all texts of the other side; mean of both directions; ties lose",
            "interval": "95 %, normal, over the pairs",
            **(described if baselines else {}),
            **read_out(encoder),
        }
        nested = {name: nested_sides(sides) for name, sides in {**scores, "average": averages}.items()}
        rows = [row for name, sides in scores.items() for row in _rows(name, sides)]
        rows += _rows("average of languages", averages)
        items = {name: Items(sides[ENCODER].mean(axis=0)) for name, sides in hits.items()}
        return Results({"bitext": nested}, protocol, COLUMNS, rows, items=items)

    def summary(self, results: Results) -> dict[str, float]:
        found = results.scores["bitext"]
        languages = {f"bitext_{name}": found[name]["accuracy"] for name in found if name != "average"}
        return {"bitext_average": found["average"]["accuracy"], **languages}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        languages = read_bitext(_file(options.data_dir))
        return {name: [*found.sentences, *found.english] for name, found in languages.items()}


def matches(first: Matrix, second: Matrix, found: Bitext) -> Floats:
    """[2, pairs]: 1 where the nearest text of the other side is the translation; to English, then from it."""
    return np.stack([_hits(first, second, found.english), _hits(second, first, found.sentences)])


def read_bitext(file: Path) -> dict[str, Bitext]:
    """The pairs of each language, in the order of the file; rows with an empty side are left out."""
    rows: dict[str, list[tuple[str, str]]] = {}
    for _, (language, sentence, english) in table_rows(file, FIELDS):
        if sentence and english:
            rows.setdefault(language, []).append((sentence, english))
    if not rows:
        raise InputError(f"{file}: no pairs found; rows with language, sentence and english are expected.")
    few = next((name for name, pairs in rows.items() if len(set(pairs)) < 2), None)
    if few is not None:
        raise InputError(f"{file}: language '{few}' has one pair; at least two are needed to choose among.")
    return {name: Bitext([a for a, _ in pairs], [b for _, b in pairs]) for name, pairs in sorted(rows.items())}


def _hits(asked: Matrix, known: Matrix, wanted: Sequence[str]) -> Floats:
    """Whether the wanted text is nearer than every different one; a tie within rounding is none."""
    texts = np.unique(wanted, return_inverse=True)[1].ravel()
    found = []
    for start in range(0, len(wanted), AT_ONCE):
        product = asked[start : start + AT_ONCE] @ known.T
        cosines = np.asarray(product.toarray() if hasattr(product, "toarray") else product, dtype=np.float64)
        same = texts[start : start + AT_ONCE, None] == texts[None]
        own = np.where(same, cosines, -np.inf).max(axis=1)
        found.append(own > np.where(same, -np.inf, cosines).max(axis=1) + TIE)
    return np.concatenate(found).astype(np.float64)


def _score(hits: Floats) -> MatchScore:
    pairs = hits.shape[1]
    low, high = normal_interval(float(hits.mean()), pairs).times(100)
    there, back = (100 * float(side.mean()) for side in hits)
    return MatchScore(100 * float(hits.mean()), low, high, there, back, pairs)


def _average(scores: Sequence[MatchScore]) -> MatchScore:
    accuracy, there, back = (
        float(np.mean([getattr(score, name) for score in scores]))
        for name in ("accuracy", "to_english", "from_english")
    )
    low, high = mean_share_interval([score.accuracy for score in scores], [score.pairs for score in scores])
    return MatchScore(accuracy, low, high, there, back, sum(score.pairs for score in scores))


def _file(data_dir: str | os.PathLike[str] | None) -> Path:
    return find_task(data_folder(data_dir) / FOLDER, TASK)


def _rows(name: str, sides: dict[str, MatchScore]) -> list[tuple[str, ...]]:
    return [
        (
            name if title == ENCODER else "",
            title,
            f"{score.accuracy:.2f}",
            str(Interval(score.low, score.high)),
            f"{score.to_english:.2f}",
            f"{score.from_english:.2f}",
            f"{score.pairs:,}" if title == ENCODER else "",
        )
        for title, score in sides.items()
    ]
