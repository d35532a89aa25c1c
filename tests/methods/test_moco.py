"""MoCo: the queue and its order, the key encoder that follows, what is compared, what is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import isotrope
from isotrope.data.corpus import Corpus
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.methods.moco import MoCo, MoCoSettings
from isotrope.objectives import info_nce, queue_nce
from isotrope.towers.key_queue import KeyQueue
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import build_optimiser

Build = Callable[..., Any]
Batched = Callable[..., Batch]
Law = Callable[..., Any]
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


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    return lambda data=sentences, **settings: built("moco", data, **{**SMALL, **settings})


def queue_of(method: Any) -> KeyQueue:
    queue = method.tower["queue"]
    assert isinstance(queue, KeyQueue)
    return queue


def key_encoder(method: Any) -> Encoder:
    found = method.tower["key"].module
    assert isinstance(found, Encoder)
    return found


def test_the_card_and_the_papers_numbers() -> None:
    card = next(card for card in isotrope.methods() if card.name == "moco")
    assert (card.needs, card.year, card.kind) == ("sentences", 2020, "training")
    settings = MoCo.Settings()
    assert (settings.momentum, settings.temperature, settings.projection, settings.head_layers) == (0.999, 0.07, 128, 1)


@pytest.mark.parametrize(("temperature", "expected"), [(0.07, 1.817223), (0.2, 1.090294), (1.0, 1.081280)])
def test_golden_values(build: Build, temperature: float, expected: float) -> None:
    """specs/2, section 2.9."""
    method = build(projection=2, queue=3, temperature=temperature)
    queue_of(method).keys.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]))
    found = {"queries": torch.tensor([[1.0, 0.0], [0.6, 0.8]]), "keys": torch.tensor([[0.8, 0.6], [0.0, 1.0]])}
    assert float(method.loss(found, torch.Generator())["contrastive"]) == pytest.approx(expected, abs=1e-5)


def test_collapsed_vectors_give_the_logarithm_of_the_candidates(build: Build) -> None:
    method = build(queue=4096)
    queue_of(method).keys.fill_(0.25)
    same = {"queries": torch.ones(4, 16), "keys": torch.ones(4, 16)}
    assert method.candidates(same) == 4097
    assert float(method.loss(same, torch.Generator())["contrastive"]) == pytest.approx(math.log(4097), abs=1e-4)


def test_the_queue_begins_as_noise_of_unit_length_drawn_alike_for_one_seed(build: Build) -> None:
    first, second = (queue_of(build()).keys for _ in range(2))
    assert first.shape == (40, 16)
    assert torch.allclose(first.norm(dim=1), torch.ones(40), atol=1e-5)
    assert float((first @ first.T).fill_diagonal_(0).abs().max()) < 0.99
    assert torch.equal(first, second)


def test_the_queue_holds_the_last_keys_in_ring_order(build: Build) -> None:
    """7 places and pushes of 3: the pointer wraps in the midst of a push."""
    queue = queue_of(build(queue=7))
    expected = queue.keys.clone()
    keys = torch.randn(10, 3, 16, generator=torch.Generator().manual_seed(0)) * 5
    place = 0
    for push in keys:
        queue.after_update({"keys": push})
        for key in push:
            expected[place] = key / key.norm()
            place = (place + 1) % 7
        assert torch.allclose(queue.keys, expected, atol=1e-6)
        assert int(queue.place) == place
    assert torch.allclose(queue.keys.norm(dim=1), torch.ones(7), atol=1e-5)
    held = {tuple(row) for row in (queue.keys * 1e4).round().tolist()}
    last = torch.nn.functional.normalize(keys.flatten(0, 1)[-7:], dim=1)
    assert held == {tuple(row) for row in (last * 1e4).round().tolist()}


def test_keys_are_no_candidates_of_their_own_step_but_of_the_next(build: Build, batched: Batched) -> None:
    method = build(**STILL)
    batch = batched(method)
    found = {name: tensor.detach() for name, tensor in method.represent(batch).items()}
    before = queue_of(method).keys.clone()
    first = float(method.loss(found, batch.generator())["contrastive"])
    assert first == pytest.approx(float(queue_nce(found["queries"], found["keys"], before, 0.07)), abs=1e-6)
    Combined(method).after_update(found)
    candidates = torch.cat(
        [torch.nn.functional.normalize(found["keys"], dim=1), before[8:]]
    )  # the oldest have made room
    assert float(method.loss(found, batch.generator())["contrastive"]) == pytest.approx(
        float(queue_nce(found["queries"], found["keys"], candidates, 0.07)), abs=1e-5
    )
    assert (
        float(method.loss(found, batch.generator())["contrastive"]) > first + 0.1
    )  # a query's own old key is among the candidates now


def test_queries_and_keys_come_from_the_two_views(build: Build, batched: Batched) -> None:
    method = build(second_edits="none", momentum=0.5)
    with torch.no_grad():
        for parameter in key_encoder(method).parameters():
            parameter.mul_(1.1)  # no longer the query encoder
    batch = batched(method)
    assert (batch["first"].lengths < batch["second"].lengths).all()
    found = method.represent(batch)
    assert not found["keys"].requires_grad
    head = method.tower["key_head"].module
    expected = head(key_encoder(method).eval().embed(batch["second"])[0])
    assert torch.allclose(found["keys"], expected, atol=1e-5)
    assert not torch.allclose(found["keys"], method.tower["head"](method.encoder.embed(batch["second"])[0]), atol=1e-3)


def test_a_text_finds_itself_exactly_only_without_dropout(build: Build, batched: Batched) -> None:
    cosine = torch.nn.functional.cosine_similarity
    still, dropping = build(**STILL), build(edits="none")
    found = still.represent(batched(still))
    assert torch.allclose(cosine(found["queries"], found["keys"]), torch.ones(8), atol=1e-5)
    found = dropping.represent(batched(dropping))
    assert float(cosine(found["queries"], found["keys"]).detach().max()) < 0.999


def test_gradient_reaches_the_query_encoder_alone_and_keys_have_no_dropout(build: Build, batched: Batched) -> None:
    method = build()
    method.train()
    assert not any(part.training for name in ("key", "key_head") for part in method.tower[name].module.modules())
    batch = batched(method)
    first, second = method.represent(batch), method.represent(batch)
    assert torch.equal(first["keys"], second["keys"])
    assert not torch.equal(first["queries"], second["queries"])
    Combined(method).total(method.loss(first, batch.generator())).backward()
    followers = [*method.tower["key"].parameters(), *method.tower["key_head"].parameters()]
    assert all(parameter.grad is None and not parameter.requires_grad for parameter in followers)
    learners = {
        id(p) for group in build_optimiser(Combined(method), LoopSettings()).param_groups for p in group["params"]
    }
    assert not learners & {id(parameter) for parameter in followers}
    assert {id(p) for p in method.tower["head"].parameters()} <= learners
    assert float(next(method.tower["head"].parameters()).grad.abs().sum()) > 0  # type: ignore[union-attr]
    assert method.encoder.backbone.embeddings.word_embeddings.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("momentum", [0.0, 0.9, 1.0])
def test_the_key_encoder_and_its_head_follow_by_the_formula(build: Build, momentum: float) -> None:
    """θ_k after n steps = mⁿ θ_0 + (1 − m) Σ m^(n−i) θ_q,i."""
    method = build(momentum=momentum)
    pairs = [
        (next(method.encoder.backbone.encoder.parameters()), next(key_encoder(method).backbone.encoder.parameters())),
        (next(method.tower["head"].parameters()), next(method.tower["key_head"].parameters())),
    ]
    for online, key in pairs:
        expected = key.detach().clone()
        start = expected.clone()
        for step in range(1, 4):
            with torch.no_grad():
                online.add_(0.01 * step)
            expected = momentum * expected + (1 - momentum) * online.detach()
            Combined(method).after_update({"keys": torch.ones(4, 16)})
        assert torch.allclose(key, expected, atol=1e-6)
        if momentum == 1.0:
            assert torch.equal(key, start)
        if momentum == 0.0:
            assert torch.equal(key, online)


def test_resume_equals_an_uninterrupted_run_queue_and_all(sentences: Path, resume_agrees: Law) -> None:
    weights = resume_agrees("moco", sentences, **SMALL)
    (place,) = (value for name, value in weights.items() if name.endswith("queue.place"))
    assert any(name.endswith("queue.keys") for name in weights)
    assert int(place) == 6 * 8 % 40


@unjudged
def test_the_query_encoder_is_what_is_kept(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    run = isotrope.train(
        "moco",
        sentences,
        model=tiny,
        output=tmp_path / "run",
        keep_start=False,
        **{**SHORT, "max_steps": 3, "eval_steps": 3},
    )
    kept = load_file(tmp_path / "run" / "checkpoints" / "best-3.safetensors")
    saved = load_file(run.folder / "model" / "model.safetensors")
    name = next(name for name in saved if name.endswith("encoder.layer.0.attention.self.query.weight"))
    online, key = (
        kept[f"{tower}.backbone.{name.removeprefix('bert.')}"]
        for tower in ("method.encoder", "method.tower.key.module")
    )
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
    assert full[0] > losses[0]  # noise was easy to distinguish, keys are not
    assert sum(full[-5:]) < 0.8 * sum(full[:5])


@pytest.mark.parametrize(("records", "length"), [(400, 400), (5000, 1024), (100_000, 12_500), (1_000_000, 65_536)])
def test_the_length_of_the_queue_fits_the_text_where_none_is_given(tiny: Path, records: int, length: int) -> None:
    class Sized(Corpus):
        def __init__(self) -> None:
            """Nothing of it is asked for but its length."""

        def __len__(self) -> int:
            return records

    for queue, expected in ((None, length), (48, 48)):
        method = MoCo(MoCoSettings(queue=queue, projection=16), isotrope.load(tiny, device="cpu"), 64, Sized())
        assert len(queue_of(method).keys) == expected


def test_a_queue_that_is_not_larger_than_the_batch_is_refused(build: Build) -> None:
    MoCoSettings(queue=17).check_batch(16)
    MoCoSettings().check_batch(1024)  # on a text that nobody has opened yet
    with pytest.raises(InputError, match=r"queue \(16\) must be larger than batch_size \(16\)"):
        MoCoSettings(queue=16).check_batch(16)
    method = build([f"text {number}" for number in range(8)], queue=None)
    with pytest.raises(InputError, match=r"queue \(8\) must be larger than batch_size \(8\)"):
        method.settings.check_batch(8)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"queue": 0}, "queue"),
        ({"momentum": 1.1}, "momentum"),
        ({"momentum": float("nan")}, "momentum"),
        ({"temperature": -0.1}, "temperature"),
        ({"head_layers": -1}, "head_layers"),
        ({"dropout": -0.1}, "dropout"),
        ({"edits": "swap:0.1"}, "Unknown edit 'swap'"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check(MoCo.Settings(**bad))


BANK: dict[str, Any] = {"mechanism": "memory-bank"}
END_TO_END: dict[str, Any] = {"mechanism": "end-to-end", "queue": None}


def loss_of(method: Any, found: dict[str, torch.Tensor], batch: Batch) -> float:
    return float(method.loss(found, batch.generator())["contrastive"].detach())


def test_end_to_end_compares_within_the_batch_and_trains_the_keys(build: Build, batched: Batched) -> None:
    method = build(**END_TO_END, **STILL)
    assert set(method.tower) == {"head"}
    batch = batched(method)
    found = method.represent(batch)
    assert found["keys"].requires_grad
    assert method.candidates(found) == 8
    leaves = {name: found[name].detach().requires_grad_() for name in ("queries", "keys")}
    value = method.loss(leaves, batch.generator())["contrastive"]
    assert float(value.detach()) == pytest.approx(float(info_nce(found["queries"], found["keys"], 0.07).detach()))
    value.backward()
    assert all(float(leaf.grad.norm()) > 0 for leaf in leaves.values())  # type: ignore[union-attr]


@pytest.mark.parametrize(("temperature", "expected"), [(0.07, 1.817223), (0.2, 1.090294), (1.0, 1.081280)])
def test_golden_values_of_the_memory_bank(build: Build, temperature: float, expected: float) -> None:
    """The vectors of specs/2, section 2.9, stored as records 2 to 4; the queries are records 0 and 1."""
    data = [f"text {number}" for number in range(5)]
    method = build(data, projection=2, queue=5, temperature=temperature, **BANK)
    keys = torch.tensor([[0.8, 0.6], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    method.bank.fill(torch.arange(2, 5), keys[2:])
    method.bank.vectors[:2] = keys[:2]  # the positives; as they are not filled in, nobody draws them
    found = {"queries": torch.tensor([[1.0, 0.0], [0.6, 0.8]]), "rows": torch.tensor([0, 1])}
    assert method.candidates(found) == 4
    value = method.loss(found, torch.Generator())["contrastive"]
    assert float(value) == pytest.approx(expected, abs=1e-5)


def test_a_memory_bank_compares_with_stored_vectors_of_other_records(build: Build, batched: Batched) -> None:
    """All are drawn here, so that a loop over the bank knows the candidates."""
    method = build(queue=400, **BANK, **STILL)
    batch = batched(method)
    found = {name: tensor.detach() for name, tensor in method.represent(batch).items()}
    assert found["rows"].tolist() == list(range(8))
    stored, queries = method.bank.vectors, torch.nn.functional.normalize(found["queries"], dim=1)
    losses = []
    for row, query in enumerate(queries):
        scores = [query @ stored[row], *(query @ stored[other] for other in range(400) if other != row)]
        losses.append(torch.logsumexp(torch.stack(scores) / 0.07, 0) - scores[0] / 0.07)
    assert loss_of(method, found, batch) == pytest.approx(float(torch.stack(losses).mean()), abs=1e-5)
    assert method.candidates(found) == 401


def test_a_bank_begins_with_the_vectors_before_training_of_the_rows_that_are_trained_on(
    build: Build, batched: Batched
) -> None:
    """Without edits and without dropout a query is its record's stored vector."""
    method = build(queue=100, **BANK, **STILL)
    method.count(np.arange(300))
    assert not method.bank.seen.any()
    found = method.represent(batched(method))
    assert method.bank.seen.nonzero().flatten().tolist() == list(range(300))
    expected = torch.nn.functional.normalize(found["queries"].detach(), dim=1)
    assert torch.allclose(method.bank.vectors[:8], expected, atol=1e-5)
    assert method.training


