"""The files that a person gives to choose checkpoints by: scored pairs, or queries with their passages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isotrope.data.sources import fits
from isotrope.errors import InputError
from isotrope.evaluation.query_passages import QueryPassages, read_query_passages
from isotrope.evaluation.scored_pairs import ScoredPairs, read_eval_pairs

Place = str | os.PathLike[str]
SPEARMAN, MRR = "spearman", "eval_mrr"


@dataclass(frozen=True)
class EvalData:
    """``scored`` by the names of the files, or ``passages``; one of the two is empty."""

    scored: Mapping[str, ScoredPairs] = field(default_factory=dict)
    passages: Sequence[QueryPassages] = ()

    @property
    def chosen_by(self) -> str:
        """The measure that chooses: rank correlation with scores, or MRR of the passages."""
        return SPEARMAN if self.scored else MRR


def read_eval_data(files: Sequence[Place]) -> EvalData:
    """All files, read and checked once, before anything is written; the columns say which of the two they are."""
    scored = [has_scores(file) for file in files]
    if any(scored) and not all(scored):
        for file in files:
            if not (fits(file, "scored-pairs") or fits(file, "pairs")):
                read_eval_pairs(file)  # says what it is instead
        raise InputError(
            f"eval_data: {files[scored.index(True)]} has scores and {files[scored.index(False)]} has none; their "
            "measures have no common mean, so give files of one of the two.",
            setting="eval_data",
        )
    if files and not scored[0]:
        return EvalData(passages=[read_query_passages(file) for file in files])
    names = [Path(file).name.split(".tsv")[0] for file in files]
    named = names if len(set(names)) == len(names) else [str(file) for file in files]
    return EvalData({name: read_eval_pairs(file) for name, file in zip(named, files, strict=True)})


def has_scores(file: Place) -> bool:
    """Whether the columns are those of scored pairs; where they are those of neither, the reader of these says so."""
    return fits(file, "scored-pairs") or not fits(file, "pairs")
