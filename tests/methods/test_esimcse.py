"""ESimCSE: what is repeated, what waits in the queue, and what is left of it without either."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import isotrope
from isotrope.errors import InputError
from isotrope.methods.esimcse import ESimCSE
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import build_optimiser

Build = Callable[..., Any]
Batched = Callable[..., Batch]
Law = Callable[..., Any]


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    return lambda pooling="cls", **settings: built("esimcse", sentences, pooling=pooling, **settings)


def loss_of(method: Any, found: dict[str, Tensor], batch: Batch) -> float:
    return float(method.loss(found, batch.generator())["contrastive"].detach())


def naive(first: Tensor, second: Tensor, queue: Tensor, temperature: float) -> float:
    """The paper's equation, term by term in float64."""

    def cos(a: Tensor, b: Tensor) -> float:
        a, b = a.double(), b.double()
        return float(a @ b / a.norm() / b.norm())

    losses = []
    for i, anchor in enumerate(first):
        inside = sum(math.exp(cos(anchor, other) / temperature) for other in second)
        outside = sum(math.exp(cos(anchor, past) / temperature) for past in queue)
        losses.append(-math.log(math.exp(cos(anchor, second[i]) / temperature) / (inside + outside)))
    return sum(losses) / len(losses)


def test_the_defaults_are_the_papers() -> None:
    settings = ESimCSE.Settings()
    assert (settings.second_edits, settings.queue, settings.momentum) == ("repeat:0.32", 160, 0.995)
    assert settings.temperature == 0.05
    assert ESimCSE.card.read_out == "cls"


def test_golden_values(build: Build) -> None:
    """Orthogonal pairs; the queue holds the first anchor, its opposite and a diagonal."""
    method = build(temperature=0.5, queue=3)
    eye = torch.eye(32)[:2]
    found = {"first": 2 * eye, "second": 5 * eye}
    e = math.exp
    assert float(method.loss(found, torch.Generator())["contrastive"]) == pytest.approx(math.log(1 + e(-2)), abs=1e-6)
    method.tower["queue"].after_update({"keys": torch.stack([eye[0], -eye[0], eye[0] + eye[1]])})
    diagonal = e(math.sqrt(0.5) / 0.5)
    rows = [math.log((e(2) + 1 + e(2) + e(-2) + diagonal) / e(2)), math.log((e(2) + 1 + 1 + 1 + diagonal) / e(2))]
    found_loss = float(method.loss(found, torch.Generator())["contrastive"])
    assert found_loss == pytest.approx(sum(rows) / 2, abs=1e-6)
    assert method.candidates(found) == 5


def test_the_loss_is_the_papers_equation_over_batch_and_queue(build: Build, batched: Batched) -> None:
    method = build(queue=12)
    for rows in (range(8), range(8, 16)):
        Combined(method).after_update(method.represent(batched(method, rows)))
    batch = batched(method, range(16, 24))
    found = {name: tensor.detach() for name, tensor in method.represent(batch).items()}
    expected = naive(found["first"], found["second"], method.tower["queue"](), 0.05)
    assert loss_of(method, found, batch) == pytest.approx(expected, rel=1e-4)
    assert method.candidates(found) == 8 + 12


def test_the_current_batch_is_not_in_the_queue_at_its_own_step_and_the_oldest_leave_first(
    build: Build, batched: Batched
) -> None:
    method = build(queue=20)
    past: list[Tensor] = []
    sizes = []
    for step in range(5):
        found = method.represent(batched(method, range(8 * step, 8 * step + 8)))
        held = method.tower["queue"]()
        sizes.append(len(held))
        expected = torch.stack(past[-20:]) if past else torch.empty(0, 32)
        order = torch.cat([held[int(method.tower["queue"].place) :], held[: int(method.tower["queue"].place)]])
        assert torch.allclose(held if len(held) < 20 else order, expected)
        Combined(method).after_update({name: tensor.detach() for name, tensor in found.items()})
        past += list(torch.nn.functional.normalize(found["keys"], dim=-1))
    assert sizes == [0, 8, 16, 20, 20]


def test_a_queue_shorter_than_the_batch_keeps_the_last_of_it(build: Build, batched: Batched) -> None:
    method = build(queue=3)
    found = method.represent(batched(method))
    Combined(method).after_update(found)
    assert torch.allclose(method.tower["queue"](), torch.nn.functional.normalize(found["keys"][-3:], dim=-1))


def test_what_waits_is_the_plain_sentence_without_dropout_through_the_online_head(
    build: Build, batched: Batched
) -> None:
    method = build()
    key = method.tower["key"].module
    pairs = zip(method.encoder.parameters(), key.parameters(), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)  # it starts equal to the loaded weights
    batch = batched(method)
    found, again = method.represent(batch), method.represent(batch)
    assert torch.equal(found["keys"], again["keys"])
    assert not torch.equal(found["first"], again["first"])
    with torch.no_grad():
        plain = method.tower["head"](method.encoder.eval().embed(batch["first"])[0])
    assert torch.allclose(found["keys"], plain, atol=1e-6)
    assert set(method.tower) == {"head", "key", "queue"}


