"""Vectors → loss: pure functions on tensors, no model, no state, no I/O.

Nearly all are the one equation of ``contrast``; ``sampling``, ``triplet``, ``imitation`` and ``likelihood`` are its
cousins. Vectors come un-normalised, and the result is a scalar, the mean over the anchors, unless a docstring says
otherwise.
"""

from isotrope.objectives.chunked import chunked_contrast
from isotrope.objectives.consecutive import neighbour_prediction
from isotrope.objectives.consistency import jensen_shannon, ranking_consistency
from isotrope.objectives.contrast import contrast, info_nce, nt_xent
from isotrope.objectives.debiased import debiased
from isotrope.objectives.entity import entity_contrast
from isotrope.objectives.guided import self_guided
from isotrope.objectives.imitation import imitation
from isotrope.objectives.likelihood import bits_per_dimension
from isotrope.objectives.listwise import listmle, listnet, without_self
from isotrope.objectives.neighbourhood import contrast_with_neighbours, nearest_rows, neighbourhood, virtual_contrast
from isotrope.objectives.queue import queue_nce
from isotrope.objectives.ranking import cosent
from isotrope.objectives.relational import relational
from isotrope.objectives.sampling import nce, negative_sampling, windowed_sampling
from isotrope.objectives.sne import joint_neighbours, neighbours, sne, symmetric_sne, t_sne
from isotrope.objectives.soft_negative import bidirectional_margin
from isotrope.objectives.supervised import supervised_contrast
from isotrope.objectives.synonym_antonym import synonym_antonym, synonym_antonym_released
from isotrope.objectives.token_contrast import token_contrast
from isotrope.objectives.triplet import mined_negatives, mined_triplets, pooled_triplets, triplet

__all__ = [
    "bidirectional_margin",
    "bits_per_dimension",
    "chunked_contrast",
    "contrast",
    "contrast_with_neighbours",
    "cosent",
    "debiased",
    "entity_contrast",
    "imitation",
    "info_nce",
    "jensen_shannon",
    "joint_neighbours",
    "listmle",
    "listnet",
    "mined_negatives",
    "mined_triplets",
    "nce",
    "nearest_rows",
    "negative_sampling",
    "neighbour_prediction",
    "neighbourhood",
    "neighbours",
    "nt_xent",
    "pooled_triplets",
    "queue_nce",
    "ranking_consistency",
    "relational",
    "self_guided",
    "sne",
    "supervised_contrast",
    "symmetric_sne",
    "synonym_antonym",
    "synonym_antonym_released",
    "t_sne",
    "token_contrast",
    "triplet",
    "virtual_contrast",
    "windowed_sampling",
    "without_self",
]
