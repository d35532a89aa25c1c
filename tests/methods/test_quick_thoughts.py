"""QuickThoughts: who is a neighbour, which encoder learns what, which one is kept."""

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
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.settings import check
from isotrope.methods.quick_thoughts import QuickThoughts
from isotrope.objectives import neighbour_prediction
from isotrope.training.step import compute_gradient

Build = Callable[..., Any]
Batched = Callable[..., Batch]
Law = Callable[..., Any]
SHORT = {"batch_size": 16, "learning_rate": 1e-3, "logging_steps": 1, "held_out": 40}
ROWS = range(4, 16)


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    """Dropout is off unless it is asked for."""
    return lambda data=sentences, **settings: built("quick-thoughts", data, **{"backbone_dropout": 0.0, **settings})


def naive_loss(first: torch.Tensor, second: torch.Tensor, near: dict[int, list[int]]) -> float:
    f, g = first.detach().double(), second.detach().double()
    total = 0.0
    for i, neighbours in near.items():
        scores = {k: float(f[i] @ g[k]) for k in range(len(g)) if k != i}
        top = max(scores.values())
        total += (
            top
            + math.log(sum(math.exp(s - top) for s in scores.values()))
            - sum(scores[j] for j in neighbours) / len(neighbours)
        )
    return total / len(near)


def test_the_card_and_the_papers_settings() -> None:
    card = QuickThoughts.card
    assert (card.name, card.needs, card.year, QuickThoughts.batches) == (
        "quick-thoughts",
        "documents",
        2018,
        "consecutive",
    )
    settings = QuickThoughts.Settings()
    assert (settings.window, settings.temperature, settings.second) == (1, 1.0, "own")


def test_golden_value(build: Build, batched: Batched) -> None:
    method = build()
    batch = batched(method, list(range(4)))
    found = {**method.represent(batch), "first": torch.zeros(4, 3), "second": torch.zeros(4, 3)}
    assert float(method.loss(found, batch.generator())["contrastive"]) == pytest.approx(
        1.098612, abs=1e-6
    )  # log 3: the diagonal is no candidate
    assert method.candidates(found) == 3


def test_the_end_of_a_document_parts_neighbours(build: Build, batched: Batched) -> None:
    method = build()
    batch = batched(method, ROWS)  # rows 4 to 7 end a document of eight, 8 to 15 are the next
    found = method.represent(batch)
    near = {i: [j for j in (i - 1, i + 1) if 0 <= j < 12 and (j < 4) == (i < 4)] for i in range(12)}
    assert near[3] == [2]
    assert near[4] == [5]
    loss = float(method.loss(found, batch.generator())["contrastive"].detach())
    assert loss == pytest.approx(naive_loss(found["first"], found["second"], near), abs=1e-4)
    whole = neighbour_prediction(found["first"], found["second"])  # as if it were one text
    assert loss != pytest.approx(float(whole.detach()), abs=1e-4)


