"""Proxies: figures without labels that a checkpoint might be chosen by. The larger, the better, as each one hopes.

    other_view            MRR of a half sentence that searches for its other half among many distractors
    spread                −(alignment of halves + uniformity): the plane of SimCSE as one number
    rank                  effective rank / dimension: how many directions are in use
    dropout_agreement     do two dropout masks rank pairs of texts alike?
    step_agreement        does the checkpoint before rank pairs of texts alike?
    lexical_agreement     does the cosine follow TF-IDF where texts share words, on easy pairs?
    pseudo_sts            does the cosine fall with the known strength of an edit?

When to use them: to choose a checkpoint where no scored pairs are at hand; ``recipes/development/proxies.py`` measures
which of them would have chosen well. What goes wrong: agreements are perfect for an encoder that stands still, rank is
largest for noise, and lexical agreement is won by a bag of words. None of them is a score of quality by itself.
``label_free.py`` is what training measures: by ``other_view``, the best of these, it chooses the checkpoint of a run
without scored pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.geometry import alignment, effective_rank, uniformity
from isotrope.evaluation.label_free import other_view
from isotrope.evaluation.proxy_material import ProxyMaterial
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.correlation import spearman
from isotrope.measures.unit_vectors import unit_rows

Vectors = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
NAMES = ("other_view", "spread", "rank", "dropout_agreement", "step_agreement", "lexical_agreement", "pseudo_sts")


class Proxies(NamedTuple):
    """``values`` by name; ``cosines`` of the drawn pairs, which the next checkpoint is compared with."""

    values: dict[str, float]
    cosines: Floats


def measure_proxies(encoder: Encoder, material: ProxyMaterial, before: Floats | None = None) -> Proxies:
    """All proxies of an encoder. ``before``: the cosines of the checkpoint before; without them, no step_agreement."""
    known = TextVectors.encoded(encoder, material.texts())
    first, second = known.of(material.first), known.of(material.second)
    sentences = known.of(material.sentences)
    cosines = pair_cosines(sentences, material.pairs)
    masks = [noisy_vectors(encoder, material.sentences, seed) for seed in (0, 1)]
    values = {
        "other_view": other_view(first, second, known.of(material.distractors)),
        "spread": spread(first, second, sentences),
        "rank": effective_rank(sentences) / sentences.shape[1],
        "dropout_agreement": agreement(*(pair_cosines(one, material.pairs) for one in masks)),
        "lexical_agreement": agreement(pair_cosines(sentences, material.easy), material.shared_words),
        "pseudo_sts": pseudo_sts(
            known.of(material.edits.originals), known.of(material.edits.copies), material.edits.strengths
        ),
    }
    if before is not None:
        values["step_agreement"] = agreement(before, cosines)
    return Proxies(values, cosines)


def spread(first: Vectors, second: Vectors, all_vectors: Vectors) -> float:
    """−(E‖x − x⁺‖² + log E exp(−2‖x − y‖²)): near partners and an even sphere, weighed alike."""
    return -(alignment(first, second) + uniformity(all_vectors))


def pair_cosines(vectors: Vectors, pairs: npt.NDArray[np.int64]) -> Floats:
    """The cosine of rows pairs[:, 0] and pairs[:, 1], in float64."""
    unit = unit_rows(vectors.astype(np.float64))
    return np.asarray((unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(axis=1))


def agreement(one: Floats, other: Floats) -> float:
    """Spearman between two judgements of the same pairs of texts; 0 where one of them knows no order."""
    value = float(spearman(one, other))
    return value if np.isfinite(value) else 0.0


def pseudo_sts(originals: Vectors, copies: Vectors, strengths: Floats) -> float:
    """Spearman(cos(x, x̃), −strength): STS whose gold scores are edits of known strength.

    All texts stand in one list, so the same strength must cost different texts about the same.
    """
    a, b = (unit_rows(side.astype(np.float64)) for side in (originals, copies))
    return agreement((a * b).sum(axis=1), -strengths)


def noisy_vectors(encoder: Encoder, texts: list[str], seed: int, batch: int = 128) -> Vectors:
    """Vectors with dropout on, the same masks for the same seed; the encoder's modes and torch's draws stay as they
    were."""
    modes = {part: part.training for part in encoder.modules()}
    devices = [encoder.device] if encoder.device.type == "cuda" else []
    found = []
    with torch.random.fork_rng(devices), torch.inference_mode():
        torch.manual_seed(seed)
        encoder.train()
        for start in range(0, len(texts), batch):
            tokens = encoder.tokenize(texts[start : start + batch]).to(encoder.device)
            found.append(encoder(tokens).float().cpu().numpy())
    for part, mode in modes.items():
        part.training = mode
    return np.concatenate(found)
