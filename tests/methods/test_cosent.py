"""CoSENT: the order of the scores, and nothing else of them, decides."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.errors import InputError
from isotrope.methods.cosent import CoSENT
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.settings import check

Built = Callable[..., Any]
Batched = Callable[..., Batch]
LABELS = ("entailment", "neutral", "contradiction")


@pytest.fixture
def scored(topics: list[str]) -> list[dict[str, Any]]:
    return [{"sentence1": topics[i], "sentence2": topics[i + 1], "score": i * 7 % 11 / 2} for i in range(0, 120, 2)]


@pytest.fixture
def inferences(topics: list[str]) -> list[dict[str, Any]]:
    return [{"premise": topics[i], "hypothesis": topics[i + 1], "label": LABELS[i // 2 % 3]} for i in range(0, 120, 2)]


def loss_of(method: Method, batch: Batch) -> float:
    return float(method.loss(method.represent(batch), batch.generator())["ranking"].detach())


@pytest.mark.parametrize(("cosines", "expected"), [((0.9, 0.3, 0.5), 0.018485), ((0.3, 0.9, 0.5), 12.018485)])
def test_golden_values_through_the_method(
    built: Built, scored: Any, cosines: tuple[float, ...], expected: float
) -> None:
    first = torch.tensor([[2.0, 0.0]] * 3)
    second = torch.tensor([[c, math.sqrt(1 - c * c)] for c in cosines])
    found = {"first": first, "second": second, "scores": torch.tensor([1.0, 0.0, 0.5])}
    assert float(built("cosent", scored).loss(found, torch.Generator())["ranking"]) == pytest.approx(expected, abs=1e-5)


def test_a_naive_loop_over_pairs_of_pairs(built: Built, batched: Batched, scored: Any) -> None:
    method = built("cosent", scored, scale=5.0).eval()
    first, second = (
        method.encoder.encode([row[side] for row in scored[:8]], normalize_embeddings=True)
        for side in ("sentence1", "sentence2")
    )
    cosines, scores = (first * second).sum(axis=1), [row["score"] for row in scored[:8]]
    pairs = [(i, j) for i in range(8) for j in range(8) if scores[i] < scores[j]]
    expected = math.log(1 + sum(math.exp(5.0 * float(cosines[i] - cosines[j])) for i, j in pairs))
    assert loss_of(method, batched(method)) == pytest.approx(expected, abs=1e-4)


def test_only_the_order_of_the_scores_counts(built: Built, batched: Batched, scored: Any) -> None:
    stretched = [{**row, "score": 100 * row["score"] ** 3 - 7} for row in scored]
    first, second = built("cosent", scored).eval(), built("cosent", stretched).eval()
    assert loss_of(first, batched(first)) == pytest.approx(loss_of(second, batched(second)), abs=1e-6)


def test_labels_are_put_in_order(built: Built, batched: Batched, inferences: Any) -> None:
    method = built("cosent", inferences).eval()
    assert batched(method, range(3))["scores"].values.tolist() == [2, 1, 0]
    ranked = [
        {"sentence1": row["premise"], "sentence2": row["hypothesis"], "score": -LABELS.index(row["label"])}
        for row in inferences
    ]
    twin = built("cosent", ranked).eval()
    assert loss_of(method, batched(method)) == pytest.approx(loss_of(twin, batched(twin)), abs=1e-6)
    other = built("cosent", inferences, order="entailment, contradiction, neutral")
    assert batched(other, range(3))["scores"].values.tolist() == [0, 2, 1]


def test_a_batch_of_one_score_gives_nothing_and_does_no_harm(built: Built, batched: Batched, inferences: Any) -> None:
    method = built("cosent", inferences)
    batch = batched(method, range(0, 24, 3))
    term = method.loss(method.represent(batch), batch.generator())["ranking"]
    term.backward()
    assert float(term.detach()) == 0.0
    assert all(torch.isfinite(p.grad).all() for p in method.parameters() if p.grad is not None)


def test_nothing_but_the_encoder_is_trained_and_kept(built: Built, scored: Any, tiny: Path) -> None:
    method = built("cosent", scored)
    assert len(method.tower) == 0
    assert method.candidates({}) == 0
    raw = isotrope.load(tiny)
    assert {name for name, _ in method.named_parameters()} == {f"encoder.{name}" for name, _ in raw.named_parameters()}
    assert np.allclose(method.export().encode("the chef bakes"), raw.encode("the chef bakes"), atol=1e-6)


def test_training_puts_pairs_in_order(tiny: Path, topics: list[str], tmp_path: Path) -> None:
    """Score 1 for two sentences of a topic, 0 for two of different ones."""
    rows = [(topics[i], topics[i + 2] if i % 4 else topics[i + 17], float(bool(i % 4))) for i in range(0, 480, 2)]
    file = tmp_path / "scored.tsv"
    file.write_text("sentence1\tsentence2\tscore\n" + "".join(f"{a}\t{b}\t{y}\n" for a, b, y in rows), encoding="utf-8")
    settings = {
        "max_steps": 40,
        "batch_size": 16,
        "eval_steps": 40,
        "logging_steps": 10,
        "learning_rate": 1e-3,
        "held_out": 0,
    }
    run = isotrope.train("cosent", file, model=tiny, output=tmp_path / "run", eval_data=file, **settings)
    losses = [line["ranking"] for line in run.history if "ranking" in line]
    scores = [line["score"] for line in run.history if "score" in line]
    assert losses[-1] < 0.5 * losses[0]
    assert scores[-1] > scores[0] + 10


def test_data_that_cannot_be_put_in_order(built: Built, scored: Any, inferences: Any) -> None:
    with pytest.raises(InputError, match="same score, 1"):
        built("cosent", [{**row, "score": 1} for row in scored])
    with pytest.raises(InputError, match="same label, neutral"):
        built("cosent", [{**row, "label": "neutral"} for row in inferences])
    with pytest.raises(InputError, match="'unsure' has no place in the order"):
        built("cosent", [*inferences, {**inferences[0], "label": "unsure"}])


@pytest.mark.parametrize("bad", [{"scale": 0.0}, {"scale": float("nan")}, {"order": "a"}, {"order": "a,b,a"}])
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        check(CoSENT.Settings(**bad))