@pytest.mark.parametrize("window", [1, 2, 20])
def test_no_window_reaches_over_the_end_of_a_document(batched: Batched, build: Build, window: int) -> None:
    method = build(window=window)
    places = batched(method, range(60))["places"].values
    rows = torch.arange(60)
    expected = (rows[:, None] // 8 == rows // 8) & ((rows[:, None] - rows).abs() <= window)
    assert torch.equal((places[:, None] - places).abs() <= window, expected)


def test_a_sentence_held_out_between_two_parts_them(build: Build, batched: Batched) -> None:
    method = build()
    batch = batched(method, [0, 1, 3, 4, 6])  # 2 and 5 are elsewhere
    found = method.represent(batch)
    expected = naive_loss(found["first"], found["second"], {0: [1], 1: [0], 2: [3], 3: [2]})
    assert float(method.loss(found, batch.generator())["contrastive"].detach()) == pytest.approx(expected, abs=1e-4)


def test_two_encoders_start_alike_learn_apart_and_the_first_is_kept(build: Build, batched: Batched, tiny: Path) -> None:
    method = build()
    batch = batched(method, ROWS)
    found = method.represent(batch)
    assert torch.allclose(found["first"], found["second"], atol=1e-6)
    optimiser = torch.optim.SGD(method.parameters(), lr=0.1)
    method.loss(found, batch.generator())["contrastive"].backward()
    optimiser.step()
    second = method.tower["second"].module  # type: ignore[union-attr]
    moved = [not torch.equal(a, b) for a, b in zip(method.encoder.parameters(), second.parameters(), strict=True)]
    assert any(moved)
    again = method.eval().represent(batch)  # the encoder that asks is the one that is kept
    for name, encoder in (("first", method.export()), ("second", second)):
        assert torch.allclose(again[name], encoder.embed(batch["sentences"])[0], atol=1e-6)
    text = "the chef bakes"
    assert np.array_equal(method.export().encode(text), method.encoder.encode(text))
    assert not np.allclose(method.export().encode(text), second.encode(text), atol=1e-6)
    assert not np.allclose(method.export().encode(text), isotrope.load(tiny).encode(text), atol=1e-6)
    assert len(list(method.export().parameters())) == len(list(isotrope.load(tiny).parameters()))


def test_one_shared_encoder_serves_both_sides(build: Build, batched: Batched) -> None:
    method = build(second="shared", backbone_dropout=0.1)
    assert len(method.tower) == 0
    found = method.represent(batched(method, ROWS))
    assert torch.equal(found["first"], found["second"])


@pytest.mark.parametrize(("second", "mlm"), [("own", 0.0), ("shared", 0.0), ("own", 0.5)])
def test_chunks_give_the_gradient_of_the_whole_batch_with_dropout_on(
    build: Build, with_mlm: Law, chunks_agree: Law, second: str, mlm: float
) -> None:
    cached, plain = (build(backbone_dropout=0.1, language_head=True, second=second) for _ in range(2))
    if mlm:
        cached, plain = with_mlm(cached, mlm), with_mlm(plain, mlm)
    chunks_agree(cached, plain, ROWS)


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_resume_equals_uninterrupted(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"max_steps": 6, "eval_steps": 3, **SHORT}
    whole = isotrope.train("quick-thoughts", sentences, tiny, tmp_path / "whole", **settings)
    steps = []

    def fail_at_fourth(*given: object) -> object:
        steps.append(given)
        if len(steps) == 4:
            raise RuntimeError("stopped")
        return compute_gradient(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("isotrope.training.updates.compute_gradient", fail_at_fourth)
    with pytest.raises(RuntimeError, match="stopped"):
        isotrope.train("quick-thoughts", sentences, tiny, tmp_path / "cut", **settings)
    monkeypatch.undo()
    again = isotrope.train("quick-thoughts", sentences, tiny, tmp_path / "cut", resume=True, **settings)
    for (name, one), other in zip(whole.encoder.named_parameters(), again.encoder.parameters(), strict=True):
        assert torch.equal(one, other), name
    assert [line.get("loss") for line in whole.history] == [line.get("loss") for line in again.history]


def test_training_lowers_its_loss(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    run = isotrope.train("quick-thoughts", sentences, tiny, tmp_path / "run", max_steps=30, eval_steps=30, **SHORT)
    losses = [line["contrastive"] for line in run.history if "contrastive" in line]
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
    assert run.history[1]["candidates"] == 15


def test_documents_of_one_sentence_are_counted(build: Build, tmp_path: Path, topics: list[str]) -> None:
    file = tmp_path / "uneven.txt"
    file.write_text(
        "\n\n".join(["\n".join(topics[:3]), topics[3], topics[4], "\n".join(topics[5:8])]), encoding="utf-8"
    )
    (said,) = build(file).prepared.remarks
    assert said.startswith("2 of 4 documents are a single sentence")


@pytest.mark.parametrize(
    "bad", [{"temperature": 0.0}, {"temperature": float("nan")}, {"window": 0}, {"second": "third"}]
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        check(QuickThoughts.Settings(**bad))  # type: ignore[arg-type]
