"""Robustness: how far do vectors move when a text is damaged or its meaning is turned? Made from STS-B's test pairs.

    cosine      mean of cos(text, changed text), and which share of the way to another text that is:
                (1 − cos) / (1 − cos of two different texts)
    Spearman    of STS-B, when the second text of each pair is changed; and what is lost by it
    ranking     share of texts whose harmless change is nearer than one that turns the meaning, or than another text

Harmless are typos, case and punctuation; negation and word order are not (``views.text_damage``). Every change is drawn
from the seed and the text alone. A tie is no hit: an encoder that does not see word order cannot win by it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.benchmark_files import data_folder, find_task
from isotrope.evaluation.items import Items
from isotrope.evaluation.results import Results, Section, read_out
from isotrope.evaluation.scored_pairs import Floats, read_pairs
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.intervals import normal_interval
from isotrope.views.text_damage import HARMLESS, MEANING, TYPO_SHARE

PROTOCOL = "robustness-stsb-v1"
TASK = "stsb.test"
CHANGES = {**HARMLESS, **MEANING}
ANOTHER = "another text"
TIE = 1e-6
COLUMNS = ("second text", "cosine", "of the way to another", "STS-B Spearman", "lost", "texts")
RANKS = ("nearer than", *(f"{name}, %" for name in HARMLESS))


@dataclass(frozen=True)
class Damage:
    """What one change does. ``way``: in per cent; ``spearman`` × 100 and ``lost``, its fall; ``texts`` were changed."""

    cosine: float
    way: float
    spearman: float
    lost: float
    texts: int


class Robustness(Suite):
    """Does a harmless change move a vector less than one of meaning? Typos, case, punctuation against negation.

    Cosines alone do not compare between encoders, since a narrow space has high ones everywhere; the share of the way
    and the ranking do. Sentence encoders are known to be nearly blind to negation, so shares far above 50 % are rare.
    ``counterfactual`` asks the same of single words, with WordNet.
    """

    card = SuiteCard(
        name="robustness",
        title="Typos, case, punctuation against negation and word order",
        protocol=PROTOCOL,
        takes=("data_dir", "seeds"),
    )

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        _file(options.data_dir)

    def run(self, encoder: Encoder, options: Options) -> Results:
        """Each change's cosine and Spearman, and each harmless change ranked against each of meaning."""
        pairs, seed = read_pairs(_file(options.data_dir)), options.seed
        changed = {name: changed_texts(pairs.second, name, seed) for name in CHANGES}
        another = other_texts(pairs.second, seed)
        vectors = TextVectors.encoded(
            encoder, [*pairs.texts, *(text for side in changed.values() for text in side)], normalize=True
        )
        kept = {name: _cosines(vectors, pairs.second, side) for name, side in changed.items()}
        kept[ANOTHER] = _cosines(vectors, pairs.second, another)
        whole = Items(_cosines(vectors, pairs.first, pairs.second), pairs.gold)
        damaged = {name: Items(_cosines(vectors, pairs.first, side), pairs.gold) for name, side in changed.items()}
        counts = {name: sum(map(str.__ne__, pairs.second, side)) for name, side in changed.items()}
        far = 1 - float(kept[ANOTHER].mean())
        changes = {
            name: Damage(
                cosine=float(kept[name].mean()),
                way=100 * max(1 - float(kept[name].mean()), 0.0) / far if far > TIE else 0.0,
                spearman=_spearman(items),
                lost=_spearman(whole) - _spearman(items),
                texts=counts[name],
            )
            for name, items in damaged.items()
        }
        hits = ranked(kept, changed, pairs.second)
        average = Items(np.concatenate([hits[name].values for name in hits if not name.endswith(ANOTHER)]))
        protocol = {
            "protocol": PROTOCOL,
            "texts": f"second texts of {TASK}, {len(pairs.gold):,} pairs",
            "typos": f"two letters swapped in {100 * TYPO_SHARE:g} % of the words, at least in one",
            "ranking": "by cosine with the text as it was; ties lose; "
            "texts that a change leaves as they are do not count",
            "seed": seed,
            **read_out(encoder),
        }
        nested = {
            "STS-B": _spearman(whole),
            "another_text_cosine": float(kept[ANOTHER].mean()),
            "changes": {name: asdict(each) for name, each in changes.items()},
            "ranking": {name: {"share": each.score(), "texts": len(each)} for name, each in hits.items()},
            "average": {"share": average.score(), "texts": len(average)},
        }
        rows: list[tuple[str, ...]] = [
            ("as it is", "1.000", "0.0", f"{_spearman(whole):.2f}", "", f"{len(pairs.gold):,}")
        ]
        rows += [_row(name, each) for name, each in changes.items()]
        rows.append((ANOTHER, f"{kept[ANOTHER].mean():.3f}", "100.0", "", "", f"{len(another):,}"))
        tasks = {f"STS-B, {name}": each for name, each in damaged.items()}
        return Results({"robustness": nested}, protocol, COLUMNS, rows, [_section(hits)], {**hits, **tasks})

    def summary(self, results: Results) -> dict[str, float]:
        found = results.scores["robustness"]
        lost = {f"robustness_{name.replace(' ', '_')}_lost": found["changes"][name]["lost"] for name in CHANGES}
        return {"robustness_ranking": found["average"]["share"], **lost}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        pairs = read_pairs(_file(options.data_dir))
        return {"changes": pairs.texts, "ranking": pairs.second, "average": pairs.second}


