"""DCLR: which negatives count, where the noise goes, what stays frozen, what is kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

import isotrope
from isotrope.data.corpus import Records
from isotrope.encoders.fresh import fresh_encoder
from isotrope.errors import InputError
from isotrope.methods.dclr import DCLR
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method_registry import find
from isotrope.methods.frame.settings import check
from isotrope.objectives import info_nce

Build = Callable[..., Any]
Batched = Callable[..., Batch]
Law = Callable[..., Any]
# specs/1, sections 1.9 and 3.8: cosines of anchors with positives and with one noise vector, and those of the
# complement.
C = torch.tensor([[0.9, 0.2, 0.1], [0.3, 0.8, 0.0], [-0.1, 0.4, 0.7]])
NOISE = torch.tensor([[0.1], [0.0], [-0.2]])
OTHER = torch.tensor([[1, 0.95, 0.1], [0.95, 1, 0.2], [0.1, 0.2, 1]])
SHORT: dict[str, Any] = {
    "batch_size": 16,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 32,
    "logging_steps": 1,
    "pooling": "mean",
}


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    """Without a complement there is no threshold either."""

    def make(complement: Path | None = None, data: Any = sentences, **settings: Any) -> Any:
        given = {"complement": str(complement)} if complement else {"threshold": None}
        return built("dclr", data, **{**given, **settings})

    return make


def with_cosines(cosines: Tensor) -> Tensor:
    """Unit vectors [columns, 4] whose cosines with the first three axes are the columns."""
    return torch.cat([cosines, (1 - cosines.pow(2).sum(dim=0, keepdim=True)).sqrt()]).T


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """A complement of another width and another vocabulary."""
    folder = tmp_path_factory.mktemp("complement") / "foreign"
    mirrored = [text[::-1] for text in topics]  # the same letters, other pieces
    fresh_encoder(mirrored, vocabulary=200, layers=1, width=48, heads=2, max_length=64, seed=7).save(folder)
    return folder


def density(noise: Tensor, anchors: Tensor, temperature: float) -> Tensor:
    scores = normalize(anchors, dim=-1) @ normalize(noise, dim=-1).T / temperature
    return torch.logsumexp(scores, dim=1).sum()


def test_defaults_are_the_papers() -> None:
    settings: Any = DCLR.Settings()
    assert (settings.temperature, settings.threshold, settings.noise, settings.noise_spread) == (0.05, 0.9, 1.0, 1.0)
    assert (settings.ascent_steps, settings.ascent_rate, settings.complement) == (4, 1e-3, "auto")
    assert settings.positive_in_denominator  # as released; the printed formula is without it
    card = find("dclr").card
    assert (card.needs, card.year) == ("sentences", 2022)


@pytest.mark.parametrize("temperature", [0.5, 0.25])
def test_golden_value_and_the_mask_does_not_hang_on_the_temperature(
    build: Build, batched: Batched, tiny: Path, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    method = build(tiny, temperature=temperature, ascent_steps=0)
    monkeypatch.setattr(method, "draw", lambda *_: with_cosines(NOISE))
    given = {"first": torch.eye(3, 4), "second": with_cosines(C), "complement": torch.linalg.cholesky(OTHER)}
    assert method.instance_weights(given).tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    terms = method.loss(given, torch.Generator())
    assert float(terms["masked"]) == pytest.approx(1 / 3)
    assert float(Combined(method).total(terms)) == float(terms["contrastive"])  # the share is shown, not minimised
    if temperature == 0.5:
        assert float(terms["contrastive"]) == pytest.approx(0.442866, abs=1e-6)


def test_golden_value_of_the_printed_formula(build: Build, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = build(tiny, temperature=0.5, ascent_steps=0, positive_in_denominator=False)
    monkeypatch.setattr(method, "draw", lambda *_: with_cosines(NOISE))
    given = {"first": torch.eye(3, 4), "second": with_cosines(C), "complement": torch.linalg.cholesky(OTHER)}
    assert float(method.loss(given, torch.Generator())["contrastive"]) == pytest.approx(-0.633812, abs=1e-6)


def test_as_similar_as_the_threshold_is_too_similar(build: Build, tiny: Path) -> None:
    method = build(tiny, threshold=1.0)
    given = {"first": torch.zeros(3, 2), "complement": torch.tensor([[1.0, 0], [2.0, 0], [0, 1.0]])}
    assert method.instance_weights(given)[0].tolist() == [0, 0, 1]


def test_without_noise_and_threshold_it_is_simcse_and_asks_for_no_complement(build: Build, batched: Batched) -> None:
    method = build(noise=0.0)  # the default complement would be of another width
    assert "complement" not in method.tower
    batch = batched(method)
    found = method.represent(batch)
    assert set(found) == {"first", "second"}
    terms = method.loss(found, batch.generator())
    assert float(terms["masked"]) == 0.0
    assert float(terms["contrastive"].detach()) == pytest.approx(
        float(info_nce(found["first"], found["second"]).detach()), abs=1e-6
    )
    assert method.candidates(found) == 8


@pytest.mark.parametrize(("noise", "expected"), [(0.0, 0), (0.35, 2), (1.0, 8), (2.5, 20)])
def test_noise_is_counted_by_records_and_cut_to_a_whole_number(
    build: Build, batched: Batched, noise: float, expected: int
) -> None:
    method = build(noise=noise, noise_spread=3.0)
    anchors = torch.zeros(8, 32)
    drawn = method.draw(anchors, torch.Generator().manual_seed(1))
    assert drawn.shape == (expected, 32)
    assert method.candidates({"second": anchors}) == 8 + expected
    assert torch.equal(drawn, method.draw(anchors, torch.Generator().manual_seed(1)))
    if expected:
        assert not torch.equal(drawn, method.draw(anchors, torch.Generator().manual_seed(2)))
    if expected == 20:
        assert float(drawn.std()) == pytest.approx(3.0, rel=0.1)


def test_each_step_has_the_given_length_and_climbs(build: Build) -> None:
    anchors = torch.randn(8, 32, generator=torch.Generator().manual_seed(0)).requires_grad_()
    noise = torch.randn(12, 32, generator=torch.Generator().manual_seed(1))
    heights, path = [], []
    for steps in range(5):
        method = build(ascent_steps=steps, ascent_rate=0.01)
        path.append(method.climb(noise, anchors))
        heights.append(float(density(path[-1], anchors, 0.05).detach()))
    assert torch.equal(path[0], noise)
    for before, after in itertools.pairwise(path):
        assert torch.allclose((after - before).norm(dim=1), torch.full((12,), 0.01), atol=1e-5)
    assert heights == sorted(heights)
    assert heights[-1] > heights[0]
    assert not path[-1].requires_grad
    assert anchors.grad is None


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_a_step_follows_the_gradient_of_the_density_at_the_temperature(build: Build, temperature: float) -> None:
    anchors = torch.randn(8, 32, generator=torch.Generator().manual_seed(0))
    noise = torch.randn(12, 32, generator=torch.Generator().manual_seed(1)).requires_grad_()
    (gradient,) = torch.autograd.grad(density(noise, anchors, temperature), noise)
    method = build(ascent_steps=1, ascent_rate=0.1, temperature=temperature)
    assert torch.allclose(method.climb(noise.detach(), anchors), noise + 0.1 * normalize(gradient, dim=1), atol=1e-6)


def test_the_complement_reads_its_own_tokens_and_never_drops_out(
    build: Build, batched: Batched, tiny: Path, foreign: Path
) -> None:
    method = build(foreign)
    batch = batched(method)
    first, again = method.represent(batch), method.represent(batch)
    assert torch.equal(first["complement"], again["complement"])
    assert not torch.equal(first["first"], again["first"])
    assert not first["complement"].requires_grad
    expected = isotrope.load(foreign, device="cpu").encode(Records(method.corpus, list(range(8))).texts())
    assert np.allclose(first["complement"], expected, atol=1e-5)
    own = build(tiny, complement_pooling="cls")
    expected = isotrope.load(tiny, pooling="cls", device="cpu").encode(Records(own.corpus, list(range(8))).texts())
    assert np.allclose(own.represent(batched(own))["complement"], expected, atol=1e-5)


def test_a_complement_that_reads_less_cuts_the_texts_itself(
    build: Build, batched: Batched, tiny: Path, tmp_path: Path
) -> None:
    """The same tokens, of which it knows the first ten alone: its vectors are those that its ``encode`` gives."""
    short = isotrope.load(tiny, device="cpu")
    short.max_length = 10
    short.save(tmp_path / "short")
    method = build(tmp_path / "short")
    found = method.represent(batched(method))["complement"]
    with pytest.warns(UserWarning, match="longer than the model reads"):
        expected = short.encode(Records(method.corpus, list(range(8))).texts())
    assert np.allclose(found, expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_training_lowers_the_loss_leaves_the_complement_and_drops_what_is_its_own(
    tiny: Path, foreign: Path, sentences: Path, tmp_path: Path, updated_methods: list[Any]
) -> None:
    settings = {
        **SHORT,
        "max_steps": 15,
        "eval_steps": 15,
        "threshold": 0.999,
        "complement": str(foreign),
        "head": "train-only",
    }
    run = isotrope.train("dclr", sentences, tiny, tmp_path / "run", **settings)
    losses = [line["contrastive"] for line in run.history if "contrastive" in line]
    assert np.mean(losses[-3:]) < 0.8 * losses[0]
    assert {line["candidates"] for line in run.history if "candidates" in line} == {32}
    method = updated_methods[-1]
    assert method.complement.fingerprint() == isotrope.load(foreign).fingerprint()
    assert not method.complement.training
    assert "head" in method.tower
    assert len(run.encoder.parts) == 0
    assert run.encoder.dimension == 32
    assert not any("complement" in name for name, _ in run.encoder.named_parameters())


def test_chunks_give_the_gradient_of_the_whole_batch(build: Build, foreign: Path, chunks_equal_whole: Law) -> None:
    # Large steps, so that the noise depends on the anchors.
    settings = {"dropout": 0.0, "temperature": 0.2, "threshold": 0.9999, "ascent_rate": 1.0}
    cut, whole = (build(foreign, pooling="cls", **settings) for _ in range(2))
    chunks_equal_whole(cut, whole)
    assert all(parameter.grad is None for parameter in whole.complement.parameters())


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"threshold": 1.5}, "threshold must lie between -1 and 1|threshold must be a finite number"),
        ({"threshold": -1.0}, "threshold must lie between -1 and 1|threshold must be a finite number"),
        ({"threshold": float("nan")}, "threshold must lie between -1 and 1|threshold must be a finite number"),
        ({"noise": -1.0}, "^noise must"),
        ({"noise": float("inf")}, "^noise must"),
        ({"noise_spread": 0.0}, "noise_spread"),
        ({"ascent_steps": -1}, "ascent_steps"),
        ({"ascent_rate": float("nan")}, "ascent_rate"),
        ({"head": "tail"}, "head"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check(DCLR.Settings(**bad))


def test_a_complement_that_is_not_there_is_refused(build: Build) -> None:
    with pytest.raises(InputError, match="no such model folder"):
        build(Path("/nowhere/at/all"))