def test_gradient_reaches_encoder_and_head_and_neither_follower_nor_queue(build: Build, batched: Batched) -> None:
    method = build(queue=12)
    Combined(method).after_update(method.represent(batched(method)))
    batch = batched(method, range(8, 16))
    found = method.represent(batch)
    assert not found["keys"].requires_grad
    method.loss(found, batch.generator())["contrastive"].backward()
    assert all(p.grad is None and not p.requires_grad for p in method.tower["key"].parameters())
    assert not method.tower["queue"]().requires_grad
    assert method.tower["head"].module.linear.weight.grad.abs().sum() > 0
    assert method.encoder.backbone.embeddings.word_embeddings.weight.grad.abs().sum() > 0
    groups = build_optimiser(Combined(method), LoopSettings()).param_groups
    learners = {id(p) for group in groups for p in group["params"]}
    assert not learners & {id(p) for p in method.tower["key"].parameters()}


def test_the_follower_moves_by_the_formula(build: Build) -> None:
    method = build(momentum=0.9, queue=4)
    online = next(method.encoder.backbone.encoder.parameters())
    key = next(method.tower["key"].module.backbone.encoder.parameters())
    expected = key.detach().clone()
    for step in range(1, 4):
        with torch.no_grad():
            online.add_(0.01 * step)
        expected = 0.9 * expected + 0.1 * online.detach()
        Combined(method).after_update({"keys": torch.ones(4, 32)})
    assert torch.allclose(key, expected, atol=1e-6)


def test_pieces_are_repeated_in_the_second_view_alone_and_special_tokens_never(build: Build, batched: Batched) -> None:
    method = build()
    specials = set(method.encoder.text_tokenizer.tokenizer.all_special_ids)
    longer = 0
    for seed in range(20):
        batch = batched(method, seed=seed)
        for plain, repeated in zip(rows_of(batch["first"]), rows_of(batch["second"]), strict=True):
            words = len([token for token in plain if token not in specials])
            assert 0 <= len(repeated) - len(plain) <= max(2, int(0.32 * words))
            assert [t for t in repeated if t in specials] == [t for t in plain if t in specials]
            assert undoubled(plain, repeated)
            longer += len(repeated) > len(plain)
    assert longer > 40


def rows_of(tokens: Any) -> list[list[int]]:
    return [row[: int(length)].tolist() for row, length in zip(tokens.ids, tokens.lengths, strict=True)]


def undoubled(plain: list[int], repeated: list[int]) -> bool:
    """Reading ``repeated``, each token of ``plain`` comes once or twice in a row."""
    reachable = {0}
    for token in plain:
        steps = {
            place + count
            for place in reachable
            for count in (1, 2)
            if place + count <= len(repeated) and all(t == token for t in repeated[place : place + count])
        }
        reachable = steps
    return len(repeated) in reachable


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
@pytest.mark.parametrize("edits", ["repeat:0", "none"])
def test_without_repetition_and_queue_it_is_simcse_to_the_last_bit(
    edits: str, tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    common = {"max_steps": 4, "batch_size": 16, "eval_steps": 4, "learning_rate": 1e-3, "held_out": 0}
    runs = {"simcse": {}, "esimcse": {"second_edits": edits, "queue": 0}}
    for name, settings in runs.items():
        isotrope.train(name, sentences, model=tiny, output=tmp_path / name, keep_start=False, **common, **settings)
    first, second = (load_file(tmp_path / name / "model" / "model.safetensors") for name in runs)
    assert first.keys() == second.keys()
    assert all(torch.equal(value, second[name]) for name, value in first.items())


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_each_of_the_two_ideas_changes_the_weights(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    common = {"max_steps": 4, "batch_size": 16, "eval_steps": 4, "learning_rate": 1e-3, "held_out": 0}
    arms = {
        "neither": {"second_edits": "none", "queue": 0},
        "repeat": {"queue": 0},
        "queue": {"second_edits": "none", "queue": 40},
    }
    weights = []
    for name, arm in arms.items():
        run = isotrope.train(
            "esimcse", sentences, model=tiny, output=tmp_path / name, keep_start=False, **common, **arm
        )
        weights.append(load_file(run.folder / "model" / "model.safetensors"))
        if name == "queue":
            seen = [line["candidates"] for line in run.history if "loss" in line]
            assert seen[-1] == 56
    name = next(name for name in weights[0] if name.endswith("attention.self.query.weight"))
    assert not torch.equal(weights[0][name], weights[1][name])
    assert not torch.equal(weights[0][name], weights[2][name])


def test_by_the_mean_there_is_no_head(build: Build, batched: Batched) -> None:
    method = build("mean")
    assert set(method.tower) == {"key", "queue"}
    assert method.represent(batched(method))["keys"].shape == (8, 32)


def test_chunks_give_the_gradient_of_the_whole_batch(build: Build, batched: Batched, chunks_agree: Law) -> None:
    methods = [build(queue=20, dropout=0.1) for _ in range(2)]
    for method in methods:
        keys = torch.randn(15, 32, generator=torch.Generator().manual_seed(1))
        method.tower["queue"].after_update({"keys": keys})
    chunks_agree(*methods)


def test_resume_equals_an_uninterrupted_run_queue_and_all(sentences: Path, resume_agrees: Law) -> None:
    weights = resume_agrees("esimcse", sentences, queue=20, momentum=0.9)
    (place,) = (value for name, value in weights.items() if name.endswith("queue.place"))
    (held,) = (value for name, value in weights.items() if name.endswith("queue.held"))
    assert (int(place), int(held)) == (6 * 8 % 20, 20)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"queue": -1}, "queue"),
        ({"momentum": 1.1}, "momentum"),
        ({"second_edits": "repeat:1.5"}, "repeat takes a share from 0 to 1"),
        ({"fixed_mask": True}, "fixed_mask gives both views one mask"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check(ESimCSE.Settings(**bad))
