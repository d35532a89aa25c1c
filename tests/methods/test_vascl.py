"""VaSCL: who is a neighbour, where the virtual copy lies, what the gradient reaches, what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import isotrope
from isotrope.data.corpus import Records, open_corpus
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.methods.frame.method import Batch
from isotrope.methods.frame.method_registry import find
from isotrope.methods.vascl import VaSCL
from isotrope.objectives import contrast_with_neighbours, nearest_rows, nt_xent, virtual_contrast
from isotrope.training.loop import make_accelerator
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import build_optimiser
from isotrope.training.step import compute_gradient

# specs/1, section 4.7
Z = torch.tensor([[1, 0], [0.6, 0.8], [0, 1]])
VIRTUAL = torch.tensor([[0.8, 0.6], [0.28, 0.96], [-0.6, 0.8]])
SHORT: dict[str, Any] = {"batch_size": 16, "learning_rate": 1e-3, "held_out": 40, "max_length": 32, "logging_steps": 1}
OWN: dict[str, Any] = {
    "neighbours": 4,
    "head_rate": 1.0,
    "radius": 0.3,
}  # the paper's radius leads out of a tiny model's cloud


def build(folder: Path, dropout: float | None = None, **settings: Any) -> VaSCL:
    chosen = VaSCL.Settings(**{**OWN, **settings})
    VaSCL.check(chosen)
    torch.manual_seed(0)
    method = VaSCL(chosen, isotrope.load(folder, pooling="mean", device="cpu"), 64).train()
    if dropout is not None:
        set_dropout(method.encoder.backbone, dropout)
    return method


def batch_of(method: VaSCL, source: Path, rows: list[int] | None = None, seed: int = 0) -> Batch:
    rows = rows or list(range(8))
    tokenizer = method.encoder.text_tokenizer
    corpus = open_corpus(source, ("sentences",), tokenizer)
    return Batch(method.views(Records(corpus, rows), np.random.default_rng(0)), len(rows), seed)


def vectors_of(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 32, generator=torch.Generator().manual_seed(seed))


def test_defaults_are_the_papers() -> None:
    settings: Any = VaSCL.Settings()
    assert (settings.temperature, settings.neighbours, settings.radius) == (0.05, 16, 15.0)
    assert (settings.projection, settings.head_rate, settings.neighbourhood_gradient) == (128, 100.0, "full")
    card = find("vascl").card()
    assert (card.needs, card.year) == ("sentences", 2022)


def test_golden_value(tiny: Path, sentences: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = build(tiny, neighbours=1, temperature=0.5)
    method.role["head"].module = nn.Identity()  # type: ignore[union-attr]
    monkeypatch.setattr(method, "perturbation", lambda *_: VIRTUAL - Z)
    terms = method.loss({"first": Z, "second": Z.flip(1)}, batch_of(method, sentences))
    assert float(terms["neighbourhood"]) == pytest.approx(0.915421, abs=1e-6)
    assert float(terms["contrastive"]) == pytest.approx(float(nt_xent(Z, Z.flip(1), 0.5)), abs=1e-6)
    assert float(method.total(terms)) == pytest.approx(float(terms["neighbourhood"] + terms["contrastive"]))


def test_neighbours_are_found_before_the_head_and_compared_after_it(tiny: Path, sentences: Path) -> None:
    method = build(tiny, neighbours=2)
    first, second = vectors_of(8), vectors_of(8, 1)
    batch = batch_of(method, sentences, seed=3)
    head = method.role["head"]
    before, after = nearest_rows(first, 2), nearest_rows(head(first), 2)
    assert not torch.equal(before, after)
    virtual = head(first + method.perturbation(first, before, batch.generator))
    found = method.loss({"first": first, "second": second}, batch)["neighbourhood"]
    assert float(found.detach()) == pytest.approx(
        float(contrast_with_neighbours(head(first), virtual, before).detach()), abs=1e-5
    )


@pytest.mark.parametrize("radius", [0.5, 15.0, 100.0])
def test_the_perturbation_has_the_length_of_the_radius_and_is_constant(
    tiny: Path, sentences: Path, radius: float
) -> None:
    method = build(tiny, radius=radius)
    vectors = vectors_of(8).requires_grad_()
    neighbours = nearest_rows(vectors, 4)
    found = method.perturbation(vectors, neighbours, batch_of(method, sentences).generator)
    assert torch.allclose(found.norm(dim=1), torch.full((8,), radius), rtol=1e-5)
    assert not found.requires_grad
    assert vectors.grad is None
    assert all(parameter.grad is None for parameter in method.parameters())
    same, other = (method.perturbation(vectors, neighbours, torch.Generator().manual_seed(seed)) for seed in (0, 1))
    assert torch.equal(found, same)
    assert not torch.equal(found, other)


def test_the_perturbed_copy_is_more_like_the_neighbours(tiny: Path) -> None:
    method = build(tiny, radius=0.5)
    head, vectors = method.role["head"], vectors_of(8)
    neighbours = nearest_rows(vectors, 4)

    def confusion(step: Tensor) -> float:
        return float(virtual_contrast(head(vectors + step), head(vectors), neighbours).detach())

    found = confusion(method.perturbation(vectors, neighbours, torch.Generator().manual_seed(0)))
    drawn = [0.5 * nn.functional.normalize(vectors_of(8, seed), dim=-1) for seed in range(10)]
    assert found > confusion(torch.zeros(8, 32))
    assert found > max(confusion(step) for step in drawn)


def test_the_neighbourhood_reaches_the_encoder_or_the_head_alone(tiny: Path, sentences: Path) -> None:
    gradients = {}
    for mode in ("full", "head"):
        method = build(tiny, neighbourhood_gradient=mode)
        batch = batch_of(method, sentences)
        method.loss(method.represent(batch), batch)["neighbourhood"].backward()
        assert method.role["head"].module[0].weight.grad.abs().sum() > 0  # type: ignore[union-attr, index]
        gradients[mode] = [p.grad for p in method.encoder.parameters() if p.grad is not None]
    assert max(float(gradient.abs().max()) for gradient in gradients["full"]) > 1e-4
    assert gradients["head"] == []


def test_in_the_released_way_the_vector_itself_is_constant_too(tiny: Path, sentences: Path) -> None:
    method = build(tiny, neighbourhood_gradient="head")
    first, head = vectors_of(8), method.role["head"]
    batch = batch_of(method, sentences)
    method.loss({"first": first, "second": first}, batch)["neighbourhood"].backward()
    found = [parameter.grad.clone() for parameter in head.parameters() if parameter.grad is not None]
    neighbours = nearest_rows(first, 4)
    virtual = head(first + method.perturbation(first, neighbours, batch.generator))
    expected = torch.autograd.grad(
        contrast_with_neighbours(head(first).detach(), virtual, neighbours), list(head.parameters())
    )
    assert all(torch.allclose(mine, naive, atol=1e-6) for mine, naive in zip(found, expected, strict=True))


def test_no_radius_no_neighbourhood(tiny: Path, sentences: Path) -> None:
    method = build(tiny, radius=0.0, neighbours=16)
    batch = batch_of(method, sentences)
    assert set(method.loss(method.represent(batch), batch)) == {"contrastive"}


def test_the_head_learns_faster_by_the_given_multiple(tiny: Path) -> None:
    method = build(tiny, head_rate=100.0)
    groups = build_optimiser(method, LoopSettings(learning_rate=1e-5)).param_groups
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert {rates[id(p)] for p in method.role["head"].parameters()} == {1e-3}
    assert {rates[id(p)] for p in method.encoder.parameters()} == {1e-5}
    shapes = [tuple(parameter.shape) for parameter in method.role["head"].parameters()]
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
def test_resume_equals_uninterrupted(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = {**SHORT, **OWN, "model": tiny, "max_steps": 6, "eval_steps": 3}
    monkeypatch.setattr(VaSCL, "keeps", "last")
    whole = isotrope.train("vascl", sentences, output=tmp_path / "whole", **common)
    steps = iter(range(10))

    def stop(self: VaSCL, _: Any) -> None:
        if next(steps) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(VaSCL, "after_step", stop)
        with pytest.raises(KeyboardInterrupt):
            isotrope.train("vascl", sentences, output=tmp_path / "cut", **common)
    resumed = isotrope.train("vascl", sentences, output=tmp_path / "cut", resume=True, **common)
    pairs = zip(whole.encoder.parameters(), resumed.encoder.parameters(), strict=True)
    assert all(torch.equal(first, second) for first, second in pairs)


@pytest.mark.parametrize("mode", ["full", "head"])
def test_chunks_give_the_gradient_of_the_whole_batch(mode: str, tiny: Path, sentences: Path) -> None:
    accelerator = make_accelerator(LoopSettings())
    found = []
    for chunk in (None, 3):
        method = build(tiny, dropout=0.0, temperature=0.2, neighbourhood_gradient=mode)
        compute_gradient(method, batch_of(method, sentences), accelerator, (1, 2, 0), chunk)
        found.append({key: p.grad for key, p in method.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    assert max(float(gradient.abs().max()) for gradient in found[0].values()) > 1e-2
    for key, gradient in found[0].items():
        assert torch.allclose(gradient, found[1][key], atol=1e-5), key


def test_order_does_not_matter_where_the_start_goes_along(
    tiny: Path, sentences: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = build(tiny, dropout=0.0)
    forward, backward = batch_of(method, sentences), batch_of(method, sentences, list(range(7, -1, -1)))
    draws = iter([vectors_of(8), vectors_of(8).flip(0)])
    monkeypatch.setattr(torch, "randn", lambda *_, **__: next(draws))
    for term in zip(*(method.loss(method.represent(b), b).values() for b in (forward, backward)), strict=True):
        assert float(term[0].detach()) == pytest.approx(float(term[1].detach()), abs=1e-4)


def test_padding_does_not_matter(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    method = build(tiny, dropout=0.0)
    mixed = tmp_path / "mixed.txt"
    mixed.write_text("the chef bakes\n" + sentences.read_text().splitlines()[0] + " and once more with salt and soup\n")
    alone, beside = (method.represent(batch_of(method, mixed, rows)) for rows in ([0], [0, 1]))
    assert torch.allclose(alone["first"][0], beside["first"][0], atol=1e-5)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"neighbours": 0}, "neighbours must be at least 1"),
        ({"projection": 0}, "projection must be at least 1"),
        ({"radius": -1.0}, "radius"),
        ({"radius": float("inf")}, "radius"),
        ({"head_rate": 0.0}, "head_rate"),
        ({"neighbourhood_gradient": "none"}, "full, head"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        VaSCL.check(VaSCL.Settings(**bad))


def test_as_many_neighbours_as_records_are_refused() -> None:
    VaSCL.check_batch(VaSCL.Settings(neighbours=15), 16)
    VaSCL.check_batch(VaSCL.Settings(neighbours=16, radius=0.0), 16)  # no neighbourhood, no neighbours
    with pytest.raises(
        InputError, match=r"fewer than the records of a batch; 16 and 16 were given\. Lower --neighbours"
    ):
        VaSCL.check_batch(VaSCL.Settings(neighbours=16), 16)
