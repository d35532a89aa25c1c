"""The choice of loss over pairs: each loss against a loop in float64, over each sort of candidates, in each method."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import isotrope
from isotrope.errors import InputError
from isotrope.methods.frame.pair_loss import AllViews, Candidates, OneWay, PairLossSettings, Pairs, Pooled, pair_loss
from isotrope.methods.frame.settings import check
from isotrope.methods.simcse import SimCSE

N, K, WIDTH, TEMPERATURE = 5, 7, 6, 0.3


def rows(count: int, seed: int) -> Tensor:
    return torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


FIRST, SECOND, POOL = rows(N, 0), rows(N, 1), torch.nn.functional.normalize(rows(K, 2), dim=1)
LEFT_OUT = torch.arange(N).unsqueeze(1) == torch.arange(K)
PAIRS: dict[str, Pairs] = {
    "one-way": OneWay(FIRST, SECOND),
    "all-views": AllViews(FIRST, SECOND),
    "pooled": Pooled(FIRST, SECOND, POOL),
    "pooled, own left out": Pooled(FIRST, SECOND, POOL, LEFT_OUT),
}


def expected_candidates(name: str) -> list[tuple[Tensor, Tensor, list[Tensor]]]:
    """(anchor, positive, negatives), by the words of the papers."""
    if name == "one-way":
        return [(FIRST[i], SECOND[i], [SECOND[j] for j in range(N) if j != i]) for i in range(N)]
    if name == "all-views":
        views = [*FIRST, *SECOND]
        own = [(i, (i + N) % (2 * N)) for i in range(2 * N)]
        return [(views[i], views[p], [views[j] for j in range(2 * N) if j not in (i, p)]) for i, p in own]
    out = LEFT_OUT if "left out" in name else torch.zeros_like(LEFT_OUT)
    unit = torch.nn.functional.normalize
    firsts, seconds = unit(FIRST, dim=1), unit(SECOND, dim=1)
    return [(firsts[i], seconds[i], [POOL[k] for k in range(K) if not out[i, k]]) for i in range(N)]


def cosine(a: Tensor, b: Tensor) -> float:
    return float(a @ b / (a.norm() * b.norm()))


DISTANCES: dict[str, Callable[[Tensor, Tensor], float]] = {
    "cosine": lambda a, b: 1 - cosine(a, b),
    "euclidean": lambda a, b: float((a - b).norm()),
    "dot": lambda a, b: -float(a @ b),
}


def found(name: str, seed: int = 3, **settings: Any) -> tuple[str, Tensor]:
    chosen = PairLossSettings(**settings)
    check(chosen)
    ((term, value),) = pair_loss(chosen, PAIRS[name], TEMPERATURE, torch.Generator().manual_seed(seed)).items()
    return term, value


@pytest.mark.parametrize("name", PAIRS)
def test_info_nce_is_the_softmax_over_positive_and_negatives(name: str) -> None:
    losses = []
    for a, p, negatives in expected_candidates(name):
        scores = np.array([cosine(a, p), *(cosine(a, n) for n in negatives)]) / TEMPERATURE
        losses.append(math.log(np.exp(scores).sum()) - scores[0])
    term, value = found(name)
    assert term == "contrastive"
    assert float(value) == pytest.approx(np.mean(losses), abs=1e-9)


def mined(near: float, far: list[float], mining: str, margin: float) -> list[int]:
    order = np.argsort(far).tolist()
    if mining == "all":
        return order
    if mining == "hard":
        return order[:1]
    return [j for j in order if near < far[j] < near + margin][:1]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("mining", ["all", "hard", "semi-hard"])
def test_triplets_equal_a_loop(name: str, distance: str, mining: str) -> None:
    margin, losses = 0.5, []
    for a, p, negatives in expected_candidates(name):
        near, far = DISTANCES[distance](a, p), [DISTANCES[distance](a, n) for n in negatives]
        losses += [max(0.0, near - far[j] + margin) for j in mined(near, far, mining, margin)]
    term, value = found(name, loss="triplet", mining=mining, distance=distance, margin=margin)
    assert term == "triplet"
    assert float(value) == pytest.approx(np.mean(losses) if losses else 0.0, abs=1e-9)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("mining", ["hard", "semi-hard"])
def test_negative_sampling_of_mined_negatives_is_the_papers_logistic(name: str, mining: str) -> None:
    """SimCLR's NT-Logistic: log σ(u·v⁺/τ) + log σ(−u·v⁻/τ), to be maximised (specs/2, section 1.2)."""
    losses = []
    for a, p, negatives in expected_candidates(name):
        far = [1 - cosine(a, n) for n in negatives]
        for j in mined(1 - cosine(a, p), far, mining, 0.5):
            scores = cosine(a, p) / TEMPERATURE, cosine(a, negatives[j]) / TEMPERATURE
            losses.append(math.log1p(math.exp(-scores[0])) + math.log1p(math.exp(scores[1])))
    _, value = found(name, loss="negative-sampling", mining=mining, margin=0.5)
    assert float(value) == pytest.approx(np.mean(losses) if losses else 0.0, abs=1e-9)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("loss", ["nce", "negative-sampling"])
