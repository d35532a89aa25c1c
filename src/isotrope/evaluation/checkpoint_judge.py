"""What checkpoints are chosen by: Spearman on scored pairs or MRR on queries with passages where there are some, else a
score without labels.

Without labels, half a held-out sentence must find its other half among thousands (``other_view``): of seven candidates
the one that chose best (recipes/development/proxies.py, docs/notes/claims.md). Where the text has pairs of its own,
each must find its partner (``retrieval_mrr``). Half of the held-out records are left for the final table
(``held_out_parts.py``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus
from isotrope.data.image_corpus import ImageCorpus
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.eval_data import EvalData
from isotrope.evaluation.eval_data import read_eval_data as read_eval_data
from isotrope.evaluation.geometry import alignment, uniformity
from isotrope.evaluation.held_out_parts import part_held_out
from isotrope.evaluation.image_judge import make_image_judge
from isotrope.evaluation.label_free import draw_halves, find_other_half, label_free, natural_pairs
from isotrope.evaluation.query_passages import passage_measures
from isotrope.evaluation.scored_pairs import ScoredPairs
from isotrope.measures.correlation import spearman
from isotrope.training.state import Judge, Judgement

POSITIVE_SHARE = 0.8  # of the highest score of a file: 4 of 5


def make_judge(corpus: Corpus, held_rows: Rows, eval_data: Sequence[str | os.PathLike[str]]) -> Judge:
    """The judge of a run: held-out texts must find their partner; ``eval_data`` wins where it is given."""
    if isinstance(corpus, ImageCorpus):
        return make_image_judge(corpus, held_rows, eval_data)
    given = read_eval_data(eval_data)
    rows = held_rows if eval_data else part_held_out(corpus, held_rows).choosing
    pairs, halves = natural_pairs(corpus, rows), draw_halves(corpus, rows)
    if len(pairs[1]) < 2 and not eval_data:
        raise InputError(
            "The texts are too short to hold anything out for choosing a checkpoint; give eval_data with scored pairs, "
            "or with queries and passages."
        )

    def judge(encoder: Encoder) -> Judgement:
        measures: dict[str, float] = {}
        chosen_by = "retrieval_mrr"
        if len(pairs[1]) >= 2:
            measures.update(label_free(encoder, pairs))
        if halves and not eval_data:  # thousands of texts: only where it decides
            measures[chosen_by := "other_view"] = find_other_half(encoder, halves)
        if eval_data:
            measures |= eval_measures(encoder, given)
            chosen_by = given.chosen_by
        return Judgement(measures, chosen_by)

    return judge


def eval_measures(encoder: Encoder, given: EvalData) -> dict[str, float]:
    """What an encoder reaches on the files that were given to choose by."""
    return {**scored_measures(encoder, given.scored), **passage_measures(encoder, given.passages)}


def scored_measures(encoder: Encoder, scored: Mapping[str, ScoredPairs]) -> dict[str, float]:
    """Spearman × 100, ``eval_alignment`` and ``eval_uniformity`` of files of scored pairs, each the mean of the files.

    Several files have their Spearman beside the mean as well.
    """
    found = {file: _of_pairs(encoder, pairs) for file, pairs in scored.items()}
    names = dict.fromkeys(name for measures in found.values() for name in measures)
    mean = {name: _mean([one[name] for one in found.values() if name in one]) for name in names}
    return {**mean, **({f"spearman {file}": one["spearman"] for file, one in found.items()} if len(found) > 1 else {})}


def _of_pairs(encoder: Encoder, pairs: ScoredPairs) -> dict[str, float]:
    """The plane of SimCSE on the pairs that Spearman is taken of: alignment of the pairs that people find alike (above
    four fifths of the highest score: 4 of 5), uniformity of all sentences, repeats included.
    """
    both = encoder.encode(pairs.texts, normalize_embeddings=True, show_progress_bar=False).astype(np.float64)
    first, second = both[: len(pairs.gold)], both[len(pairs.gold) :]
    found = {"spearman": 100 * spearman((first * second).sum(axis=1), pairs.gold)}
    alike = pairs.gold > POSITIVE_SHARE * pairs.gold.max()
    if alike.any():
        found["eval_alignment"] = alignment(first[alike], second[alike])
    return {**found, "eval_uniformity": uniformity(both)}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
