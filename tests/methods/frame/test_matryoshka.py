"""Matryoshka: the objective at every width, against a naive loop and against sentence-transformers' own rule."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.matryoshka import parse_widths
from isotrope.methods.frame.method_registry import find


def method(name: str, tiny: Path, pooling: str = "mean", **settings: object):  # type: ignore[no-untyped-def]
    kind = find(name)
    return kind(kind.Settings(**settings), isotrope.load(tiny, pooling=pooling, device="cpu"), 32)


def vectors(*names: str) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {name: torch.randn(6, 32, generator=generator, dtype=torch.float64) for name in names}


def naive(anchors: np.ndarray, positives: np.ndarray, negatives: np.ndarray, temperature: float) -> float:
    """Supervised SimCSE of one width, a number at a time."""

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))

    total = 0.0
    for row, anchor in enumerate(anchors):
        scores = [cosine(anchor, other) / temperature for other in (*positives, *negatives)]
        total -= scores[row] - math.log(sum(math.exp(score) for score in scores))
    return total / len(anchors)


def test_the_loss_is_the_sum_over_truncated_vectors(tiny: Path) -> None:
    combined = Combined(method("simcse-supervised", tiny, temperature=0.3), widths=parse_widths("4,16"))
    given = vectors("anchor", "positive", "negative")
    terms = combined.loss(given, torch.Generator())
    assert list(terms) == ["contrastive", "contrastive@16", "contrastive@4"]
    columns = [given[name].numpy() for name in ("anchor", "positive", "negative")]
    expected = {width: naive(*(column[:, :width] for column in columns), 0.3) for width in (32, 16, 4)}
    assert [float(term) for term in terms.values()] == pytest.approx(list(expected.values()), rel=1e-6)
    assert float(combined.total(terms)) == pytest.approx(sum(expected.values()), rel=1e-6)


def test_a_width_has_the_weight_of_its_term(tiny: Path) -> None:
    angle = method("angle", tiny, cosine_weight=3.0, angle_weight=0.5, in_batch_weight=2.0)
    combined = Combined(angle, widths=(8,))
    scores, positive = torch.arange(6.0).double(), torch.ones(6)
    terms = combined.loss({**vectors("first", "second"), "scores": scores, "positive": positive}, torch.Generator())
    weights = {"cosine_ranking": 3.0, "angle_ranking": 0.5, "contrastive": 2.0}
    expected = sum(weights[name.partition("@")[0]] * float(term) for name, term in terms.items())
    assert len(terms) == 6
    assert float(combined.total(terms)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["simcse", "cosent", "declutr", "quick-thoughts"])
def test_every_method_that_takes_it_gives_each_width_a_gradient(name: str, tiny: Path) -> None:
    combined = Combined(method(name, tiny), widths=(8,))
    given = {
        part: tensor.float().requires_grad_() for part, tensor in vectors(*combined.method.nested_vectors()).items()
    }
    shaped = {part: tensor.unsqueeze(1) if name == "declutr" else tensor for part, tensor in given.items()}
    more = {"scores": torch.arange(6.0), "places": torch.arange(6)}
    terms = combined.loss({**shaped, **more}, torch.Generator())
    (narrow,) = [term for part, term in terms.items() if part.endswith("@8")]
    narrow.backward()
    first = next(iter(given.values())).grad
    assert first is not None
    assert first[:, :8].abs().sum() > 0
    assert first[:, 8:].abs().sum() == 0


def test_training_with_it_makes_the_leading_dimensions_better(tiny: Path, triples: Path) -> None:
    common = {"model": tiny, "max_steps": 25, "batch_size": 16, "eval_steps": 25, "learning_rate": 1e-3, "held_out": 0}
    plain = isotrope.train("simcse-supervised", triples, pooling="mean", **common)
    nested = isotrope.train("simcse-supervised", triples, pooling="mean", matryoshka="4", **common)
    assert {"contrastive", "contrastive@4"} <= {name for line in nested.history for name in line}
    rows = [line.split("\t") for line in triples.read_text(encoding="utf-8").splitlines()[1:]]

    def contrast(encoder: isotrope.Encoder) -> float:
        anchor, positive = (
            encoder.encode([row[i] for row in rows], normalize_embeddings=True, truncate_dim=4) for i in (0, 1)
        )
        scores = anchor @ positive.T
        return float((np.diag(scores)[:, None] > scores).mean())

    assert contrast(nested.encoder) > contrast(plain.encoder)


@pytest.mark.parametrize(
    ("given", "widths"), [(None, ()), ("64,128", (128, 64)), ("[64, 128]", (128, 64)), ("16", (16,)), ("8,8", (8,))]
)
def test_widths_are_read_as_people_write_them(given: str | None, widths: tuple[int, ...]) -> None:
    assert parse_widths(given) == widths


@pytest.mark.parametrize("given", ["", "0", "-4", "8,a", "8.5", ","])
def test_what_is_no_list_of_widths_is_refused(given: str, tiny: Path, triples: Path) -> None:
    with pytest.raises(InputError, match="matryoshka is a list of widths"):
        isotrope.train("simcse-supervised", triples, model=tiny, matryoshka=given)


def test_a_width_above_the_model_and_a_method_without_such_vectors_are_refused(tiny: Path) -> None:
    with pytest.raises(InputError, match="matryoshka 64 is more than the 32 dimensions"):
        Combined(method("cosent", tiny), widths=(64,))
    assert Combined(method("cosent", tiny), widths=(32, 8)).widths == (8,)
    with pytest.raises(InputError, match="mlm compares others"):
        Combined(
            find("mlm")(find("mlm").Settings(), isotrope.load(tiny, device="cpu", language_head=True), 32), (), (8,)
        )
    with pytest.raises(InputError, match="simcse compares others"):  # a head that training alone sees
        Combined(method("simcse", tiny, pooling="cls"), widths=(8,))
