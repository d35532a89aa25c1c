"""Contrastive Tension: who is paired with whom, what the released losses say, which encoder is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import isotrope
from isotrope.errors import InputError
from isotrope.methods.contrastive_tension import ContrastiveTension, TensionSettings
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check

Build = Callable[..., Any]
Batched = Callable[..., Batch]
Law = Callable[..., Any]


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    return lambda **settings: built("contrastive-tension", sentences, **settings)


def vectors(count: int = 12, width: int = 6) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(5)
    return {name: torch.randn(count, width, generator=generator) for name in ("first", "second")}


def value(method: Any, found: dict[str, Tensor]) -> float:
    (term,) = method.loss(found, torch.Generator()).values()
    return float(term.detach())


def test_the_defaults_are_the_papers() -> None:
    settings = TensionSettings()
    assert (settings.form, settings.negatives) == ("pairs", 7)
    assert ContrastiveTension.card.read_out == "mean"


def test_the_kept_encoder_is_the_second_of_a_pair(build: Build, batched: Callable[..., Any]) -> None:
    method = build()
    other = method.tower["second"].module
    with torch.no_grad():
        for parameter in other.backbone.parameters():
            parameter.mul_(1.1)
    batch = batched(method)
    found = method.represent(batch)
    assert method.export() is method.encoder
    assert torch.allclose(found["second"], method.encoder(batch["sentences"]), atol=1e-5)
    assert torch.allclose(found["first"], other(batch["sentences"]), atol=1e-5)
    assert not torch.allclose(found["first"], found["second"], atol=1e-2)


def test_golden_value(build: Build) -> None:
    """Orthogonal vectors of length 2: a sentence scores 4 with itself, 0 with any other."""
    found = {"first": 2 * torch.eye(9), "second": 2 * torch.eye(9)}
    expected = (math.log(1 + math.exp(-4)) + 7 * math.log(2)) / 8
    assert value(build(), found) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("negatives", [1, 3, 7])
def test_the_loss_is_binary_cross_entropy_over_one_equal_pair_to_k_others(build: Build, negatives: int) -> None:
    """A loop in float64: plain dot products, each sentence with itself and with the K that follow it."""
    found = vectors()
    losses, labels = [], []
    for i in range(12):
        for j in [i, *((i + shift) % 12 for shift in range(1, negatives + 1))]:
            score = float(found["first"][i].double() @ found["second"][j].double())
            labels.append(i == j)
            losses.append(math.log1p(math.exp(-score if i == j else score)))
    assert labels.count(False) == negatives * labels.count(True)
    method = build(negatives=negatives)
    assert value(method, found) == pytest.approx(sum(losses) / len(losses), abs=1e-6)
    assert method.candidates(found) == 1 + negatives


class Rows(nn.Module):
    """A table of vectors as an encoder of the numbers of its rows."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.table = nn.Parameter(table.clone())

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": self.table[features["input_ids"].squeeze(1)]}


@pytest.fixture
def released() -> Callable[[str, dict[str, Tensor]], Any]:
    """A loss of sentence-transformers between two tables."""
    losses = pytest.importorskip("sentence_transformers.losses")

    def make(name: str, found: dict[str, Tensor]) -> Any:
        loss = getattr(losses, name)(Rows(found["second"]))
        loss.model1 = Rows(found["first"])
        return loss

    return make


def test_it_agrees_with_sentence_transformers(build: Build, released: Any) -> None:
    """On value and gradients; theirs is the sum over pairs, ours their mean."""
    found = vectors()
    theirs = released("ContrastiveTensionLoss", found)
    left = torch.arange(12).repeat_interleave(8)
    right = (left + torch.arange(8).repeat(12)) % 12
    features = [{"input_ids": rows.unsqueeze(1)} for rows in (left, right)]
    expected = theirs(features, (left == right).float()) / len(left)
    assert value(build(), found) == pytest.approx(float(expected.detach()), abs=1e-6)
    gradients_agree(build(), found, theirs, expected)


def test_in_batch_agrees_with_sentence_transformers(build: Build, released: Any) -> None:
    found = vectors()
    theirs = released("ContrastiveTensionLossInBatchNegatives", found)
    expected = theirs([{"input_ids": torch.arange(12).unsqueeze(1)}], torch.empty(0))
    method = build(form="in-batch")
    assert value(method, found) == pytest.approx(float(expected.detach()), abs=1e-5)
    assert method.candidates(found) == 12
    gradients_agree(method, found, theirs, expected)


def gradients_agree(method: Any, found: dict[str, Tensor], theirs: Any, expected: Tensor) -> None:
    expected.backward()
    ours = {name: tensor.clone().requires_grad_() for name, tensor in found.items()}
    (term,) = method.loss(ours, torch.Generator()).values()
    term.backward()
    for name, model in (("first", theirs.model1), ("second", theirs.model2)):
        assert torch.allclose(ours[name].grad, model.table.grad, atol=1e-6)
        assert float(model.table.grad.abs().max()) > 1e-3


