"""Semantic textual similarity: STS12–16, STS-B, SICK-R; cosine against people's scores, no regressor.

For STS12–16 three aggregations are in use, and they differ by up to twenty points for one encoder, so every number
carries its name: ``all`` concatenates a year's subsets (SBERT, SimCSE), ``mean`` averages over subsets, ``wmean``
weighs them by size (BERT-flow, whitening).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.data.readers import column, read
from isotrope.data.record_types import record_type_named
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError, nearest
from isotrope.evaluation.geometry import alignment, effective_rank, uniformity
from isotrope.evaluation.results import Results, read_out

Floats = npt.NDArray[np.float64]
PROTOCOL = "sts-cosine-v1"
TASKS = {
    "STS12": "sts12.test",
    "STS13": "sts13.test",
    "STS14": "sts14.test",
    "STS15": "sts15.test",
    "STS16": "sts16.test",
    "STS-B": "stsb.test",
    "SICK-R": "sick.test",
}
YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
AGGREGATIONS = ("all", "mean", "wmean")
POSITIVE_ABOVE = 4.0  # gold score from which an STS-B pair counts as a positive pair


def evaluate_sts(
    encoder: Encoder,
    data_dir: str | os.PathLike[str] | None = None,
    aggregation: str = "all",
    seed: int = 0,
    resamples: int = 500,
) -> Results:
    """Spearman and Pearson × 100 of the seven tasks, their average, a 95 % bootstrap interval each, and the geometry of
    STS-B.
    """
    if aggregation not in AGGREGATIONS:
        raise InputError(f"No aggregation is called '{aggregation}'{nearest(aggregation, AGGREGATIONS)}")
    folder = data_folder(data_dir) / "sts"
    files = {task: find_task(folder, name) for task, name in TASKS.items()}
    pairs = {task: read_pairs(file) for task, file in files.items()}
    splits = [
        read_pairs(file) for split in ("train", "dev") if (file := find_task(folder, f"stsb.{split}", needed=False))
    ]
    whole_stsb = [pairs["STS-B"], *splits]

    texts = sorted({text for task in [*pairs.values(), *splits] for side in task[:2] for text in side})
    vectors = encoder.encode(texts, normalize_embeddings=True)
    index = {text: number for number, text in enumerate(texts)}

    def at(side: Sequence[str]) -> Floats:
        return vectors[[index[text] for text in side]].astype(np.float64)

    scores: dict[str, Any] = {}
    rng, draws = np.random.default_rng(seed), []
    for task, (first, second, gold, subsets) in pairs.items():
        subsets = subsets if task in YEARS else [""] * len(gold)  # STS-B and SICK-R are one set each
        cosine = (at(first) * at(second)).sum(axis=1)
        draws.append(bootstrap(cosine, gold, subsets, aggregation, rng, resamples))
        low, high = middle(draws[-1])
        scores[task] = {
            "spearman": 100 * correlate("spearman", cosine, gold, subsets, aggregation),
            "pearson": 100 * correlate("pearson", cosine, gold, subsets, aggregation),
            "low": 100 * low,
            "high": 100 * high,
            "pairs": len(gold),
        }
    low, high = middle(np.mean(draws, axis=0))  # pairs of different tasks are drawn apart
    average = {
        measure: float(np.mean([scores[task][measure] for task in TASKS])) for measure in ("spearman", "pearson")
    }
    average |= {"low": 100 * low, "high": 100 * high}

    positives = [
        (a, b)
        for first, second, gold, _ in whole_stsb
        for a, b, g in zip(first, second, gold, strict=True)
        if g > POSITIVE_ABOVE
    ]
    everything = [text for first, second, _, _ in whole_stsb for text in (*first, *second)]
    cloud = at(everything)
    geometry = {
        "alignment": alignment(at([a for a, _ in positives]), at([b for _, b in positives])),
        "uniformity": uniformity(cloud),
        "effective_rank": effective_rank(cloud),
        "positive_pairs": len(positives),
        "sentences": len(everything),
    }
    protocol = {
        "protocol": PROTOCOL,
        "aggregation": aggregation,
        "interval": f"95 % bootstrap of pairs, {resamples} resamples, seed {seed}",
        **read_out(encoder),
        "STS-B geometry": f"{1 + len(splits)} of 3 splits",
    }
    rows = [
        (task, f"{s['spearman']:.2f}", f"{s['low']:.1f} – {s['high']:.1f}", f"{s['pearson']:.2f}", f"{s['pairs']:,}")
        for task, s in scores.items()
    ]
    interval = f"{average['low']:.1f} – {average['high']:.1f}"
    rows.append(("average of seven", f"{average['spearman']:.2f}", interval, f"{average['pearson']:.2f}", ""))
    rows.append(
        (f"STS-B alignment {geometry['alignment']:.4f}, uniformity {geometry['uniformity']:.4f}", "", "", "", "")
    )
    columns = (f"task ({aggregation})", "Spearman", "95 % interval", "Pearson", "pairs")
    return Results({"sts": {**scores, "average": average, "geometry": geometry}}, protocol, columns, rows)


def correlate(measure: str, predicted: Floats, gold: Floats, subsets: Sequence[str], aggregation: str) -> float:
    """The correlation over all pairs, or its (weighted) mean over subsets."""
    from scipy import stats  # a second of importing that loading an encoder need not wait for

    function: Any = {"spearman": stats.spearmanr, "pearson": stats.pearsonr}[measure]
    if aggregation == "all":
        return float(function(predicted, gold).statistic)
    names = np.asarray(subsets)
    parts = [names == name for name in dict.fromkeys(subsets)]
    values = [float(function(predicted[part], gold[part]).statistic) for part in parts]
    return float(np.average(values, weights=None if aggregation == "mean" else [part.sum() for part in parts]))


def bootstrap(
    predicted: Floats, gold: Floats, subsets: Sequence[str], aggregation: str, rng: np.random.Generator, resamples: int
) -> Floats:
    """Spearman over pairs drawn again with replacement, subset by subset where they are averaged; one for each
    resample.
    """
    names = np.asarray(subsets if aggregation != "all" else [""] * len(gold))
    parts = [np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())]
    draws = [_resampled(predicted[part], gold[part], rng, resamples) for part in parts]
    weights = [len(part) for part in parts] if aggregation == "wmean" else None
    return np.asarray(np.average(draws, axis=0, weights=weights))


def middle(draws: Floats) -> tuple[float, float]:
    """What 95 % of the draws lie between."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def _resampled(predicted: Floats, gold: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    from scipy import stats

    rows = rng.integers(0, len(gold), size=(resamples, len(gold)))
    first, second = (stats.rankdata(side[rows], axis=1) for side in (predicted, gold))
    first -= first.mean(axis=1, keepdims=True)
    second -= second.mean(axis=1, keepdims=True)
    norms = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return np.asarray((first * second).sum(axis=1) / np.maximum(norms, 1e-12))