def test_the_bank_moves_towards_the_queries_and_gives_them_no_gradient(build: Build, batched: Batched) -> None:
    method = build(**BANK)
    found = method.represent(batched(method))
    before = method.bank.vectors.clone()
    Combined(method).after_update({name: tensor.detach() for name, tensor in found.items()})
    moved = before[:8] + torch.nn.functional.normalize(found["queries"].detach(), dim=1)
    assert torch.allclose(method.bank.vectors[:8], torch.nn.functional.normalize(moved, dim=1), atol=1e-6)
    assert torch.equal(method.bank.vectors[8:], before[8:])
    assert not method.bank.vectors.requires_grad
    assert not list(method.tower["bank"].parameters())
    assert "key" not in method.tower


@pytest.mark.parametrize("mechanism", [BANK, END_TO_END])
def test_chunks_of_each_mechanism_give_the_gradient_of_the_whole_batch(
    mechanism: dict[str, Any], build: Build, chunks_equal_whole: Law
) -> None:
    methods = [build(dropout=0.0, **mechanism) for _ in range(2)]
    for method in methods if mechanism is BANK else []:
        vectors = torch.randn(400, 16, generator=torch.Generator().manual_seed(2))
        method.bank.fill(torch.arange(400), vectors)
    chunks_equal_whole(*methods)


