"""Semantic similarity in other languages: Chinese so far. Cosine against people's scores, or against 0 and 1.

    Spearman(cos(u_i, v_i), gold_i) × 100     for every task, as Chinese work reports it
    AUC × 100                                 for pairs that are paraphrases or not: the chance that a paraphrase has
                                              the larger cosine; 50 is guessing

Spearman against 0 and 1 cannot reach 100, since ties of the gold are many; the AUC can. Test parts, no training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError, nearest
from isotrope.evaluation.answer_ranking import area
from isotrope.evaluation.benchmark_files import data_folder, optional_task
from isotrope.evaluation.items import Items
from isotrope.evaluation.results import Results, read_out
from isotrope.evaluation.scored_pairs import Floats, ScoredPairs, read_pairs
from isotrope.evaluation.sts_baselines import with_characters
from isotrope.evaluation.suite import Options
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.correlation import pearson, resampled_spearman, spearman
from isotrope.measures.intervals import Interval, percentile_interval

PROTOCOL = "sts-cosine-{lang}-v1"
LANGUAGES: dict[str, dict[str, tuple[str, ...]]] = {  # the file of each task, the first that is there
    "zh": {
        "STS-B": ("stsb_zh.test", "stsb_mt_zh.test"),
        "ATEC": ("atec.test",),
        "LCQMC": ("lcqmc.test",),
        "PAWS-X": ("pawsx_zh.test",),
    },
}
COLUMNS = ("task", "Spearman", "95 % interval", "Pearson", "AUC", "pairs")


@dataclass(frozen=True)
class LanguageScore:
    """× 100; ``low`` and ``high`` belong to Spearman; ``auc`` only where the gold is 0 or 1."""

    spearman: float
    pearson: float
    low: float
    high: float
    pairs: int
    auc: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def evaluate_language(encoder: Encoder, lang: str, options: Options) -> Results:
    """Spearman of each task of a language that the folder has, the AUC of binary ones, and the mean Spearman."""
    seed, resamples = options.seed, options.resamples
    files = language_files(lang, data_folder(options.data_dir))
    tasks = {task: read_pairs(file) for task, file in files.items()}
    missing = [task for task in LANGUAGES[lang] if task not in tasks]
    protocol = {
        "protocol": PROTOCOL.format(lang=lang),
        "files": ", ".join(file.name.split(".tsv")[0] for file in files.values()),
        **({"left out": f"{', '.join(missing)}: no files of theirs"} if missing else {}),
    }
    results = judge_tasks(encoder, tasks, protocol, seed, resamples)
    return with_characters(results, tasks) if options.baselines else results


def judge_tasks(
    encoder: Encoder, tasks: Mapping[str, ScoredPairs], protocol: Mapping[str, Any], seed: int, resamples: int
) -> Results:
    """The scores of tasks that are one set each, and their items."""
    vectors = TextVectors.encoded(encoder, (text for pairs in tasks.values() for text in pairs.texts), normalize=True)
    cosines = {task: _cosines(vectors, pairs) for task, pairs in tasks.items()}
    rng = np.random.default_rng(seed)
    draws = {task: resampled_spearman(cosines[task], pairs.gold, rng, resamples) for task, pairs in tasks.items()}
    scores = {task: _score(cosines[task], pairs.gold, draws[task]) for task, pairs in tasks.items()}
    low, high = percentile_interval(np.mean(list(draws.values()), axis=0)).times(100)
    average = {"spearman": float(np.mean([score.spearman for score in scores.values()])), "low": low, "high": high}
    measured = {
        "measure": "Spearman of cosine and gold; AUC too where the gold is 0 or 1",
        "interval": f"95 % bootstrap of pairs, {resamples} resamples, seed {seed}",
        **read_out(encoder),
    }
    nested = {**{task: score.to_dict() for task, score in scores.items()}, "average": average}
    items = {task: Items(cosines[task], pairs.gold) for task, pairs in tasks.items()}
    return Results({"sts": nested}, {**protocol, **measured}, COLUMNS, _rows(scores, average), items=items)


def language_files(lang: str, folder: Path) -> dict[str, Path]:
    """The files of a language, in the folder of its name; at least one must be there."""
    if lang not in LANGUAGES:
        raise InputError(f"Unknown language '{lang}'{nearest(lang, ('en', *LANGUAGES))}", setting="lang")
    found = {}
    for task, names in LANGUAGES[lang].items():
        file = next((file for name in names if (file := optional_task(folder / lang, name)) is not None), None)
        if file is not None:
            found[task] = file
    if not found:
        expected = ", ".join(f"{names[0]}.tsv.gz" for names in LANGUAGES[lang].values())
        raise InputError(f"{folder / lang}: none of {expected} is there.")
    return found


def _cosines(vectors: TextVectors, pairs: ScoredPairs) -> Floats:
    first, second = (vectors.of(side).astype(np.float64) for side in (pairs.first, pairs.second))
    return np.asarray((first * second).sum(axis=1))


def _score(cosines: Floats, gold: Floats, draws: Floats) -> LanguageScore:
    """Where the cosines never change nothing is ranked: 0, and 50 for the AUC."""
    rank, line = (100 * float(np.nan_to_num(measure(cosines, gold))) for measure in (spearman, pearson))
    low, high = percentile_interval(draws).times(100)
    binary = set(np.unique(gold)) == {0.0, 1.0}
    return LanguageScore(rank, line, low, high, len(gold), 100 * area(cosines, gold == 1) if binary else None)


def _rows(scores: Mapping[str, LanguageScore], average: Mapping[str, float]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (
            task,
            f"{score.spearman:.2f}",
            str(Interval(score.low, score.high)),
            f"{score.pearson:.2f}",
            "" if score.auc is None else f"{score.auc:.2f}",
            f"{score.pairs:,}",
        )
        for task, score in scores.items()
    ]
    mean = f"average of {len(scores)}", f"{average['spearman']:.2f}", str(Interval(average["low"], average["high"]))
    if len(rows) > 1:
        rows.append((*mean, "", "", ""))
    return rows
