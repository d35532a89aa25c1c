"""The geometry suite: what the space of an encoder looks like on any text, and on STS-B where it is.

One encoding pass over the text gives everything that is said of it; the arithmetic afterwards goes in blocks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from isotrope.encoders.encoder import Encoder, Vectors
from isotrope.errors import InputError
from isotrope.evaluation.geometry import EXACT, alignment, check_spread, cloud, hubness, top_shares
from isotrope.evaluation.geometry_layers import LayerSums, WordStates, watching
from isotrope.evaluation.geometry_pairs import density, edit_distance
from isotrope.evaluation.geometry_words import by_frequency, frequency_table
from isotrope.evaluation.sts import POSITIVE_ABOVE
from isotrope.objectives import geometry
from isotrope.progress import bar
from isotrope.training.checkpoints import RunFolder

MOST_PAIRS = 1_000_000_000  # of uniformity; all pairs up to 44,721 sentences
MOST_NEIGHBOURS = 20_000  # sentences that hubness is taken of


def describe(encoder: Encoder, texts: Sequence[str], *, seed: int = 42) -> dict[str, Any]:
    """What the encoder's space looks like on ``texts``, as plain numbers and lists; one encoding pass.

    ``seed`` draws the sentences for hubness, and the pairs for uniformity, where there are too many for all.
    """
    return describe_encoded(encoder, texts, seed)[0]


def describe_encoded(encoder: Encoder, texts: Sequence[str], seed: int = 42) -> tuple[dict[str, Any], Vectors]:
    """As ``describe``, and the vectors that it saw, one row a text."""
    if isinstance(texts, str) or len(texts) < 2:
        found = "one text" if isinstance(texts, str) or len(texts) == 1 else "none"
        raise InputError(f"Geometry needs at least two texts; {found} was given.")
    tokeniser = encoder.tokeniser
    flat, _ = tokeniser.flat(list(texts))
    ids, counts = by_frequency(flat, tokeniser.vocabulary, tokeniser.specials)
    table = encoder.backbone.get_input_embeddings().weight.detach().cpu().float()
    layers, words = LayerSums(), WordStates(ids, max(tokeniser.vocabulary, len(table)))
    with watching(encoder.backbone, layers, words):
        vectors = encoder.encode(list(texts))
    means, norms = words.means()
    seen = np.flatnonzero((words.counts > 0).numpy())
    return {
        **describe_vectors(vectors, seed),
        "layers": layers.rows(),
        "words": {
            "input": frequency_table(table, ids, counts),
            "last_layer": frequency_table(means[seen], np.arange(len(seen)), counts[seen], norms[seen]),
        },
    }, vectors


def describe_vectors(vectors: npt.ArrayLike, seed: int = 42) -> dict[str, Any]:
    """The part of ``describe`` that needs no encoder: an array [n, d] in, numbers out."""
    found = cloud(vectors, 2)
    check_spread(found)
    order = np.random.default_rng(seed).permutation(len(found))
    sample = order[:MOST_NEIGHBOURS]
    with bar("measuring", 3, show=None if len(found) > EXACT else False) as advance:
        values = geometry.singular_values(found)
        shares = top_shares(found)
        advance()
        spread = float(geometry.uniformity(found[torch.from_numpy(order)], most_pairs=MOST_PAIRS))
        advance()
        hubs = hubness(found[torch.from_numpy(sample)]) if len(sample) > 10 else None
        advance()
    return {
        "sentences": len(found),
        "dimension": found.shape[1],
        "spectrum": (values / values[0]).tolist(),
        "effective_rank": float(geometry.rank_of(values)),
        "mean_cosine": float(geometry.anisotropy(found)),
        "uniformity": spread,
        "top_shares": shares,
        "hubness": hubs,
        "hubness_sentences": len(sample),
    }


def describe_pairs(encoder: Encoder, first: Sequence[str], second: Sequence[str], scores: Sequence[float]) -> dict[str, Any]:
    """What the space does with pairs that people scored from 0 to 5; correlations are Spearman × 100."""
    texts = list(dict.fromkeys([*first, *second]))
    return describe_scored(encoder.encode(texts) if texts else np.empty((0, 1), np.float32), texts, first, second, scores)


def describe_scored(
    vectors: Vectors, texts: Sequence[str], first: Sequence[str], second: Sequence[str], scores: Sequence[float], unit: str = "words"
) -> dict[str, Any]:
    """As ``describe_pairs``, where row i of ``vectors`` is the vector of ``texts[i]``."""
    gold = np.asarray(scores, dtype=np.float64)
    _check_pairs(first, second, gold)
    index = {text: number for number, text in enumerate(texts)}
    rows = [np.array([index[text] for text in side]) for side in (first, second)]
    everything = cloud(vectors[np.concatenate(rows)], 2)
    check_spread(everything)
    unit_vectors = torch.nn.functional.normalize(everything, dim=-1)
    a, b = unit_vectors[: len(gold)], unit_vectors[len(gold) :]
    cosine = (a * b).sum(dim=1).double().numpy()
    edits = edit_distance(first, second, unit)
    positive = gold > POSITIVE_ABOVE
    return {
        "pairs": len(gold),
        "positive_pairs": int(positive.sum()),
        "alignment": alignment(a[positive], b[positive]),
        "uniformity": float(geometry.uniformity(everything)),
        "spearman": _spearman(cosine, gold),
        "density": density(cosine, gold),
        "lexical": {"unit": unit, "edit_cosine": _spearman(edits, cosine), "edit_gold": _spearman(edits, gold)},
    }


def trail(run: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Alignment and uniformity of a run at each of its evaluations, from its own history: nothing is encoded again.

    The pairs are the run's held-out natural ones (``docs/guides/evaluation.md``), not STS-B. For a curve that shows the first fall, train with
    --eval-steps 10.
    """
    folder = Path(run)
    if not (folder / "metrics.jsonl").is_file():
        raise InputError(f"{folder}: no run is here (no metrics.jsonl); give the folder that training wrote.")
    lines = [line for line in RunFolder(folder).history() if {"alignment", "uniformity"} <= set(line.get("evaluation", {}))]
    return [{"step": line["step"], **{name: float(value) for name, value in line["evaluation"].items()}} for line in lines]


def _spearman(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float | None:
    """Spearman × 100; None where one side never changes."""
    from scipy import stats

    if not (np.ptp(a) and np.ptp(b)):
        return None
    return 100 * float(stats.spearmanr(a, b).statistic)


def _check_pairs(first: Sequence[str], second: Sequence[str], gold: npt.NDArray[np.float64]) -> None:
    if not len(first) == len(second) == len(gold):
        raise InputError(f"Pairs and scores differ in number: {len(first)}, {len(second)} and {len(gold)}.")
    if len(gold) < 2:
        raise InputError(f"At least two scored pairs were expected; {len(gold)} given.")
    if not ((gold >= 0) & (gold <= 5)).all():
        raise InputError("Gold scores from 0 to 5 were expected; scale them to that range.")
    if not (gold > POSITIVE_ABOVE).any():
        raise InputError("No pair has a gold score above 4, so there are no positive pairs to align; scores run from 0 to 5.")
