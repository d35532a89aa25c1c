"""SG and SG-OPT: what guides, what learns, what stays as it was, what is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import isotrope
from isotrope.errors import InputError
from isotrope.methods import sg
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.methods.sg import SelfGuided, SelfGuidedOptimised
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import build_optimiser

Build = Callable[..., Any]
Batched = Callable[..., Batch]
# specs/1, section 2.8
CLS = torch.tensor([[1, 0], [0.6, 0.8]])
LAYERS = torch.tensor([[[0.8, 0.6], [0.96, 0.28]], [[-0.6, 0.8], [0.28, 0.96]]])
SHORT: dict[str, Any] = {
    "batch_size": 16,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 32,
    "projection": 64,
    "logging_steps": 1,
}


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    def make(name: str, data: Any = sentences, pooling: str = "cls", **settings: Any) -> Any:
        return built(name, data, pooling=pooling, **{"projection": 64, **settings})

    return make


def embeddings(encoder: isotrope.Encoder) -> list[Tensor]:
    return list(encoder.backbone.embeddings.parameters())  # type: ignore[union-attr, operator]


def test_defaults_are_the_papers() -> None:
    for method_class, variant in ((SelfGuided, "base"), (SelfGuidedOptimised, "opt3")):
        settings = method_class.Settings()
        assert (settings.temperature, settings.distance_weight, settings.projection) == (0.01, 0.1, 4096)  # type: ignore[attr-defined]
        assert (settings.variant, settings.layer_pooling) == (variant, "max")  # type: ignore[attr-defined]
        assert method_class.defaults == {"adam_beta2": 0.9}
    cards = {card.name: card for card in isotrope.methods()}
    assert cards["sg"].needs == cards["sg-opt"].needs == "sentences"


@pytest.mark.parametrize(
    ("variant", "depth", "expected"),
    [("base", 1, 0.991946), ("opt1", 1, 1.232310), ("opt2", 1, 0.823745), ("opt3", 2, 0.921917)],
)
def test_golden_values(build: Build, batched: Batched, variant: str, depth: int, expected: float) -> None:
    method = build("sg", projection=0, temperature=0.5, variant=variant)
    terms = method.loss({"tuned": CLS, "layers": LAYERS[:, :depth]}, torch.Generator())
    assert float(terms["contrastive"]) == pytest.approx(expected, abs=1e-6)
    assert float(terms["distance"].detach()) == 0.0


def test_one_layer_is_drawn_for_each_sentence_and_all_have_their_turn(
    build: Build, batched: Batched, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = build("sg", projection=0)
    seen: list[Tensor] = []
    monkeypatch.setattr(sg, "self_guided", lambda tuned, layers, *_: seen.append(layers) or tuned.sum())
    layers = torch.arange(3.0).view(1, 3, 1).expand(300, 3, 4)  # layer k holds k everywhere
    for seed in (1, 1, 2):
        method.loss({"tuned": torch.zeros(300, 4), "layers": layers}, torch.Generator().manual_seed(seed))
    assert seen[0].shape == (300, 1, 4)
    counts = torch.bincount(seen[0][:, 0, 0].long(), minlength=3)
    assert set(seen[0].unique().tolist()) == {0.0, 1.0, 2.0}  # a draw, never a mean
    assert counts.min() > 70  # uniform: 100 each
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])


def test_the_views_are_pooled_layers_of_the_model_as_it_was_given(
    build: Build, batched: Batched, tiny: Path, sentences: Path
) -> None:
    method = build("sg-opt")
    with torch.no_grad():
        for parameter in method.encoder.backbone.encoder.parameters():  # type: ignore[union-attr, operator]
            parameter.add_(0.1)  # as if it had learned
    batch = batched(method, [0, 3, 9, 130])
    found = method.represent(batch)
    start = isotrope.load(tiny, device="cpu")
    tokens = batch["sentences"]
    with torch.no_grad():
        layers = start.layers(tokens)
    assert len(layers) == 3  # the embeddings and two layers
    for row, length in enumerate(tokens.lengths):
        expected = torch.stack([states[row, :length].amax(dim=0) for states in layers])
        assert torch.allclose(found["layers"][row], expected, atol=1e-5)
    assert not found["layers"].requires_grad
    again = method.represent(batch)
    assert torch.equal(found["layers"], again["layers"])  # no dropout in the frozen copy, though the method trains
    assert not torch.equal(found["tuned"], again["tuned"])
    mean = build("sg-opt", layer_pooling="mean").represent(batch)["layers"]
    assert torch.allclose(mean[0, 2], layers[2][0, : tokens.lengths[0]].mean(dim=0), atol=1e-5)


def test_the_distance_is_a_sum_of_squares_over_what_learns(build: Build, batched: Batched) -> None:
    method = build("sg-opt")
    batch = batched(method)
    distance = method.distance()
    distance.backward()
    learns = [p for p in method.encoder.parameters() if p.requires_grad]
    assert float(distance.detach()) == 0.0
    assert all(p.grad is None or not p.grad.any() for p in learns)  # and no NaN: 0 is smooth there
    with torch.no_grad():
        learns[0].add_(0.5)
        learns[1].sub_(2.0)
    expected = 0.25 * learns[0].numel() + 4.0 * learns[1].numel()
    assert float(method.distance().detach()) == pytest.approx(expected, rel=1e-4)
    terms = method.loss(method.represent(batch), batch.generator())
    total = float(Combined(method).total(terms).detach())
    assert total == pytest.approx(float(terms["contrastive"].detach()) + 0.1 * expected, rel=1e-4)


def test_the_gradient_reaches_head_and_layers_but_neither_copy_nor_embeddings(build: Build, batched: Batched) -> None:
    method = build("sg-opt")
    batch = batched(method)
    Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
    reached = {name for name, p in method.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
    assert any("head" in name for name in reached)
    assert any("encoder.layer.1" in name for name in reached)
    assert not any("frozen" in name or "embeddings" in name for name in reached)
    found = method.represent(batch)
    method.zero_grad()
    method.loss({**found, "tuned": found["tuned"].detach()}, batch.generator())["contrastive"].backward()
    assert method.tower["head"].module[0].weight.grad.abs().sum() > 0  # type: ignore[union-attr, index]  # the head learns from the layers too


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_training_lowers_the_loss_and_leaves_the_copy_and_the_embeddings_bit_for_bit(
    tiny: Path, sentences: Path, tmp_path: Path, updated_methods: list[Any]
) -> None:
    # The [CLS] of random weights knows nothing of its sentence, so mean pooling.
    settings = {**SHORT, "temperature": 0.1, "max_steps": 25, "eval_steps": 25, "learning_rate": 3e-3}
    settings["keep_start"] = False
    run = isotrope.train("sg-opt", sentences, tiny, tmp_path / "run", pooling="mean", **settings)
    losses = [line["contrastive"] for line in run.history if "contrastive" in line]
    assert np.mean(losses[-3:]) < 0.85 * losses[0]
    assert {line["candidates"] for line in run.history if "candidates" in line} == {1 + 15 * 3}
    start = isotrope.load(tiny, pooling="mean", device="cpu")
    method = updated_methods[-1]
    assert method.frozen.fingerprint() == start.fingerprint()
    assert not any(module.training for module in method.frozen.modules())
    assert all(
        torch.equal(ours, theirs) for ours, theirs in zip(embeddings(run.encoder), embeddings(start), strict=True)
    )
    assert run.encoder.fingerprint() != start.fingerprint()
    assert not any(part in name for name, _ in run.encoder.named_parameters() for part in ("frozen", "head"))
    assert all(parameter.requires_grad for parameter in run.encoder.parameters())  # the next run may train all of it


@pytest.mark.parametrize(("variant", "expected"), [("base", 15), ("opt1", 15), ("opt2", 8), ("opt3", 22)])
def test_candidates_are_counted(build: Build, variant: str, expected: int) -> None:
    method = build("sg", variant=variant)
    assert method.candidates({"layers": torch.zeros(8, 3, 4)}) == expected


def test_the_head_is_the_papers(build: Build) -> None:
    head = build("sg", projection=512).tower["head"].module
    assert [type(part).__name__ for part in head] == ["Linear", "GELU", "Linear", "GELU"]  # type: ignore[union-attr, arg-type]
    assert head[2].weight.shape == (512, 512)  # type: ignore[index, union-attr]
    assert float(head[2].weight.std().detach()) == pytest.approx(0.02, rel=0.02)  # type: ignore[index, union-attr, operator]
    assert not head[2].bias.any()  # type: ignore[index, union-attr, operator]


def test_the_optimiser_has_the_papers_betas_and_nothing_frozen(build: Build) -> None:
    method = build("sg")
    optimiser = build_optimiser(Combined(method), LoopSettings(**SelfGuided.defaults))
    assert {group["betas"] for group in optimiser.param_groups} == {(0.9, 0.9)}
    listed = {id(p) for group in optimiser.param_groups for p in group["params"]}
    assert not listed & {id(p) for p in [*embeddings(method.encoder), *method.frozen.parameters()]}


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"distance_weight": -0.1}, "distance_weight"),
        ({"variant": "opt4"}, "base, opt1, opt2, opt3"),
        ({"layer_pooling": "sum"}, "max, mean, cls"),
        ({"projection": -1}, "projection"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check(SelfGuided.Settings(**bad))
    with pytest.raises(InputError, match=said):
        check(SelfGuidedOptimised.Settings(**bad))


def test_a_vector_wider_than_a_layer_is_refused(build: Build) -> None:
    with pytest.raises(InputError, match=r"64 dimensions.*layers of the model \(32\)"):
        build("sg", pooling="cls+mean")