def test_the_encoders_begin_equal_and_share_no_weight(build: Build, batched: Batched) -> None:
    method = build()
    other = method.tower["second"].module
    assert all(torch.equal(a, b) for a, b in zip(method.encoder.parameters(), other.parameters(), strict=True))
    assert not {id(p) for p in method.encoder.parameters()} & {id(p) for p in other.parameters()}
    found = method.represent(batched(method, range(12)))
    assert torch.equal(found["first"], found["second"])  # no dropout in the form of the paper's code
    Combined(method).total(method.loss(found, torch.Generator())).backward()
    for encoder in (method.encoder, other):
        assert encoder.backbone.embeddings.word_embeddings.weight.grad.abs().sum() > 0


def gradient(encoder: Any) -> Tensor:
    found: Tensor = encoder.backbone.embeddings.word_embeddings.weight.grad
    return found


@pytest.mark.parametrize(("rows", "alike"), [(9, False), (8, True)])
def test_gradients_differ_where_a_sentence_does_not_meet_all_others(
    rows: int, alike: bool, build: Build, batched: Batched
) -> None:
    """With as many records as pairs, both encoders would stay equal: such a batch is refused."""
    method = build()
    found = method.represent(batched(method, range(rows)))
    Combined(method).total(method.loss(found, torch.Generator())).backward()
    first, second = gradient(method.encoder), gradient(method.tower["second"].module)
    assert torch.allclose(first, second, atol=1e-7) == alike


@pytest.mark.parametrize(("settings", "drops"), [({}, False), ({"dropout": 0.1}, True), ({"form": "in-batch"}, True)])
def test_dropout_is_off_in_pairs_and_on_in_batch(
    settings: dict[str, Any], drops: bool, build: Build, batched: Batched
) -> None:
    method = build(**settings)
    batch = batched(method)
    first, second = method.represent(batch), method.represent(batch)
    for name in ("first", "second"):
        assert torch.equal(first[name], second[name]) != drops


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_the_second_encoder_is_kept_and_the_first_is_not_saved(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    loop = {"max_steps": 4, "batch_size": 16, "eval_steps": 4, "learning_rate": 1e-3, "held_out": 0}
    run = isotrope.train(
        "contrastive-tension", sentences, model=tiny, output=tmp_path / "run", keep_start=False, **loop
    )
    kept = load_file(tmp_path / "run" / "checkpoints" / "best-4.safetensors")
    saved = load_file(run.folder / "model" / "model.safetensors")
    name = next(name for name in saved if name.endswith("encoder.layer.0.attention.self.query.weight"))
    short = name.removeprefix("bert.")
    online, other = kept[f"method.encoder.backbone.{short}"], kept[f"method.tower.second.module.backbone.{short}"]
    assert torch.equal(saved[name], online)
    assert not torch.equal(online, other)
    assert not (run.folder / "model" / "second").exists()


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
@pytest.mark.parametrize("form", ["pairs", "in-batch"])
def test_training_lowers_its_loss(form: str, tiny: Path, sentences: Path, tmp_path: Path) -> None:
    loop = {"max_steps": 30, "batch_size": 16, "eval_steps": 30, "logging_steps": 1, "learning_rate": 5e-4}
    run = isotrope.train("contrastive-tension", sentences, model=tiny, output=tmp_path / "run", form=form, **loop)
    losses = [line["loss"] for line in run.history if "loss" in line]
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


@pytest.mark.parametrize("form", ["pairs", "in-batch"])
def test_chunks_give_the_gradient_of_the_whole_batch(form: str, build: Build, chunks_agree: Law) -> None:
    chunks_agree(*(build(form=form, dropout=0.1) for _ in range(2)))


def test_a_resumed_run_gives_the_same_weights_of_both(sentences: Path, resume_agrees: Law) -> None:
    weights = resume_agrees("contrastive-tension", sentences, negatives=3, optimiser="rmsprop", learning_rate=1e-4)
    assert any(".tower.second." in f".{name}" for name in weights)


def test_what_cannot_work_is_refused(build: Build) -> None:
    TensionSettings().check_batch(9)
    TensionSettings(form="in-batch", negatives=70).check_batch(4)
    with pytest.raises(InputError, match=r"batch_size \(8\) must be at least negatives \+ 2 \(9\)"):
        TensionSettings().check_batch(8)
    for bad, said in (
        ({"form": "softmax"}, "form is one of pairs, in-batch"),
        ({"negatives": 0}, "negatives"),
        ({"temperature": 0.0}, "temperature"),
        ({"form": "in-batch", "dropout": 0.0}, "needs dropout"),
    ):
        with pytest.raises(InputError, match=said):
            check(TensionSettings(**bad))