def test_resume_equals_an_uninterrupted_run_bank_and_all(sentences: Path, resume_agrees: Law) -> None:
    weights = resume_agrees("moco", sentences, **SMALL, **BANK)
    (seen,) = (value for name, value in weights.items() if name.endswith("bank.seen"))
    assert seen.all()


@unjudged
@pytest.mark.parametrize("mechanism", [BANK, END_TO_END])
def test_training_by_each_mechanism_lowers_its_loss(
    mechanism: dict[str, Any], tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    """On 48 records, so that the bank is full after three steps."""
    few = sentences.with_name("few.txt")
    few.write_text("\n".join(line for line in sentences.read_text().split("\n") if line)[: 48 * 95], encoding="utf-8")
    settings = {**SHORT, **mechanism, "held_out": 0, "max_steps": 60, "eval_steps": 60, "learning_rate": 5e-4}
    run = isotrope.train("moco", few, model=tiny, output=tmp_path / "run", **settings)
    losses = [line["contrastive"] for line in run.history if "contrastive" in line]
    assert sum(losses[-5:]) < 0.9 * sum(losses[4:9])


def test_a_large_bank_is_announced_and_a_draw_above_it_refused(tiny: Path, build: Build) -> None:
    class Sized(Corpus):
        def __init__(self, records: int) -> None:
            self.records = records

        def __len__(self) -> int:
            return self.records

    settings = MoCoSettings(projection=128, mechanism="memory-bank")
    method = MoCo.__new__(MoCo)
    torch.nn.Module.__init__(method)
    method.settings, method.encoder = settings, isotrope.load(tiny, device="cpu")
    assert method.prepare(Sized(400)).remarks == ()
    (said,) = method.prepare(Sized(1_000_000)).remarks
    assert "1,000,000 vectors: 512 MB" in said
    with pytest.raises(InputError, match=r"queue \(500\) is what each step draws from a memory bank of 400 records"):
        build(queue=500, **BANK)
    with pytest.raises(InputError, match="needs the data at the start"):
        MoCo(settings, isotrope.load(tiny, device="cpu"))


def test_what_a_mechanism_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="has no queue: its negatives are the batch"):
        check(MoCoSettings(mechanism="end-to-end", queue=64))
    with pytest.raises(InputError, match="mechanism is one of queue, end-to-end, memory-bank"):
        check(MoCoSettings(mechanism="stack"))
    MoCoSettings(mechanism="memory-bank", queue=8).check_batch(16)
