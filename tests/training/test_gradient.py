"""Cached gradients, optimiser groups, and what the step must not touch.

Dropout is on throughout: for SimCSE it is the view.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import isotrope
from isotrope.data.corpus import Records, open_corpus
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.combined import Added, Combined
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.method_registry import find
from isotrope.methods.frame.settings import Settings
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.towers.keeping import Frozen, Momentum, Tower, Trained
from isotrope.training import gathering
from isotrope.training.loop import make_accelerator
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import build_optimiser, build_schedule, rise_and_fall
from isotrope.training.step import compute_gradient, represent

KEY = (42, 3, 0)


def build(name: str, folder: Path, mlm: bool = False) -> Combined:
    torch.manual_seed(0)
    encoder = isotrope.load(folder, pooling="cls", device="cpu", language_head=mlm)
    method = find(name)(find(name).Settings(), encoder, 64)
    added = [Added(MaskedLanguageModel(MLMSettings(), encoder, 64), 0.1)] if mlm else []
    return Combined(method, added).train()


def batch_of(method: Combined, source: Path, needs: tuple[str, ...], count: int = 12) -> Batch:
    tokenizer = method.encoder.text_tokenizer
    corpus = open_corpus(source, needs, tokenizer)
    return Batch(method.views(Records(corpus, list(range(count))), np.random.default_rng(0)), count, 7)


def gradients(method: Combined) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in method.named_parameters() if p.grad is not None}


@pytest.mark.parametrize(
    ("name", "fixture", "mlm"),
    [("simcse", "sentences", False), ("simcse-supervised", "triples", False), ("simcse", "sentences", True)],
)
def test_cached_gradients_equal_plain_ones_with_dropout_on(
    tiny: Path, name: str, fixture: str, mlm: bool, request: pytest.FixtureRequest
) -> None:
    accelerator = make_accelerator(LoopSettings())
    source = request.getfixturevalue(fixture)
    cached, plain = build(name, tiny, mlm), build(name, tiny, mlm)
    kinds = (find(name).card.needs,)
    outcome = compute_gradient(cached, batch_of(cached, source, kinds), accelerator, KEY, chunk_size=5)
    # The same chunks under the same masks, all kept for one backward.
    batch = batch_of(plain, source, kinds)
    parts = [represent(plain, chunk, accelerator, (*KEY, number)) for number, chunk in enumerate(batch.chunks(5))]
    assert len(parts) == 3
    terms = plain.loss({name: torch.cat([part[name] for part in parts]) for name in parts[0]}, batch.generator())
    plain.total(terms).backward()
    assert float(outcome.loss) == pytest.approx(float(plain.total(terms).detach()), abs=1e-6)
    expected, found = gradients(plain), gradients(cached)
    assert found.keys() == expected.keys()
    for key, gradient in expected.items():
        assert torch.allclose(found[key], gradient, atol=1e-6), key
    assert max(float(g.abs().max()) for g in expected.values()) > 1e-3


def test_the_same_key_gives_the_same_masks_and_another_key_others(tiny: Path, sentences: Path) -> None:
    accelerator = make_accelerator(LoopSettings())
    method = build("simcse", tiny)
    batch = batch_of(method, sentences, ("sentences",))
    first, again, other = (compute_gradient(method, batch, accelerator, key).loss for key in (KEY, KEY, (42, 4, 0)))
    assert float(first) == float(again)
    assert float(first) != float(other)


def test_decay_falls_on_matrices_only_and_every_tensor_is_in_one_group(tiny: Path) -> None:
    method = build("simcse", tiny)
    groups = build_optimiser(method, LoopSettings(weight_decay=0.3)).param_groups
    names = {id(p): name for name, p in method.named_parameters()}
    listed = [id(p) for group in groups for p in group["params"]]
    assert sorted(listed) == sorted(names)
    decayed = {names[id(p)] for group in groups if group["weight_decay"] == 0.3 for p in group["params"]}
    assert {name for name in decayed if "bias" in name or "LayerNorm" in name} == set()
    assert any("head" in name for name in decayed)


class Seen(Tower):
    """Notes what it is given after an update."""

    def after_update(self, representations: dict[str, Tensor]) -> None:
        self.key = representations["key"]


class Towers(Method[Settings]):
    """A method with towers of every sort, to hold the frame against."""

    card = Card("towers", "Towers", "", 2026)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        return {
            "frozen": Frozen.copy_of(encoder),
            "momentum": Momentum(encoder, 0.9),
            "head": Trained(nn.Linear(encoder.width, 4), multiple=100.0),
            "seen": Seen(),
        }

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {"text": self.frame(records.tokens())}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (online,) = self.encoder.embed(batch["text"])
        return {
            "online": self.tower["head"](online),
            "frozen": self.tower["head"](self.tower["frozen"](batch["text"])),
            "key": self.tower["momentum"](batch["text"]),
        }

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        noise = torch.randn(4, generator=generator)
        return {"apart": (representations["online"] - representations["frozen"] + noise).pow(2).mean()}


def test_the_frame_carries_frozen_momentum_and_trained_towers(tiny: Path, sentences: Path) -> None:
    accelerator = make_accelerator(LoopSettings())
    torch.manual_seed(0)
    method = Towers(Settings(), isotrope.load(tiny, device="cpu"), 64).train()
    combined = Combined(method)
    frozen, momentum = method.tower["frozen"], method.tower["momentum"]
    assert not any(module.training for module in frozen.module.modules())
    before = {name: p.clone() for name, p in frozen.named_parameters()}
    settings = LoopSettings(learning_rate=1e-3)
    optimiser = build_optimiser(combined, settings)
    assert {group["lr"] for group in optimiser.param_groups} == {1e-3, 1e-1}
    outcome = compute_gradient(combined, batch_of(combined, sentences, ("sentences",)), accelerator, KEY, chunk_size=4)
    optimiser.step()
    combined.after_update(outcome.representations)
    for name, parameter in frozen.named_parameters():
        assert torch.equal(parameter, before[name]), name
        assert parameter.grad is None
    moved = [
        torch.allclose(m, 0.9 * f + 0.1 * o, atol=1e-7) and not torch.equal(m, f)
        for m, f, o in zip(momentum.parameters(), frozen.parameters(), method.encoder.parameters(), strict=True)
        if o.grad is not None and o.grad.abs().sum() > 0
    ]
    assert moved
    assert all(moved)
    assert method.tower["seen"].key.shape == (12, method.encoder.width)


def test_the_rate_rises_then_falls_to_zero(tiny: Path) -> None:
    settings = LoopSettings(learning_rate=1.0, warmup_ratio=0.2)
    optimiser = build_optimiser(build("simcse", tiny), settings)
    schedule = build_schedule(optimiser, lambda step: rise_and_fall(step, 10, settings.warmup_ratio))
    rates = []
    for _ in range(11):
        rates.append(schedule.get_last_lr()[0])
        optimiser.step()
        schedule.step()
    assert rates[0] > 0
    assert rates[2] == max(rates) == 1.0
    assert rates[10] == 0.0
    assert rates[2:] == sorted(rates[2:], reverse=True)


class Unused(Method[Settings]):
    """A head whose vectors no term reads, and one that the loss reads."""

    card = Card(name="unused", title="A head that nobody reads", paper="no paper", year=2024)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        width = encoder.dimension
        return {"head": Trained(nn.Linear(width, width)), "idle": Trained(nn.Linear(width, width))}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {"sentences": self.frame(records.tokens())}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (vectors,) = self.encoder.embed(batch["sentences"])
        return {"read": self.tower["head"](vectors), "idle": self.tower["idle"](vectors)}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {"own": representations["read"].square().mean()}


@pytest.mark.parametrize("chunk_size", [None, 5])
def test_what_the_loss_leaves_out_has_no_gradient_and_so_does_not_decay(
    tiny: Path, sentences: Path, chunk_size: int | None
) -> None:
    method = Combined(Unused(Settings(), isotrope.load(tiny, device="cpu"), 64)).train()
    batch = batch_of(method, sentences, ("sentences",))
    compute_gradient(method, batch, make_accelerator(LoopSettings()), KEY, chunk_size)
    idle, head = (list(method.method.tower[name].parameters()) for name in ("idle", "head"))
    assert all(parameter.grad is None for parameter in idle)
    assert all(parameter.grad is not None for parameter in head)


def test_two_processes_leave_a_weight_that_neither_used_without_a_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gradient of zeros would let it decay, which it does not in one process."""
    both, mine, theirs, nobodys = (nn.Parameter(torch.ones(2)) for _ in range(4))
    both.grad, mine.grad = torch.full((2,), 2.0), torch.full((2,), 4.0)
    used, gradients = [1.0, 0.0, 1.0, 0.0], [4.0, 4.0, 0.0, 0.0, 6.0, 6.0, 0.0, 0.0]
    other = iter((torch.tensor([*used, *gradients]),))
    monkeypatch.setattr(gathering, "processes", lambda: 2)
    monkeypatch.setattr(gathering.distributed, "all_reduce", lambda tensor: tensor.add_(next(other)))
    gathering.average_gradients([both, mine, theirs, nobodys])
    assert [parameter.grad.tolist() for parameter in (both, mine, theirs) if parameter.grad is not None] == [
        [3.0, 3.0],
        [2.0, 2.0],
        [3.0, 3.0],
    ]
    assert nobodys.grad is None
