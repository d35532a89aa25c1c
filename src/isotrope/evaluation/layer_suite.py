"""Layer × pooling on STS-B: which read-out of a model ranks pairs as people do?

    score of a cell = Spearman(cos(p(H_K(a)), p(H_K(b))), gold) × 100

The first experiment of SG (Kim, Yoo and Lee 2021, figure 1). Every text runs through the model once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.benchmark_files import data_folder, optional_task
from isotrope.evaluation.layer_cosines import pair_cosines, read_outs
from isotrope.evaluation.results import Results, Section
from isotrope.evaluation.scored_pairs import Floats, ScoredPairs, joined, read_pairs
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.suite_lanes import encoding
from isotrope.measures.correlation import resampled_spearman, spearman
from isotrope.measures.intervals import Interval, percentile_interval

PROTOCOL = "layers-stsb-v1"
SPLITS = ("dev", "test")  # the first that is there chooses
CONSTANT = 1e-6  # range of the cosines under which every text has the same vector
BEST = "*"


@dataclass(frozen=True)
class Cell:
    """One read-out and its Spearman × 100 by split; None: it gives every text the same vector."""

    name: str
    layer: int | None
    pooling: str
    spearman: dict[str, float | None]


@dataclass(frozen=True)
class LayerSweep:
    """Every read-out of one encoder. ``best`` has the highest score on ``chosen_by``; ``interval`` belongs to its
    score on the last split.
    """

    cells: list[Cell]
    best: Cell
    chosen_by: str
    interval: Interval
    pairs: dict[str, int]

    @property
    def poolings(self) -> list[str]:
        """The poolings of a single layer, in the order of the table."""
        return list(dict.fromkeys(cell.pooling for cell in self.cells if cell.layer is not None))

    def to_dict(self) -> dict[str, Any]:
        found = asdict(self)
        return {**found, "interval": list(self.interval)}


class Layers(Suite):
    """Which layer and pooling of a model to read: its own raw layers, before anything that follows the pooling.

    Use it to choose ``--pooling`` for a raw language model. A trained encoder is best where it was trained; a sweep
    over it shows how far training reached down. Choose by dev: the best of forty cells is flattered by the pairs that
    chose it.
    """

    card = SuiteCard(
        name="layers",
        title="Every layer under every pooling, on STS-B",
        protocol=PROTOCOL,
        takes=("data_dir", "seeds", "resamples"),
        has_items=False,
    )

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        split_files(data_folder(options.data_dir) / "sts")

    def run(self, encoder: Encoder, options: Options) -> Results:
        splits = read_splits(data_folder(options.data_dir) / "sts")
        sweep = sweep_layers(encoder, splits, options.seed, options.resamples)
        last = [*splits][-1]
        protocol = {
            "protocol": PROTOCOL,
            "best": f"{sweep.best.name}, by {sweep.chosen_by}"
            + (", whose pairs flatter it" if sweep.chosen_by == last else ""),
            f"its {last}": f"{_shown(sweep.best.spearman[last])} ({sweep.interval})",
            "interval": f"95 % bootstrap of pairs, {options.resamples} resamples, seed {options.seed}",
            "pairs": ", ".join(f"{split} {count:,}" for split, count in sweep.pairs.items()),
        }
        columns = ("layer", *(f"{pooling} {split}" for pooling in sweep.poolings for split in splits))
        mixes = Section("Mixes of layers", ("pooling", *splits), _mixed_rows(sweep))
        return Results(
            {"layers": sweep.to_dict()}, protocol, columns, _layer_rows(sweep), [mixes] if mixes.rows else []
        )

    def summary(self, results: Results) -> dict[str, float]:
        best = results.scores["layers"]["best"]["spearman"]
        return {"sts_b_best_read_out": [*best.values()][-1] or 0.0}

    def main_scores(self, results: Results) -> dict[str, tuple[str, float]]:
        best = results.scores["layers"]["best"]
        return {"best": ("spearman", [*best["spearman"].values()][-1] or 0.0)}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        splits = read_splits(data_folder(options.data_dir) / "sts")
        return {"best": [*splits.values()][-1].texts}


def split_files(folder: Path) -> dict[str, Path]:
    files = {split: optional_task(folder, f"stsb.{split}") for split in SPLITS}
    found = {split: file for split, file in files.items() if file is not None}
    if not found:
        raise InputError(f"{folder}: stsb.dev.tsv.gz and stsb.test.tsv.gz are missing; one of them at least is needed.")
    return found


def read_splits(folder: Path) -> dict[str, ScoredPairs]:
    """The splits of STS-B that a sweep is scored on, those that are there."""
    return {split: read_pairs(file) for split, file in split_files(folder).items()}


def sweep_layers(encoder: Encoder, splits: dict[str, ScoredPairs], seed: int = 0, resamples: int = 500) -> LayerSweep:
    """Spearman × 100 of every read-out on each split, and the best of them."""
    together = joined([*splits.values()])
    with encoding():
        cosines = pair_cosines(encoder, together.first, together.second)
    counts = {split: len(pairs.gold) for split, pairs in splits.items()}
    ends = np.cumsum([*counts.values()]).tolist()
    parts = {split: slice(end - counts[split], end) for split, end in zip(splits, ends, strict=True)}
    cells = [
        Cell(
            one.name,
            one.layer,
            one.mode,
            {split: _score(cosines[one.name][part], together.gold[part]) for split, part in parts.items()},
        )
        for one in read_outs(encoder)
    ]
    chosen_by, *_, last = [*splits, *splits]
    best = max(cells, key=lambda cell: _rank(cell.spearman[chosen_by]))
    if best.spearman[last] is None:  # a collapsed model ranks nothing; draws would be those of its rounding
        return LayerSweep(cells, best, chosen_by, Interval(0.0, 0.0), counts)
    draws = resampled_spearman(
        cosines[best.name][parts[last]], splits[last].gold, np.random.default_rng(seed), resamples
    )
    return LayerSweep(cells, best, chosen_by, percentile_interval(draws).times(100), counts)


def _score(cosines: Floats, gold: Floats) -> float | None:
    """None where the cosines are alike: at layer 0 the first token knows nothing of the text."""
    if np.ptp(cosines) < CONSTANT:
        return None
    score = 100 * spearman(cosines, gold)
    return None if np.isnan(score) else score


def _rank(score: float | None) -> float:
    return -np.inf if score is None else score


def _layer_rows(sweep: LayerSweep) -> list[tuple[str, ...]]:
    rows: dict[int, list[str]] = {}
    for cell in sweep.cells:
        if cell.layer is not None:
            rows.setdefault(cell.layer, [str(cell.layer)]).extend(_scores(sweep, cell))
    return [tuple(row) for row in rows.values()]


def _mixed_rows(sweep: LayerSweep) -> list[tuple[str, ...]]:
    return [(cell.name, *_scores(sweep, cell)) for cell in sweep.cells if cell.layer is None]


def _scores(sweep: LayerSweep, cell: Cell) -> list[str]:
    return [(BEST if cell is sweep.best else "") + _shown(value) for value in cell.spearman.values()]


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
