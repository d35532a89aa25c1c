"""MoCo: the queue and its order, the key encoder that follows, what is compared, what is kept."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import isotrope
from isotrope.data.corpus import Records, open_corpus
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.method import Batch
from isotrope.methods.moco import MoCo
from isotrope.objectives import queue_nce
from isotrope.training.loop import make_accelerator
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import build_optimiser
from isotrope.training.step import compute_gradient

SMALL: dict[str, Any] = {"projection": 16, "queue": 40}
SHORT: dict[str, Any] = {
    **SMALL,
    "batch_size": 16,
    "logging_steps": 1,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 32,
}
STILL: dict[str, Any] = {"dropout": 0.0, "edits": "none"}
unjudged = pytest.mark.filterwarnings("ignore:Training did not improve")


def build(folder: Path, corpus: Any = None, **settings: Any) -> MoCo:
    chosen = MoCo.Settings(**{**SMALL, **settings})
    MoCo.check(chosen)
    torch.manual_seed(0)
    return MoCo(chosen, isotrope.load(folder, device="cpu"), 64, corpus).train()


def corpus_of(encoder: Encoder, source: Any) -> Any:
    tokenizer = encoder.text_tokenizer
    return open_corpus(source, ("sentences",), tokenizer)


def batch_of(method: MoCo, source: Any, rows: range = range(8)) -> Batch:
    records = Records(corpus_of(method.encoder, source), list(rows))
    return Batch(method.views(records, np.random.default_rng(0)), len(rows), 0)


def key_encoder(method: MoCo) -> Encoder:
    found = method.role["key"].module
    assert isinstance(found, Encoder)
    return found


def test_the_card_and_the_papers_numbers() -> None:
    card = next(card for card in isotrope.methods() if card.name == "moco")
    assert (card.needs, card.year, card.kind) == ("sentences", 2020, "training")
    settings = MoCo.Settings()
    assert (settings.momentum, settings.temperature, settings.projection, settings.head_layers) == (0.999, 0.07, 128, 1)


@pytest.mark.parametrize(("temperature", "expected"), [(0.07, 1.817223), (0.2, 1.090294), (1.0, 1.081280)])
def test_golden_values(tiny: Path, temperature: float, expected: float) -> None:
    """specs/2, section 2.9."""
    method = build(tiny, projection=2, queue=3, temperature=temperature)
    method.queue.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]))
    found = {"queries": torch.tensor([[1.0, 0.0], [0.6, 0.8]]), "keys": torch.tensor([[0.8, 0.6], [0.0, 1.0]])}
    assert float(method.loss(found, Batch({}, 2, 0))["contrastive"]) == pytest.approx(expected, abs=1e-5)


def test_collapsed_vectors_give_the_logarithm_of_the_candidates(tiny: Path) -> None:
    method = build(tiny, queue=4096)
    method.queue.fill_(0.25)
    same = {"queries": torch.ones(4, 16), "keys": torch.ones(4, 16)}
    assert method.candidates(same) == 4097
    assert float(method.loss(same, Batch({}, 4, 0))["contrastive"]) == pytest.approx(math.log(4097), abs=1e-4)


def test_the_queue_begins_as_noise_of_unit_length_drawn_alike_for_one_seed(tiny: Path) -> None:
    first, second = build(tiny), build(tiny)
    assert first.queue.shape == (40, 16)
    assert torch.allclose(first.queue.norm(dim=1), torch.ones(40), atol=1e-5)
    assert float((first.queue @ first.queue.T).fill_diagonal_(0).abs().max()) < 0.99
    assert torch.equal(first.queue, second.queue)


def test_the_queue_holds_the_last_keys_in_ring_order(tiny: Path) -> None:
    """7 places and pushes of 3: the pointer wraps in the midst of a push."""
    method = build(tiny, queue=7)
    expected = method.queue.clone()
    keys = torch.randn(10, 3, 16, generator=torch.Generator().manual_seed(0)) * 5
    place = 0
    for push in keys:
        method.after_step({"keys": push})
        for key in push:
            expected[place] = key / key.norm()
            place = (place + 1) % 7
        assert torch.allclose(method.queue, expected, atol=1e-6)
        assert int(method.place) == place
    assert torch.allclose(method.queue.norm(dim=1), torch.ones(7), atol=1e-5)
    held = {tuple(row) for row in (method.queue * 1e4).round().tolist()}
    last = torch.nn.functional.normalize(keys.flatten(0, 1)[-7:], dim=1)
    assert held == {tuple(row) for row in (last * 1e4).round().tolist()}


def test_keys_are_no_candidates_of_their_own_step_but_of_the_next(tiny: Path, sentences: Path) -> None:
    method = build(tiny, **STILL)
    batch = batch_of(method, sentences)
    found = {name: tensor.detach() for name, tensor in method.represent(batch).items()}
    before = method.queue.clone()
    first = float(method.loss(found, batch)["contrastive"])
    assert first == pytest.approx(float(queue_nce(found["queries"], found["keys"], before, 0.07)), abs=1e-6)
    method.finish_step(found)
    candidates = torch.cat(
        [torch.nn.functional.normalize(found["keys"], dim=1), before[8:]]
    )  # the oldest have made room
    assert float(method.loss(found, batch)["contrastive"]) == pytest.approx(
        float(queue_nce(found["queries"], found["keys"], candidates, 0.07)), abs=1e-5
    )
    assert (
        float(method.loss(found, batch)["contrastive"]) > first + 0.1
    )  # a query's own old key is among the candidates now


def test_queries_and_keys_come_from_the_two_views(tiny: Path, sentences: Path) -> None:
    method = build(tiny, second_edits="none", momentum=0.5)
    with torch.no_grad():
        for parameter in key_encoder(method).parameters():
            parameter.mul_(1.1)  # no longer the query encoder
    batch = batch_of(method, sentences)
    assert (batch["first"].lengths < batch["second"].lengths).all()
    found = method.represent(batch)
    assert not found["keys"].requires_grad
    head = method.role["key_head"].module
    expected = head(key_encoder(method).eval().embed(batch["second"])[0])
    assert torch.allclose(found["keys"], expected, atol=1e-5)
    assert not torch.allclose(found["keys"], method.role["head"](method.encoder.embed(batch["second"])[0]), atol=1e-3)


def test_a_text_finds_itself_exactly_only_without_dropout(tiny: Path, sentences: Path) -> None:
    cosine = torch.nn.functional.cosine_similarity
    still, dropping = build(tiny, **STILL), build(tiny, edits="none")
    found = still.represent(batch_of(still, sentences))
    assert torch.allclose(cosine(found["queries"], found["keys"]), torch.ones(8), atol=1e-5)
    found = dropping.represent(batch_of(dropping, sentences))
    assert float(cosine(found["queries"], found["keys"]).detach().max()) < 0.999


def test_gradient_reaches_the_query_encoder_alone_and_keys_have_no_dropout(tiny: Path, sentences: Path) -> None:
    method = build(tiny)
    method.train()
    assert not any(part.training for role in ("key", "key_head") for part in method.role[role].module.modules())
    batch = batch_of(method, sentences)
    first, second = method.represent(batch), method.represent(batch)
    assert torch.equal(first["keys"], second["keys"])
    assert not torch.equal(first["queries"], second["queries"])
    method.total(method.loss(first, batch)).backward()
    followers = [*method.role["key"].parameters(), *method.role["key_head"].parameters()]
    assert all(parameter.grad is None and not parameter.requires_grad for parameter in followers)
    learners = {id(p) for group in build_optimiser(method, LoopSettings()).param_groups for p in group["params"]}
    assert not learners & {id(parameter) for parameter in followers}
    assert {id(p) for p in method.role["head"].parameters()} <= learners
    assert float(next(method.role["head"].parameters()).grad.abs().sum()) > 0  # type: ignore[union-attr]
    assert method.encoder.backbone.embeddings.word_embeddings.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("momentum", [0.0, 0.9, 1.0])
def test_the_key_encoder_and_its_head_follow_by_the_formula(tiny: Path, momentum: float) -> None:
    """θ_k after n steps = mⁿ θ_0 + (1 − m) Σ m^(n−i) θ_q,i."""
    method = build(tiny, momentum=momentum)
    pairs = [
        (next(method.encoder.backbone.encoder.parameters()), next(key_encoder(method).backbone.encoder.parameters())),
        (next(method.role["head"].parameters()), next(method.role["key_head"].parameters())),
    ]
    for online, key in pairs:
        expected = key.detach().clone()
        start = expected.clone()
        for step in range(1, 4):
            with torch.no_grad():
                online.add_(0.01 * step)
            expected = momentum * expected + (1 - momentum) * online.detach()
            method.finish_step({"keys": torch.ones(4, 16)})
        assert torch.allclose(key, expected, atol=1e-6)
        if momentum == 1.0:
            assert torch.equal(key, start)
        if momentum == 0.0:
            assert torch.equal(key, online)


def test_chunks_give_the_gradient_of_the_whole_batch(tiny: Path, sentences: Path) -> None:
    accelerator = make_accelerator(LoopSettings())
    whole, cut = build(tiny, dropout=0.0), build(tiny, dropout=0.0)
    seen: list[dict[str, Tensor]] = []
    for method, size in ((whole, None), (cut, 3)):
        seen.append(compute_gradient(method, batch_of(method, sentences), accelerator, (1, 2, 0), size).representations)
    largest = 0.0
    for (name, a), b in zip(whole.named_parameters(), cut.parameters(), strict=True):
        if a.requires_grad and a.grad is not None and b.grad is not None:
            assert torch.allclose(a.grad, b.grad, atol=1e-5), name
            largest = max(largest, float(a.grad.abs().max()))
    assert largest > 1e-2
    assert torch.allclose(seen[0]["keys"], seen[1]["keys"], atol=1e-6)


def test_neither_padding_nor_the_order_of_the_batch_matters(tiny: Path) -> None:
    texts = [
        "the chef bakes the bread",
        "the sailor steers",
        "the pilot lands the rocket near the dusty crater with orbit and comet",
        "salt",
    ]
    method = build(tiny, **STILL)
    found = method.represent(batch_of(method, texts, range(4)))
    alone = method.represent(batch_of(method, texts, range(2)))  # without the long one there is less padding
    assert torch.allclose(found["keys"][:2], alone["keys"], atol=1e-5)
    assert torch.allclose(found["queries"][:2], alone["queries"], atol=1e-5)
    forward, backward = batch_of(method, texts, range(4)), batch_of(method, texts, range(3, -1, -1))
    losses = [
        float(method.loss(method.represent(batch), batch)["contrastive"].detach()) for batch in (forward, backward)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)


@unjudged
def test_resume_equals_an_uninterrupted_run_queue_and_all(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = {**SHORT, "model": tiny, "max_steps": 6, "eval_steps": 3}
    isotrope.train("moco", sentences, output=tmp_path / "whole", **common)
    steps = iter(range(1, 10))
    push = MoCo.after_step

    def fall_at_four(self: MoCo, representations: dict[str, Tensor]) -> None:
        if next(steps) == 4:
            raise RuntimeError("the power fails")
        push(self, representations)

    with monkeypatch.context() as patch:
        patch.setattr(MoCo, "after_step", fall_at_four)
        with pytest.raises(RuntimeError, match="the power fails"):
            isotrope.train("moco", sentences, output=tmp_path / "cut", **common)
    isotrope.train("moco", sentences, output=tmp_path / "cut", resume=True, **common)
    first, second = (
        load_file(tmp_path / name / "checkpoints" / "step-6" / "weights.safetensors") for name in ("whole", "cut")
    )
    assert {"queue", "place"} <= first.keys()
    assert int(first["place"]) == 6 * 16 % 40
    assert all(torch.equal(first[name], second[name]) for name in first)


@unjudged
def test_the_query_encoder_is_what_is_kept(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    run = isotrope.train(
        "moco", sentences, model=tiny, output=tmp_path / "run", **{**SHORT, "max_steps": 3, "eval_steps": 3}
    )
    kept = load_file(tmp_path / "run" / "checkpoints" / "best-3.safetensors")
    saved = load_file(run.folder / "model" / "model.safetensors")
    name = next(name for name in saved if name.endswith("encoder.layer.0.attention.self.query.weight"))
    online, key = (kept[f"{tower}.backbone.{name.removeprefix('bert.')}"] for tower in ("encoder", "role.key.module"))
    assert torch.equal(saved[name], online)
    assert not torch.equal(online, key)
    assert not any("head" in other or "queue" in other for other in saved)
    again = isotrope.load(run.folder / "model")
    assert len(again.parts) == 0
    assert np.allclose(again.encode("the chef bakes"), run.encoder.encode("the chef bakes"), atol=1e-5)
    assert {line["candidates"] for line in run.history if "loss" in line} == {41}


@unjudged
def test_training_lowers_its_loss_once_the_queue_is_full(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {**SHORT, "max_steps": 60, "eval_steps": 60, "momentum": 0.9}
    run = isotrope.train("moco", sentences, model=tiny, output=tmp_path / "run", **settings)
    losses = [line["contrastive"] for line in run.history if "contrastive" in line]
    full = losses[40 // 16 + 1 :]
    assert full[0] > losses[0]  # noise was easy to tell apart, keys are not
    assert sum(full[-5:]) < 0.8 * sum(full[:5])


@pytest.mark.parametrize(("records", "length"), [(400, 400), (5000, 1024), (100_000, 12_500), (1_000_000, 65_536)])
def test_the_length_of_the_queue_fits_the_text_where_none_is_given(tiny: Path, records: int, length: int) -> None:
    class Sized:
        def __len__(self) -> int:
            return records

    assert len(build(tiny, Sized(), queue=None).queue) == length
    assert len(build(tiny, Sized(), queue=48).queue) == 48


def test_a_queue_that_is_not_larger_than_the_batch_is_refused() -> None:
    MoCo.check_batch(MoCo.Settings(queue=17), 16)
    MoCo.check_batch(MoCo.Settings(), 1024)  # on a text that nobody has opened yet
    with pytest.raises(InputError, match=r"queue \(16\) must be larger than batch_size \(16\)"):
        MoCo.check_batch(MoCo.Settings(queue=16), 16)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"queue": 0}, "queue"),
        ({"momentum": 1.1}, "momentum"),
        ({"momentum": float("nan")}, "momentum"),
        ({"temperature": -0.1}, "temperature"),
        ({"head_layers": -1}, "head_layers"),
        ({"dropout": -0.1}, "dropout"),
        ({"edits": "swap:0.1"}, "'swap' is no edit"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        MoCo.check(MoCo.Settings(**bad))
