"""Completion of a triple (concept, relation, ?) with a table of concepts: the concepts nearest to R a.

Only a model with relations can answer; a table of word vectors has none.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.word_vectors import Concepts
from isotrope.errors import InputError, nearest
from isotrope.tokens.word_vocabulary import SPECIALS


class Completion(NamedTuple):
    """A concept, and the distance ‖R a − v‖ of its vector from the image of the question."""

    concept: str
    distance: float


def complete(encoder: Encoder, concept: str, relation: str, top: int = 5) -> list[Completion]:
    """The ``top`` concepts nearest to the image of ``concept``, the nearest first, with their distance ‖R a − v‖."""
    tables = encoder.backbone
    if not isinstance(tables, Concepts):
        raise InputError("This model knows no relations; one that does is made by isotrope train lre RELATIONS.")
    if relation not in tables.relations:
        raise InputError(f"Unknown relation '{relation}'{nearest(relation, tables.relations)}")
    names = encoder.tokenizer.get_vocab()
    known = sorted(names.keys() - set(SPECIALS), key=lambda name: int(names[name]))
    if concept not in known:
        raise InputError(f"Unknown concept '{concept}'{nearest(concept, known)}")
    if top < 1:
        raise InputError(f"top must be at least 1, not {top}.")
    with torch.inference_mode():
        vectors = tables.get_input_embeddings().weight
        image = tables.matrices[tables.relations.index(relation)] @ vectors[names[concept]]
        distances = (vectors[len(SPECIALS) :] - image).norm(dim=1).tolist()
    found = [Completion(name, distance) for name, distance in zip(known, distances, strict=True)]
    return sorted(found, key=lambda one: one.distance)[:top]
