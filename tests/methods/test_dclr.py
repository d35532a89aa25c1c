"""DCLR: which negatives count, where the noise goes, what stays frozen, what is kept."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

import isotrope
from isotrope.data.corpus import Records, open_corpus
from isotrope.encoders.fresh import fresh_encoder
from isotrope.errors import InputError
from isotrope.methods.dclr import DCLR
from isotrope.methods.frame.method import Batch
from isotrope.methods.frame.method_registry import find
from isotrope.objectives import info_nce
from isotrope.training.loop import make_accelerator
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.step import compute_gradient

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


def build(folder: Path, complement: Path | None = None, pooling: str = "mean", **settings: Any) -> DCLR:
    given = {"complement": str(complement), **settings} if complement else {"threshold": None, **settings}
    chosen = DCLR.Settings(**given)
    DCLR.check(chosen)
    torch.manual_seed(0)
    return DCLR(chosen, isotrope.load(folder, pooling=pooling, device="cpu"), 64).train()


def records_of(method: DCLR, source: Path, rows: list[int] | None = None) -> Records:
    tokenizer = method.encoder.text_tokenizer
    corpus = open_corpus(source, ("sentences",), tokenizer)
    return Records(corpus, rows or list(range(8)))


def batch_of(method: DCLR, source: Path, rows: list[int] | None = None, seed: int = 0) -> Batch:
    records = records_of(method, source, rows)
    return Batch(method.views(records, np.random.default_rng(0)), len(records), seed)


def density(noise: Tensor, anchors: Tensor, temperature: float) -> Tensor:
    scores = normalize(anchors, dim=-1) @ normalize(noise, dim=-1).T / temperature
    return torch.logsumexp(scores, dim=1).sum()


def test_defaults_are_the_papers() -> None:
    settings: Any = DCLR.Settings()
    assert (settings.temperature, settings.threshold, settings.noise, settings.noise_spread) == (0.05, 0.9, 1.0, 1.0)
    assert (settings.ascent_steps, settings.ascent_rate, settings.complement) == (4, 1e-3, "builtin")
    card = find("dclr").card()
    assert (card.needs, card.year) == ("sentences", 2022)


@pytest.mark.parametrize("temperature", [0.5, 0.25])
def test_golden_value_and_the_mask_does_not_hang_on_the_temperature(
    tiny: Path, sentences: Path, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    method = build(tiny, tiny, temperature=temperature, ascent_steps=0)
    monkeypatch.setattr(method, "draw", lambda *_: with_cosines(NOISE))
    given = {"first": torch.eye(3, 4), "second": with_cosines(C), "complement": torch.linalg.cholesky(OTHER)}
    assert method.instance_weights(given).tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    terms = method.loss(given, batch_of(method, sentences))
    assert float(terms["masked"]) == pytest.approx(1 / 3)
    assert float(method.total(terms)) == float(terms["contrastive"])  # the share is shown, not minimised
    if temperature == 0.5:
        assert float(terms["contrastive"]) == pytest.approx(0.442866, abs=1e-6)


def test_as_similar_as_the_threshold_is_too_similar(tiny: Path) -> None:
    method = build(tiny, tiny, threshold=1.0)
    given = {"first": torch.zeros(3, 2), "complement": torch.tensor([[1.0, 0], [2.0, 0], [0, 1.0]])}
    assert method.instance_weights(given)[0].tolist() == [0, 0, 1]


def test_without_noise_and_threshold_it_is_simcse_and_asks_for_no_complement(tiny: Path, sentences: Path) -> None:
    method = build(tiny, noise=0.0)  # the default complement would be of another width
    assert "complement" not in method.role
    batch = batch_of(method, sentences)
    found = method.represent(batch)
    assert set(found) == {"first", "second"}
    terms = method.loss(found, batch)
    assert float(terms["masked"]) == 0.0
    assert float(terms["contrastive"].detach()) == pytest.approx(
        float(info_nce(found["first"], found["second"]).detach()), abs=1e-6
    )
    assert method.candidates(found) == 8


@pytest.mark.parametrize(("noise", "expected"), [(0.0, 0), (0.3, 2), (1.0, 8), (2.5, 20)])
def test_noise_is_counted_by_records_and_cut_to_a_whole_number(
    tiny: Path, sentences: Path, noise: float, expected: int
) -> None:
    method = build(tiny, noise=noise, noise_spread=3.0)
    anchors = torch.zeros(8, 32)
    drawn = method.draw(anchors, batch_of(method, sentences, seed=1))
    assert drawn.shape == (expected, 32)
    assert method.candidates({"second": anchors}) == 8 + expected
    assert torch.equal(drawn, method.draw(anchors, batch_of(method, sentences, seed=1)))
    if expected:
        assert not torch.equal(drawn, method.draw(anchors, batch_of(method, sentences, seed=2)))
    if expected == 20:
        assert float(drawn.std()) == pytest.approx(3.0, rel=0.1)


def test_each_step_has_the_given_length_and_climbs(tiny: Path) -> None:
    anchors = torch.randn(8, 32, generator=torch.Generator().manual_seed(0)).requires_grad_()
    noise = torch.randn(12, 32, generator=torch.Generator().manual_seed(1))
    heights, path = [], []
    for steps in range(5):
        method = build(tiny, ascent_steps=steps, ascent_rate=0.01)
        path.append(method.climb(noise, anchors))
        heights.append(float(density(path[-1], anchors, 0.05).detach()))
    assert torch.equal(path[0], noise)
    for before, after in itertools.pairwise(path):
        assert torch.allclose((after - before).norm(dim=1), torch.full((12,), 0.01), atol=1e-5)
    assert heights == sorted(heights)
    assert heights[-1] > heights[0]
    assert not path[-1].requires_grad
    assert anchors.grad is None


def test_the_complement_reads_its_own_tokens_and_never_drops_out(tiny: Path, foreign: Path, sentences: Path) -> None:
    method = build(tiny, foreign)
    batch = batch_of(method, sentences)
    first, again = method.represent(batch), method.represent(batch)
    assert torch.equal(first["complement"], again["complement"])
    assert not torch.equal(first["first"], again["first"])
    assert not first["complement"].requires_grad
    expected = isotrope.load(foreign, device="cpu").encode(records_of(method, sentences).texts())
    assert np.allclose(first["complement"], expected, atol=1e-5)
    own = build(tiny, tiny, complement_pooling="cls")
    expected = isotrope.load(tiny, pooling="cls", device="cpu").encode(records_of(own, sentences).texts())
    assert np.allclose(own.represent(batch_of(own, sentences))["complement"], expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_training_lowers_the_loss_leaves_the_complement_and_drops_what_is_its_own(
    tiny: Path, foreign: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[DCLR] = []
    monkeypatch.setattr(DCLR, "after_step", lambda self, _: kept.append(self))
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
    assert kept[-1].complement.fingerprint() == isotrope.load(foreign).fingerprint()
    assert not kept[-1].complement.training
    assert "head" in kept[-1].role
    assert len(run.encoder.parts) == 0
    assert run.encoder.dimension == 32
    assert not any("complement" in name for name, _ in run.encoder.named_parameters())


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_resume_equals_uninterrupted(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = {**SHORT, "model": tiny, "max_steps": 6, "eval_steps": 3, "complement": str(tiny), "threshold": 0.99}
    monkeypatch.setattr(DCLR, "keeps", "last")
    whole = isotrope.train("dclr", sentences, output=tmp_path / "whole", **common)
    steps = iter(range(10))

    def stop(self: DCLR, _: Any) -> None:
        if next(steps) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DCLR, "after_step", stop)
        with pytest.raises(KeyboardInterrupt):
            isotrope.train("dclr", sentences, output=tmp_path / "cut", **common)
    resumed = isotrope.train("dclr", sentences, output=tmp_path / "cut", resume=True, **common)
    pairs = zip(whole.encoder.parameters(), resumed.encoder.parameters(), strict=True)
    assert all(torch.equal(first, second) for first, second in pairs)


def test_chunks_give_the_gradient_of_the_whole_batch(tiny: Path, foreign: Path, sentences: Path) -> None:
    accelerator = make_accelerator(LoopSettings())
    found = []
    for chunk in (None, 3):
        # Large steps, so that the noise depends on the anchors.
        method = build(tiny, foreign, "cls", dropout=0.0, temperature=0.2, threshold=0.9999, ascent_rate=1.0)
        compute_gradient(method, batch_of(method, sentences), accelerator, (1, 2, 0), chunk)
        found.append({key: p.grad for key, p in method.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    assert not any("complement" in key for key in found[0])
    assert max(float(gradient.abs().max()) for gradient in found[0].values()) > 1e-2
    for key, gradient in found[0].items():
        assert torch.allclose(gradient, found[1][key], atol=1e-5), key


def test_neither_order_nor_padding_matters(tiny: Path, foreign: Path, sentences: Path, tmp_path: Path) -> None:
    method = build(tiny, foreign, dropout=0.0, threshold=0.9999, ascent_rate=1.0)
    forward, backward = batch_of(method, sentences), batch_of(method, sentences, list(range(7, -1, -1)))
    first, second = (float(method.loss(method.represent(b), b)["contrastive"].detach()) for b in (forward, backward))
    assert first == pytest.approx(second, abs=1e-4)
    mixed = tmp_path / "mixed.txt"
    mixed.write_text("the chef bakes\n" + sentences.read_text().splitlines()[0] + " and once more with salt and soup\n")
    alone, beside = (method.represent(batch_of(method, mixed, rows)) for rows in ([0], [0, 1]))
    for name in ("first", "complement"):
        assert torch.allclose(alone[name][0], beside[name][0], atol=1e-5)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"threshold": 1.5}, "threshold is a cosine"),
        ({"threshold": -1.0}, "threshold is a cosine"),
        ({"threshold": float("nan")}, "threshold is a cosine"),
        ({"noise": -1.0}, "noise counts"),
        ({"noise": float("inf")}, "noise counts"),
        ({"noise_spread": 0.0}, "noise_spread"),
        ({"ascent_steps": -1}, "ascent_steps"),
        ({"ascent_rate": float("nan")}, "ascent_rate"),
        ({"head": "tail"}, "head"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        DCLR.check(DCLR.Settings(**bad))


def test_a_complement_that_is_not_there_is_refused(tiny: Path) -> None:
    with pytest.raises(InputError, match="no such model folder"):
        build(tiny, Path("/nowhere/at/all"))
