"""The flow: exact inverse, log-determinant of autograd's Jacobian, the start by data, and that it learns a density."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.invertible_flow import COUPLINGS, PERMUTATIONS, ActNorm, Coupling, Flow
from isotrope.errors import InputError
from isotrope.objectives import bits_per_dimension
from isotrope.spaces.bert_flow import FlowSpace


def make(seed: int = 0, noise: float = 0.2, dtype: torch.dtype = torch.float64, **shape: object) -> Flow:
    """A flow of 8 dimensions, its parameters moved away from the identity."""
    torch.manual_seed(seed)
    flow = Flow(8, **{"levels": 2, "depth": 2, "width": 5, **shape}).to(dtype).eval()
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter += noise * torch.randn_like(parameter)
    return flow


def draw(rows: int = 6, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(rows, 8, generator=torch.Generator().manual_seed(7), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("permutation", PERMUTATIONS)
@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_inverse_is_exact(levels: int, permutation: str, coupling: str, noise: float) -> None:
    for dtype, close in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        flow = make(noise=noise, dtype=dtype, levels=levels, permutation=permutation, coupling=coupling)
        vectors = draw(dtype=dtype)
        torch.testing.assert_close(flow.inverse(flow(vectors)), vectors, rtol=0, atol=close * 10)
        torch.testing.assert_close(flow(flow.inverse(vectors)), vectors, rtol=0, atol=close * 10)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("permutation", PERMUTATIONS)
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_the_log_determinant_is_that_of_the_jacobian(levels: int, permutation: str, coupling: str) -> None:
    flow, vectors = make(levels=levels, permutation=permutation, coupling=coupling), draw(4)
    _, log_det = flow.latents(vectors)
    for row, found in zip(vectors, log_det, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda u: flow(u.unsqueeze(0)).squeeze(0), row)
        assert float(found.detach()) == pytest.approx(float(torch.linalg.slogdet(jacobian).logabsdet), abs=1e-10)
    assert abs(float(log_det[0].detach())) > 1e-3


def test_additive_coupling_changes_no_volume() -> None:
    """Only the normalisations do: Σ 3 s over the steps, whatever the vector."""
    flow = make(permutation="random")
    log_det = flow.latents(draw())[1].detach()
    steps = [step for level in flow.levels for step in level if isinstance(step, ActNorm)]
    assert torch.allclose(log_det, log_det[0].expand(6))
    assert float(log_det[0]) == pytest.approx(sum(3 * float(step.log_scale.detach().sum()) for step in steps))
    _, affine = make(coupling="affine").latents(draw())
    assert not torch.allclose(affine, affine[0].expand(6))


def test_a_coupling_starts_as_the_identity() -> None:
    vectors = draw(dtype=torch.float32)
    found, log_det = Coupling(8, 5, affine=False)(vectors)
    assert torch.equal(found, vectors)
    assert log_det.abs().max() == 0


def test_an_identity_flow_at_the_origin_costs_the_golden_bits() -> None:
    flow = Flow(8, permutation="reversal").eval()
    assert float(bits_per_dimension(*flow.latents(torch.zeros(2, 8))).detach()) == pytest.approx(1.325748, abs=1e-6)


def test_levels_leave_half_of_the_channels_behind() -> None:
    """With nothing but reversals the latents show which channels left at which level."""
    flow = Flow(8, levels=3, depth=1, permutation="reversal").eval()
    with torch.inference_mode():
        assert flow(torch.arange(8.0).unsqueeze(0)).tolist() == [[3, 2, 1, 0, 6, 7, 5, 4]]


def test_the_first_batch_sets_the_normalization_once() -> None:
    norm = ActNorm(3)
    batch = torch.randn(50, 3) * torch.tensor([2.0, 0.1, 0.0]) + torch.tensor([5.0, -1.0, 4.0])
    assert torch.equal(norm.eval()(batch)[0], batch)  # not outside of training
    found = norm.train()(batch)[0]
    assert torch.allclose(found.mean(dim=0), torch.zeros(3), atol=1e-4)
    assert torch.allclose(found[:, :2].pow(2).mean(dim=0), torch.ones(2), atol=1e-3)
    assert torch.isfinite(found).all()  # the third channel does not vary
    before = norm.log_scale.clone()
    norm(10 * batch)
    assert torch.equal(norm.log_scale, before)
    again = ActNorm(3).train()
    again.load_state_dict(norm.state_dict())
    again(10 * batch)
    assert torch.equal(again.log_scale, before)  # that it has begun is part of the checkpoint


def entropy_bits(covariance: np.ndarray) -> float:
    width = len(covariance)
    return float((0.5 * np.linalg.slogdet(2 * math.pi * math.e * covariance)[1]) / (width * math.log(2)))


@pytest.mark.parametrize(("coupling", "permutation"), [("additive", "random"), ("affine", "linear")])
def test_fitting_lowers_the_bits_towards_the_entropy(coupling: str, permutation: str) -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(4000, 4)) @ (np.eye(4) + np.triu(rng.normal(size=(4, 4)), 1)) + 3
    settings = {
        "width": 16,
        "batch_size": 128,
        "learning_rate": 3e-3,
        "coupling": coupling,
        "permutation": permutation,
        "levels": 1,
    }
    tensor = torch.from_numpy(data).float()

    def bits(steps: int) -> float:
        flow = FlowSpace(FlowSpace.Settings(**settings, max_steps=steps)).fitted(data)
        with torch.inference_mode():
            return float(bits_per_dimension(*flow.latents(tensor)))

    start, end, best = bits(0), bits(400), entropy_bits(np.cov(data, rowvar=False))
    assert start > best + 0.2
    assert best - 0.02 < end < best + 0.35 * (start - best)


def test_an_epoch_has_every_text_once_in_a_new_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that is sorted, or a corpus of documents, would teach the flow one subject after the other."""
    seen, plain = [], Flow.latents

    def watched(self: Flow, vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append(vectors[:, 0].round().long().tolist())
        return plain(self, vectors)

    monkeypatch.setattr(Flow, "latents", watched)
    data = np.random.default_rng(0).normal(size=(64, 4))
    data[:, 0] = np.arange(64)
    FlowSpace(FlowSpace.Settings(batch_size=16, epochs=2, levels=1)).fitted(data)
    setting, *batches = seen
    assert sorted(setting) == list(range(64))  # what sets the normalisations
    epochs = [[row for batch in batches[start : start + 4] for row in batch] for start in (0, 4)]
    assert len(batches) == 8
    for order in epochs:
        assert sorted(order) == list(range(64))
        assert order != sorted(order)
    assert epochs[0] != epochs[1]


def test_the_defaults_are_the_papers() -> None:
    chosen = FlowSpace.Settings()
    assert (chosen.levels, chosen.depth, chosen.width) == (2, 3, 32)
    assert (chosen.permutation, chosen.coupling) == ("random", "additive")
    assert (chosen.learning_rate, chosen.epochs, chosen.batch_size, chosen.max_grad_norm) == (1e-3, 1.0, 32, 1.0)


def test_fitting_an_encoder(encoder: Encoder, texts: list[str]) -> None:
    """The encoder stays as it is, to its modes; the same seed gives the same flow, another seed another; latents have
    unit scale.
    """
    encoder.train()
    before = encoder.fingerprint()
    fitted = [isotrope.fit_space("flow", encoder, texts, seed=seed, max_steps=30) for seed in (1, 1, 2)]
    assert encoder.fingerprint() == before
    assert encoder.training
    assert not encoder.parts
    assert not fitted[0].training
    vectors = [each.encode(texts) for each in fitted]
    assert np.array_equal(vectors[0], vectors[1])
    assert not np.allclose(vectors[0], vectors[2])
    assert 0.7 < vectors[0].std(axis=0).mean() < 1.2
    flow = fitted[0].parts[-1]
    assert flow.inverse(torch.from_numpy(vectors[0])).detach().numpy() == pytest.approx(encoder.encode(texts), abs=1e-4)
    weights = fitted[0].backbone.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in encoder.backbone.state_dict().items())


def test_the_chance_of_the_caller_is_left_alone(encoder: Encoder, texts: list[str]) -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    isotrope.fit_space("flow", encoder, texts, max_steps=2)
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"levels": 6}, "not a multiple of 64"),
        ({"coupling": "cubic"}, "coupling is one of additive, affine"),
        ({"permutation": "none"}, "permutation is one of"),
        ({"depth": 0}, "depth must be at least 1"),
        ({"learning_rate": 0}, "learning_rate must be above 0"),
        ({"batch_size": 400}, "do not fill two batches of 400"),
        ({"learning_rate": 1e6, "max_steps": 50}, "lower learning_rate"),
    ],
)
def test_settings_that_cannot_work(
    encoder: Encoder, texts: list[str], settings: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        isotrope.fit_space("flow", encoder, texts, **settings)
