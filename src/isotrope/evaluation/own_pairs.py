"""Scored pairs of your own in place of the STS tasks: the same measure, one set, no folder of evaluation data."""

from __future__ import annotations

import os
from pathlib import Path

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.results import Results
from isotrope.evaluation.scored_pairs import ScoredPairs, read_eval_pairs
from isotrope.evaluation.sts_baselines import with_lexical
from isotrope.evaluation.sts_languages import judge_tasks
from isotrope.evaluation.sts_scores import Benchmark
from isotrope.evaluation.suite import Options

PROTOCOL = "sts-cosine-own-v1"


def own_pairs(options: Options) -> dict[str, ScoredPairs]:
    """The pairs of the file under its name; what belongs to the published tasks alone is refused."""
    for name in ("aggregation", "lang"):
        if name in options.asked():
            raise InputError(f"{name} belongs to the published STS tasks; leave it out with texts.", setting=name)
    if not isinstance(options.texts, str | os.PathLike):
        raise InputError("The sts suite needs a file of scored pairs as texts; a list was given.", setting="texts")
    return {Path(options.texts).name.split(".")[0]: read_eval_pairs(options.texts, options.columns)}


def evaluate_own_pairs(encoder: Encoder, options: Options) -> Results:
    """Spearman × 100 with its interval, the AUC where scores are 0 and 1, and TF-IDF on the same pairs."""
    tasks = own_pairs(options)
    results = judge_tasks(encoder, tasks, {"protocol": PROTOCOL}, options.seed, options.resamples)
    return with_lexical(results, Benchmark(tasks, []), "all") if options.baselines else results