def spearman_of_file(encoder: Encoder, path: str | os.PathLike[str]) -> float:
    """Spearman of cosine and score over one file of scored pairs: what a checkpoint may be chosen by."""
    first, second, gold, subsets = read_pairs(Path(path))
    both = encoder.encode([*first, *second], normalize_embeddings=True, show_progress_bar=False).astype(np.float64)
    return correlate("spearman", (both[: len(first)] * both[len(first) :]).sum(axis=1), gold, subsets, "all")


def data_folder(given: str | os.PathLike[str] | None) -> Path:
    """The evaluation data: what was given, or the variable ISOTROPE_DATA."""
    place = given or os.environ.get("ISOTROPE_DATA")
    if not place:
        raise InputError(
            "Evaluation data is needed: give --data-dir, or set ISOTROPE_DATA to a folder with sts/sts12.test.tsv.gz and so on."
        )
    folder = Path(place)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of evaluation data.")
    return folder


def find_task(folder: Path, name: str, needed: bool = True) -> Any:
    """The file of a task, whatever its format; None where it is missing and not needed."""
    for suffix in (".tsv.gz", ".tsv", ".tsv.xz", ".csv", ".jsonl", ".parquet"):
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    if needed:
        raise InputError(f"{folder}: {name}.tsv.gz is missing; all tasks of the suite were expected there.")
    return None


def read_pairs(path: Path) -> tuple[list[str], list[str], Floats, list[str]]:
    """First sides, second sides, scores and subsets of a file of scored pairs."""
    rows = list(zip(read(path, record_type_named("scored-pairs")), column(path, "subset"), strict=True))
    rows = [(record, subset) for record, subset in rows if all(record.texts) and record.value]
    if len(rows) < 2:
        raise InputError(f"{path}: at least two scored pairs were expected, {len(rows)} found.")
    gold = []
    for record, _ in rows:
        try:
            gold.append(float(str(record.value)))
        except ValueError as error:
            raise InputError(f"{path}:{record.line}: the score {record.value!r} is not a number.") from error
    first, second = ([record.texts[side] for record, _ in rows] for side in (0, 1))
    return first, second, np.array(gold), [subset for _, subset in rows]