def test_drawn_losses_have_the_expectation_of_a_loop(name: str, loss: str) -> None:
    """k draws with repetition from the anchor's own negatives: in the mean k times the mean over all of them."""
    k, losses = 400, []
    for a, p, negatives in expected_candidates(name):
        shift = math.log(k / len(negatives)) if loss == "nce" else 0.0
        far = np.mean([math.log1p(math.exp(cosine(a, n) / TEMPERATURE - shift)) for n in negatives])
        losses.append(math.log1p(math.exp(shift - cosine(a, p) / TEMPERATURE)) + k * far)
    values = [float(found(name, seed, loss=loss, negatives=k)[1]) for seed in range(10)]
    assert np.mean(values) == pytest.approx(np.mean(losses), rel=0.03)
    assert values[0] == float(found(name, 0, loss=loss, negatives=k)[1])
    assert len(set(values)) == 10


@pytest.mark.parametrize("name", PAIRS)
def test_draws_are_negatives_of_the_anchor_and_all_of_them(name: str) -> None:
    who = PAIRS[name].candidates()
    having, drawn = who.drawn(500, torch.Generator().manual_seed(0))
    assert having.tolist() == list(range(len(who.anchors)))
    for anchor, own in enumerate(drawn.tolist()):
        assert set(own) == set(who.negatives[anchor].nonzero().flatten().tolist())


def test_an_anchor_without_negatives_is_left_out() -> None:
    negatives = torch.tensor([[False, True, True], [False, False, False]])
    who = Candidates(FIRST[:2], SECOND[:3], torch.tensor([0, 1]), negatives)
    having, drawn = who.drawn(8, torch.Generator())
    assert having.tolist() == [0]
    assert set(drawn.flatten().tolist()) <= {1, 2}
    empty = Pooled(FIRST, SECOND.requires_grad_(), POOL, torch.ones_like(LEFT_OUT))
    for loss in ("info-nce", "nce", "negative-sampling", "triplet"):
        (value,) = pair_loss(PairLossSettings(loss=loss), empty, 0.1, torch.Generator()).values()
        assert float(value.detach()) == pytest.approx(0.0, abs=1e-12)
    SECOND.requires_grad_(False)


def test_a_collapsed_batch_costs_what_the_specs_say() -> None:
    """Vectors at right angles: s = 0, so (k + 1) log 2 (specs/3, section 1.1); equal distances cost the margin."""
    right = OneWay(torch.eye(4)[:2], torch.eye(4)[2:])
    sampled = pair_loss(PairLossSettings(loss="negative-sampling", negatives=5), right, 1.0, torch.Generator())
    assert float(sampled["negative_sampling"]) == pytest.approx(6 * math.log(2))
    same = OneWay(torch.ones(3, 4), torch.ones(3, 4))
    margin = pair_loss(PairLossSettings(loss="triplet", margin=0.4), same, 1.0, torch.Generator())
    assert float(margin["triplet"]) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"loss": "hinge"}, "loss is one of info-nce, nce"),
        ({"loss": "nce", "mining": "hard"}, "nce must know the noise"),
        ({"loss": "triplet", "margin": 2.0}, "margin must be below 2"),
        ({"loss": "triplet", "mining": "semi-hard", "margin": 0.0}, "margin must be above 0"),
        ({"loss": "triplet", "learn_temperature": True}, "has no temperature"),
        ({"mining": "easy"}, "mining is one of all, hard, semi-hard"),
        ({"distance": "manhattan"}, "distance is one of euclidean, cosine, dot"),
        ({"negatives": 0}, "negatives must be at least 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check(SimCSE.Settings(**settings))


LOSSES: dict[str, dict[str, Any]] = {
    "nce": {"loss": "nce"},
    "negative-sampling": {"loss": "negative-sampling"},
    "semi-hard logistic": {"loss": "negative-sampling", "mining": "semi-hard"},
    "triplet": {"loss": "triplet"},
    "semi-hard triplet": {"loss": "triplet", "mining": "semi-hard", "distance": "dot"},
}
METHODS: dict[str, dict[str, Any]] = {
    "simcse": {},
    "simclr": {"projection": 32},
    "moco": {"mechanism": "end-to-end"},
}


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", METHODS)
def test_each_loss_falls_and_sets_the_topics_apart(
    method: str, loss: str, tiny: Path, sentences: Path, topics: list[str], tmp_path: Path
) -> None:
    settings = {**METHODS[method], **LOSSES[loss], "batch_size": 16, "max_steps": 40, "eval_steps": 40}
    loop: dict[str, Any] = {"logging_steps": 1, "learning_rate": 5e-4, "held_out": 0, "max_length": 32}
    run = isotrope.train(method, sentences, model=tiny, output=tmp_path / "run", **settings, **loop)
    term = LOSSES[loss]["loss"].replace("-", "_")
    losses = [line[term] for line in run.history if term in line]
    assert len(losses) == 40
    assert not any("information" in line for line in run.history)  # the bound is info-nce's
    if "mining" not in LOSSES[loss]:  # mined negatives are those that are still too near: their loss need not fall
        assert sum(losses[-5:]) < 0.98 * sum(losses[:5])
    assert apart(run.encoder, topics) > apart(isotrope.load(tiny), topics) + 0.01


def apart(encoder: isotrope.Encoder, texts: list[str]) -> float:
    """How much nearer two sentences of one topic are than two of different ones."""
    vectors = encoder.encode(texts[:400], normalize_embeddings=True)
    same = np.equal.outer(np.arange(400) // 8 % 5, np.arange(400) // 8 % 5)
    cosines = vectors @ vectors.T
    return float(cosines[same & ~np.eye(400, dtype=bool)].mean() - cosines[~same].mean())
