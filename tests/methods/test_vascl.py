"""VaSCL: who is a neighbour, where the virtual copy lies, what the gradient reaches, what is kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import isotrope
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method_registry import find
from isotrope.methods.frame.settings import check
from isotrope.methods.vascl import VaSCL, VaSCLSettings
from isotrope.objectives import contrast_with_neighbours, nearest_rows, nt_xent, virtual_contrast
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import build_optimiser, build_schedule
from isotrope.training.plan import make_plan
from isotrope.training.state import TrainingWarning

Build = Callable[..., Any]
Batched = Callable[..., Batch]
Law = Callable[..., Any]
# specs/1, section 4.7
Z = torch.tensor([[1, 0], [0.6, 0.8], [0, 1]])
VIRTUAL = torch.tensor([[0.8, 0.6], [0.28, 0.96], [-0.6, 0.8]])
SHORT: dict[str, Any] = {"batch_size": 16, "learning_rate": 1e-3, "held_out": 40, "max_length": 32, "logging_steps": 1}
OWN: dict[str, Any] = {
    "neighbours": 4,
    "head_learning_rate": 1e-3,
    "radius": 0.3,
}  # the paper's radius leads out of a tiny model's cloud


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    return lambda data=sentences, **settings: built("vascl", data, **{**OWN, **settings})


def vectors_of(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 32, generator=torch.Generator().manual_seed(seed))


def test_defaults_are_the_papers() -> None:
    settings: Any = VaSCL.Settings()
    assert (settings.temperature, settings.neighbours, settings.radius) == (0.05, 16, 15.0)
    assert (settings.projection, settings.head_learning_rate, settings.neighbourhood_gradient) == (128, 5e-4, "head")
    assert make_plan("vascl", ["a"]).loop.max_grad_norm is None  # the released code does not clip
    card = find("vascl").card
    assert (card.needs, card.year) == ("sentences", 2022)


def test_golden_value(build: Build, batched: Batched, monkeypatch: pytest.MonkeyPatch) -> None:
    method = build(neighbours=1, temperature=0.5)
    method.tower["head"].module = nn.Identity()  # type: ignore[union-attr]
    monkeypatch.setattr(method, "perturbation", lambda *_: VIRTUAL - Z)
    terms = method.loss({"first": Z, "second": Z.flip(1)}, torch.Generator())
    assert float(terms["neighbourhood"]) == pytest.approx(0.915421, abs=1e-6)
    assert float(terms["contrastive"]) == pytest.approx(float(nt_xent(Z, Z.flip(1), 0.5)), abs=1e-6)
    assert float(Combined(method).total(terms)) == pytest.approx(float(terms["neighbourhood"] + terms["contrastive"]))


def test_neighbours_are_found_before_the_head_and_compared_after_it(build: Build, batched: Batched) -> None:
    method = build(neighbours=2)
    first, second = vectors_of(8), vectors_of(8, 1)
    batch = batched(method, seed=3)
    head = method.tower["head"]
    before, after = nearest_rows(first, 2), nearest_rows(head(first), 2)
    assert not torch.equal(before, after)
    virtual = head(first + method.perturbation(first, before, batch.generator()))
    found = method.loss({"first": first, "second": second}, batch.generator())["neighbourhood"]
    assert float(found.detach()) == pytest.approx(
        float(contrast_with_neighbours(head(first), virtual, before).detach()), abs=1e-5
    )


@pytest.mark.parametrize("radius", [0.5, 15.0, 100.0])
def test_the_perturbation_has_the_length_of_the_radius_and_is_constant(
    build: Build, batched: Batched, radius: float
) -> None:
    method = build(radius=radius)
    vectors = vectors_of(8).requires_grad_()
    neighbours = nearest_rows(vectors, 4)
    found = method.perturbation(vectors, neighbours, batched(method).generator())
    assert torch.allclose(found.norm(dim=1), torch.full((8,), radius), rtol=1e-5)
    assert not found.requires_grad
    assert vectors.grad is None
    assert all(parameter.grad is None for parameter in method.parameters())
    same, other = (method.perturbation(vectors, neighbours, torch.Generator().manual_seed(seed)) for seed in (0, 1))
    assert torch.equal(found, same)
    assert not torch.equal(found, other)


def test_the_perturbation_is_the_gradient_at_a_random_direction_of_full_length(build: Build) -> None:
    """Against a loop over the sentences: the moved copy is the anchor, its own vector and the neighbours candidates."""
    method = build(radius=3.0, temperature=0.5)
    head, vectors = method.tower["head"], vectors_of(8)
    neighbours = nearest_rows(vectors, 4)
    found = method.perturbation(vectors, neighbours, torch.Generator().manual_seed(5))
    drawn = nn.functional.normalize(torch.randn(8, 32, generator=torch.Generator().manual_seed(5)), dim=-1)
    for row, near in enumerate(neighbours.tolist()):
        direction = drawn[row].clone().requires_grad_()
        moved = head(vectors[row] + 3.0 * direction)
        scores = torch.cosine_similarity(moved.unsqueeze(0), head(vectors[[row, *near]])) / 0.5
        (gradient,) = torch.autograd.grad(-scores.log_softmax(dim=0)[0], direction)
        assert torch.allclose(found[row], 3.0 * gradient / gradient.norm(), atol=1e-4)


def test_the_perturbed_copy_is_more_like_the_neighbours(build: Build) -> None:
    method = build(radius=0.5)
    head, vectors = method.tower["head"], vectors_of(8)
    neighbours = nearest_rows(vectors, 4)

    def confusion(step: Tensor) -> float:
        return float(virtual_contrast(head(vectors + step), head(vectors), neighbours).detach())

    found = confusion(method.perturbation(vectors, neighbours, torch.Generator().manual_seed(0)))
    drawn = [0.5 * nn.functional.normalize(vectors_of(8, seed), dim=-1) for seed in range(10)]
    assert found > confusion(torch.zeros(8, 32))
    assert found > max(confusion(step) for step in drawn)


def test_the_neighbourhood_reaches_the_encoder_or_the_head_alone(build: Build, batched: Batched) -> None:
    gradients = {}
    for mode in ("full", "head"):
        method = build(neighbourhood_gradient=mode)
        batch = batched(method)
        method.loss(method.represent(batch), batch.generator())["neighbourhood"].backward()
        assert method.tower["head"].module[0].weight.grad.abs().sum() > 0  # type: ignore[union-attr, index]
        gradients[mode] = [p.grad for p in method.encoder.parameters() if p.grad is not None]
    assert max(float(gradient.abs().max()) for gradient in gradients["full"]) > 1e-4
    assert gradients["head"] == []


def test_in_the_released_way_the_vector_itself_is_constant_too(build: Build, batched: Batched) -> None:
    method = build(neighbourhood_gradient="head")
    first, head = vectors_of(8), method.tower["head"]
    batch = batched(method)
    method.loss({"first": first, "second": first}, batch.generator())["neighbourhood"].backward()
    found = [parameter.grad.clone() for parameter in head.parameters() if parameter.grad is not None]
    neighbours = nearest_rows(first, 4)
    virtual = head(first + method.perturbation(first, neighbours, batch.generator()))
    expected = torch.autograd.grad(
        contrast_with_neighbours(head(first).detach(), virtual, neighbours), list(head.parameters())
    )
    assert all(torch.allclose(mine, naive, atol=1e-6) for mine, naive in zip(found, expected, strict=True))


def test_no_radius_no_neighbourhood(build: Build, batched: Batched) -> None:
    method = build(radius=0.0, neighbours=16)
    batch = batched(method)
    assert set(method.loss(method.represent(batch), batch.generator())) == {"contrastive"}


@pytest.mark.parametrize("optimiser", ["adamw", "sgd", "adagrad"])
@pytest.mark.parametrize("loop_rate", [5e-6, 1e-4])
def test_the_head_has_a_rate_of_its_own_which_the_schedule_scales(
    build: Build, loop_rate: float, optimiser: str
) -> None:
    method = build(head_learning_rate=5e-4)
    built = build_optimiser(Combined(method), LoopSettings(learning_rate=loop_rate, optimiser=optimiser))

    def rates(part: nn.Module) -> set[float]:
        found = {id(p): group["lr"] for group in built.param_groups for p in group["params"]}
        return {found[id(p)] for p in part.parameters()}

    assert (rates(method.tower["head"]), rates(method.encoder)) == ({5e-4}, {loop_rate})
    build_schedule(built, lambda step: 0.5)
    assert (rates(method.tower["head"]), rates(method.encoder)) == ({2.5e-4}, {loop_rate / 2})
    shapes = [tuple(parameter.shape) for parameter in method.tower["head"].parameters()]
    assert shapes == [(32, 32), (128, 32)]  # no biases


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_training_lowers_the_loss_and_drops_the_head(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {**SHORT, **OWN, "max_steps": 15, "eval_steps": 15}
    run = isotrope.train("vascl", sentences, tiny, tmp_path / "run", **settings)
    losses = [line["contrastive"] for line in run.history if "contrastive" in line]
    assert np.mean(losses[-3:]) < 0.8 * losses[0]
    assert {line["candidates"] for line in run.history if "candidates" in line} == {31}
    assert run.encoder.dimension == 32
    assert len(run.encoder.parts) == 0
    assert not any("head" in name for name, _ in run.encoder.named_parameters())
    again = isotrope.load(run.folder / "model", device="cpu")
    assert np.allclose(again.encode("the chef bakes"), run.encoder.encode("the chef bakes"), atol=1e-5)


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_a_radius_that_is_longer_than_the_vectors_is_said_once(
    tiny: Path, sentences: Path, tmp_path: Path, interrupted: Any
) -> None:
    settings = {**SHORT, **OWN, "max_steps": 4, "eval_steps": 2, "radius": 15.0}
    with (
        pytest.warns(TrainingWarning, match=r"radius 15 is longer than the vectors, whose mean length is \d") as said,
        interrupted(2),
        pytest.raises(KeyboardInterrupt),
    ):
        isotrope.train("vascl", sentences, tiny, tmp_path / "run", **settings)
    assert len(said) == 1
    with warnings.catch_warnings(record=True) as again:
        warnings.simplefilter("always")
        isotrope.train("vascl", sentences, tiny, tmp_path / "run", resume=True, **settings)
    assert not [one for one in again if "radius" in str(one.message)]


def test_a_radius_within_the_cloud_is_not_remarked(build: Build) -> None:
    vectors = {"first": 3 * nn.functional.normalize(vectors_of(8), dim=-1)}
    assert build(radius=2.9).remarks(vectors) == ()
    assert build(radius=0.0).remarks(vectors) == ()
    (sentence,) = build(radius=3.1).remarks(vectors)
    assert "mean length is 3.00" in sentence


@pytest.mark.parametrize("mode", ["full", "head"])
def test_chunks_give_the_gradient_of_the_whole_batch(mode: str, build: Build, chunks_equal_whole: Law) -> None:
    settings = {"backbone_dropout": 0.0, "temperature": 0.2, "neighbourhood_gradient": mode}
    chunks_equal_whole(build(**settings), build(**settings))


def test_order_does_not_matter_where_the_start_goes_along(
    build: Build, batched: Batched, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = build(backbone_dropout=0.0)
    forward, backward = batched(method), batched(method, list(range(7, -1, -1)))
    draws = iter([vectors_of(8), vectors_of(8).flip(0)])
    monkeypatch.setattr(torch, "randn", lambda *_, **__: next(draws))
    for term in zip(
        *(method.loss(method.represent(b), b.generator()).values() for b in (forward, backward)), strict=True
    ):
        assert float(term[0].detach()) == pytest.approx(float(term[1].detach()), abs=1e-4)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"neighbours": 0}, "neighbours must be at least 1"),
        ({"projection": 0}, "projection must be at least 1"),
        ({"radius": -1.0}, "radius"),
        ({"radius": float("inf")}, "radius"),
        ({"head_learning_rate": 0.0}, "head_learning_rate"),
        ({"neighbourhood_gradient": "none"}, "head, full"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check(VaSCL.Settings(**bad))


def test_as_many_neighbours_as_records_are_refused() -> None:
    VaSCLSettings(neighbours=15).check_batch(16)
    VaSCLSettings(neighbours=16, radius=0.0).check_batch(16)  # no neighbourhood, no neighbours
    with pytest.raises(InputError, match=r"fewer than the records of a batch; 16 and 16 were given\. Lower neighbours"):
        VaSCLSettings(neighbours=16).check_batch(16)
