"""What the space of an encoder looks like on any text; ``geometry_pairs`` has the same for scored pairs.

One encoding pass over the text gives everything that is said of it; the arithmetic afterwards goes in blocks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.encoders.encoder import Encoder, Vectors
from isotrope.encoders.onnx_encoder import OnnxGraph
from isotrope.errors import InputError
from isotrope.evaluation.geometry import EXACT, check_spread, cloud, hubness, top_shares
from isotrope.evaluation.geometry_layers import LayerCosines, LayerSums, WordStates, watching
from isotrope.evaluation.geometry_words import FrequencyBin, by_frequency, frequency_table
from isotrope.evaluation.suite_lanes import encoding
from isotrope.evaluation.text_vectors import share_vectors
from isotrope.measures import isotropy
from isotrope.progress import bar
from isotrope.training.run_folder import RunFolder

MOST_PAIRS = 1_000_000_000  # of uniformity; all pairs up to 44,721 sentences
MOST_NEIGHBOURS = 20_000  # sentences that hubness is taken of


@dataclass(frozen=True)
class CloudGeometry:
    """Of an array of vectors; the measures are those of ``evaluation.geometry``. ``hubness`` is none of few vectors."""

    sentences: int
    dimension: int
    spectrum: list[float]
    effective_rank: float
    mean_cosine: float
    uniformity: float
    top_shares: dict[str, float]
    hubness: float | None
    hubness_sentences: int


@dataclass(frozen=True)
class WordTables:
    """Words by frequency: their input embeddings, and the means of their last states."""

    input: list[FrequencyBin]
    last_layer: list[FrequencyBin]


@dataclass(frozen=True)
class TextGeometry(CloudGeometry):
    """Of an encoder on a text: also its layers, and its words."""

    layers: list[LayerCosines]
    words: WordTables


def describe(encoder: Encoder, texts: Sequence[str], *, seed: int = 42) -> TextGeometry:
    """What the encoder's space looks like on ``texts``; one encoding pass.

    ``seed`` draws the sentences for hubness, and the pairs for uniformity, where there are too many for all.
    """
    return describe_encoded(encoder, texts, seed)[0]


def describe_encoded(encoder: Encoder, texts: Sequence[str], seed: int = 42) -> tuple[TextGeometry, Vectors]:
    """As ``describe``, and the vectors that it saw, one row a text; other suites find them in the cache.

    A table of words has no states, and an exported graph shows none: there the vectors alone are described.
    """
    if isinstance(texts, str) or len(texts) < 2:
        found = "one text" if isinstance(texts, str) or len(texts) == 1 else "none"
        raise InputError(f"Geometry needs at least two texts; {found} was given.")
    tokenizer = encoder.text_tokenizer
    flat, _ = tokenizer.flat(list(texts))
    ids, counts = by_frequency(flat, tokenizer.vocabulary, tokenizer.specials)
    table = _input_embeddings(encoder)
    layers, words = LayerSums(), WordStates(ids, max(tokenizer.vocabulary, len(table)))
    with encoding(), watching(encoder.backbone, layers, words) if len(table) else nullcontext():
        vectors = encoder.encode(list(texts))
    share_vectors(encoder, texts, vectors)
    means, norms = words.means()
    seen = np.flatnonzero((words.counts > 0).numpy())
    tables = WordTables(
        frequency_table(table, ids, counts) if len(table) else [],
        frequency_table(means[seen], np.arange(len(seen)), counts[seen], norms[seen]) if len(seen) else [],
    )
    return TextGeometry(**vars(describe_vectors(vectors, seed)), layers=layers.rows(), words=tables), vectors


def _input_embeddings(encoder: Encoder) -> Tensor:
    """[vocabulary, d]; an exported graph shows neither words nor layers."""
    if isinstance(encoder.backbone, OnnxGraph):
        return torch.empty(0, 1)
    weight: Tensor = encoder.backbone.get_input_embeddings().weight
    return weight.detach().cpu().float()


def describe_vectors(vectors: npt.ArrayLike, seed: int = 42) -> CloudGeometry:
    """The part of ``describe`` that needs no encoder: an array [n, d] in."""
    found = cloud(vectors, 2)
    check_spread(found)
    order = np.random.default_rng(seed).permutation(len(found))
    sample = order[:MOST_NEIGHBOURS]
    with bar("measuring", 3, show=None if len(found) > EXACT else False) as advance:
        values = isotropy.singular_values(found)
        shares = top_shares(found)
        advance()
        spread = float(isotropy.uniformity(found[torch.from_numpy(order)], most_pairs=MOST_PAIRS))
        advance()
        hubs = hubness(found[torch.from_numpy(sample)]) if len(sample) > 10 else None
        advance()
    return CloudGeometry(
        sentences=len(found),
        dimension=found.shape[1],
        spectrum=(values / values[0]).tolist(),
        effective_rank=float(isotropy.rank_of(values)),
        mean_cosine=float(isotropy.anisotropy(found)),
        uniformity=spread,
        top_shares=shares,
        hubness=hubs,
        hubness_sentences=len(sample),
    )


def trail(run: str | os.PathLike[str]) -> list[dict[str, float]]:
    """Step, alignment, uniformity and the other measures of a run at each of its evaluations, from its own history:
    nothing is encoded again.

    The pairs are the run's held-out natural ones, not STS-B. For a curve that shows the first fall, train with
    eval_steps 10.
    """
    folder = Path(run)
    if not (folder / "metrics.jsonl").is_file():
        raise InputError(f"{folder}: no run is here (no metrics.jsonl); give the folder that training wrote.")
    lines = [
        line for line in RunFolder(folder).history() if {"alignment", "uniformity"} <= set(line.get("evaluation", {}))
    ]
    return [
        {"step": line["step"], **{name: float(value) for name, value in line["evaluation"].items()}} for line in lines
    ]
