"""TF-IDF on the STS tasks: what shared words alone say of people's scores, under the same aggregation.

Words are weighed by the texts of the task. It has no place for a paraphrase without shared words; an encoder below it
on a task has learned nothing there that a count of words does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from isotrope.evaluation.lexical import DESCRIPTION, TITLE, lexical_cosines
from isotrope.evaluation.results import Results, Section
from isotrope.evaluation.scored_pairs import ScoredPairs
from isotrope.evaluation.sts_scores import YEARS, Benchmark, correlate

TITLE_CHARACTERS = "TF-IDF of characters"


def with_lexical(results: Results, benchmark: Benchmark, aggregation: str) -> Results:
    """The same results with a section of baselines, and their scores under ``baselines``."""
    found = {task: lexical_spearman(pairs, task, aggregation) for task, pairs in benchmark.tasks.items()}
    return _with_row(results, found)


def with_characters(results: Results, tasks: Mapping[str, ScoredPairs]) -> Results:
    """The same for a language without blanks: the characters that two texts share."""
    found = {task: lexical_spearman(pairs, task, "all") for task, pairs in tasks.items()}
    return _with_row(results, found, TITLE_CHARACTERS, "scikit-learn's TF-IDF, sublinear, a character is a word")


def _with_row(
    results: Results, found: Mapping[str, float], title: str = TITLE, described: str = DESCRIPTION
) -> Results:
    average = float(np.mean(list(found.values())))
    cells = (title, *(f"{value:.2f}" for value in found.values()), f"{average:.2f}")
    section = Section("baselines, Spearman", ("ranked by", *found, "average"), [cells])
    scores = {**results.scores["sts"], "baselines": {title: {**found, "average": average}}}
    return replace(
        results,
        scores={**results.scores, "sts": scores},
        protocol={**results.protocol, title: f"{described}, fitted on each task"},
        sections=[*results.sections, section],
    )


def lexical_spearman(pairs: ScoredPairs, task: str, aggregation: str) -> float:
    """× 100; STS-B and SICK-R are one set each. 0 where no pair shares a word."""
    subsets = pairs.subsets if task in YEARS else [""] * len(pairs.gold)
    cosines = np.round(lexical_cosines(pairs.first, pairs.second), 9)  # equal counts of words tie
    return 100 * float(np.nan_to_num(correlate("spearman", cosines, pairs.gold, subsets, aggregation)))