def changed_texts(texts: list[str], name: str, seed: int) -> list[str]:
    """Each text under a change. Equal texts change alike, and the others around them have no part in it."""
    number = list(CHANGES).index(name)
    draws = {text: np.random.default_rng([seed, number, *text.encode()]) for text in dict.fromkeys(texts)}
    made = {text: CHANGES[name](text, rng) for text, rng in draws.items()}
    return [made[text] for text in texts]


def other_texts(texts: list[str], seed: int) -> list[str]:
    """For each text a different one, drawn at random."""
    names = sorted(set(texts))
    if len(names) < 2:
        raise InputError("The second texts are all the same; different ones are needed to compare with.")
    place = {text: number for number, text in enumerate(names)}
    steps = np.random.default_rng(seed).integers(1, len(names), size=len(texts))
    return [names[(place[text] + step) % len(names)] for text, step in zip(texts, steps.tolist(), strict=True)]


def ranked(kept: dict[str, Floats], changed: dict[str, list[str]], texts: list[str]) -> dict[str, Items]:
    """By "typos over negation" and so on: 1 where the harmless change is the nearer one."""
    found = {}
    for harmless in HARMLESS:
        for other in (*MEANING, ANOTHER):
            sides = [changed[name] for name in (harmless, other) if name in changed]
            real = np.array([all(side[row] != text for side in sides) for row, text in enumerate(texts)], dtype=bool)
            if not real.any():
                raise InputError(f"No text was changed by both {harmless} and {other}; sentences are needed.")
            found[f"{harmless} over {other}"] = Items((kept[harmless] > kept[other] + TIE)[real].astype(np.float64))
    return found


def _section(hits: dict[str, Items]) -> Section:
    rows = []
    for other in (*MEANING, ANOTHER):
        cells = []
        for harmless in HARMLESS:
            each = hits[f"{harmless} over {other}"]
            cells.append(f"{each.score():.1f} ({normal_interval(each.score() / 100, len(each)).times(100)})")
        rows.append((other, *cells))
    return Section("ranking: the harmless change is the nearer one (95 % interval)", RANKS, rows)


def _spearman(items: Items) -> float:
    """0 where all cosines are alike, and no rank says anything."""
    return float(np.nan_to_num(items.score()))


def _cosines(vectors: TextVectors, first: list[str], second: list[str]) -> Floats:
    left, right = (vectors.of(side).astype(np.float64) for side in (first, second))
    return np.asarray((left * right).sum(axis=1))


def _file(data_dir: str | os.PathLike[str] | None) -> Path:
    return find_task(data_folder(data_dir) / "sts", TASK)


def _row(name: str, each: Damage) -> tuple[str, ...]:
    values = f"{each.cosine:.3f}", f"{each.way:.1f}", f"{each.spearman:.2f}", f"{each.lost:.2f}"
    return (name, *values, f"{each.texts:,}")
