"""What checkpoints are chosen by: Spearman on scored pairs where there are some, else a score without labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.label_free import label_free, natural_pairs
from isotrope.evaluation.sts import spearman_of_file
from isotrope.training.state import Judge, Judgement


def make_judge(corpus: Corpus, held_rows: Rows, eval_data: Sequence[str | os.PathLike[str]]) -> Judge:
    """The judge of a run: held-out texts must find their natural partner; ``eval_data`` wins where it is given."""
    pairs = natural_pairs(corpus, held_rows)
    if len(pairs[1]) < 2 and not eval_data:
        raise InputError(
            "The texts are too short to hold anything out for choosing a checkpoint; give eval_data with scored pairs."
        )

    def judge(encoder: Encoder) -> Judgement:
        measures: dict[str, float] = {}
        chosen_by = "retrieval_mrr"
        if len(pairs[1]) >= 2:
            measures.update(label_free(encoder, pairs))
        if eval_data:
            measures |= mean_spearman(encoder, eval_data)
            chosen_by = "spearman"
        return Judgement(measures, chosen_by)

    return judge


def mean_spearman(encoder: Encoder, files: Sequence[str | os.PathLike[str]]) -> dict[str, float]:
    """Spearman × 100, the mean of several files first."""
    found = {Path(file).name.split(".tsv")[0]: 100 * spearman_of_file(encoder, file) for file in files}
    mean = {"spearman": sum(found.values()) / len(found)} if found else {}
    return {**mean, **({f"spearman {name}": value for name, value in found.items()} if len(found) > 1 else {})}
