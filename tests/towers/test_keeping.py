"""Frozen stays frozen, momentum follows by its formula."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import isotrope
from isotrope.towers.keeping import Frozen, Momentum, Trained


class Parent(nn.Module):
    def __init__(self, **parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(parts)


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 2))


def rows() -> torch.Tensor:
    return torch.randn(8, 6, generator=torch.Generator().manual_seed(1))


# ---------------------------------------------------------------------------------------------------- frozen


@pytest.mark.parametrize(
    "make", [Frozen, Frozen.copy_of, lambda module: Momentum(module, 0.9)], ids=["frozen", "copy", "momentum"]
)
def test_frozen_stays_in_eval_mode_whoever_calls_train(make):
    frozen = make(small())
    parent = Parent(frozen=frozen, other=nn.Dropout())
    for _ in range(2):
        parent.train()
        assert parent.parts["other"].training
        assert not any(part.training for part in frozen.module.modules())
        frozen.train(True)
        assert not any(part.training for part in frozen.module.modules())
        parent.eval()
    parent.train()
    statistics = copy.deepcopy(dict(frozen.module.named_buffers()))
    torch.testing.assert_close(frozen(rows()), frozen(rows()), rtol=0, atol=0)
    for name, buffer in frozen.module.named_buffers():
        assert torch.equal(buffer, statistics[name])


def test_frozen_has_no_gradient():
    frozen = Frozen(small())
    inputs = rows().requires_grad_()
    assert not frozen(inputs).requires_grad
    assert not any(parameter.requires_grad for parameter in frozen.parameters())
    learner = nn.Linear(2, 1)
    learner(frozen(inputs)).sum().backward()
    assert learner.weight.grad is not None
    assert all(parameter.grad is None for parameter in frozen.parameters())
    assert inputs.grad is None


def test_a_frozen_copy_does_not_follow_its_original():
    online = small()
    frozen = Frozen.copy_of(online)
    before = frozen(rows())
    with torch.no_grad():
        for parameter in online.parameters():
            parameter.add_(1)
    torch.testing.assert_close(frozen(rows()), before, rtol=0, atol=0)
    assert all(parameter.requires_grad for parameter in online.parameters())


def test_a_frozen_encoder_gives_its_eval_vectors_in_training(tiny, topics):
    encoder, texts = isotrope.load(tiny, device="cpu"), topics[:20]
    expected = encoder.encode(texts)
    parent = Parent(teacher=Frozen.copy_of(encoder.train())).train()
    assert (parent.parts["teacher"].module.encode(texts) == expected).all()
    assert encoder.training


# ---------------------------------------------------------------------------------------------------- momentum


def test_momentum_starts_equal_and_follows_by_the_formula():
    online = small().double()
    tower = Momentum(online, decay=0.9)
    expected = {name: value.clone() for name, value in online.named_parameters()}
    for name, value in tower.module.named_parameters():
        assert torch.equal(value, expected[name])
        assert value.data_ptr() != dict(online.named_parameters())[name].data_ptr()
    for step in range(3):
        with torch.no_grad():
            for number, parameter in enumerate(online.parameters()):
                parameter.add_(torch.full_like(parameter, 0.1 * (step + number + 1)))
        online.train()(rows().double())  # moves the statistics of the normalisation
        tower.follow()
        for name, value in online.named_parameters():
            expected[name] = 0.9 * expected[name] + 0.1 * value.detach()
            torch.testing.assert_close(
                dict(tower.module.named_parameters())[name].data, expected[name], rtol=0, atol=1e-12
            )
        for name, buffer in online.named_buffers():
            assert torch.equal(dict(tower.module.named_buffers())[name], buffer)
    assert dict(tower.module.named_buffers())["1.num_batches_tracked"] == 3


@pytest.mark.parametrize(("decay", "follows"), [(1.0, False), (0.0, True)])
def test_momentum_at_its_ends(decay, follows):
    online = small()
    tower = Momentum(online, decay)
    start = tower.module[0].weight.clone()
    with torch.no_grad():
        online[0].weight.mul_(3).add_(1)
    tower.follow()
    torch.testing.assert_close(
        tower.module[0].weight.data, online[0].weight.data if follows else start, rtol=0, atol=1e-6
    )


def test_momentum_does_not_own_what_it_follows():
    online = small()
    tower = Momentum(online, 0.9)
    own = {id(parameter) for parameter in tower.parameters()}
    assert not own & {id(parameter) for parameter in online.parameters()}
    assert len(tower.state_dict()) == len(online.state_dict())
    assert not any(parameter.requires_grad for parameter in tower.parameters())
    assert all(parameter.requires_grad for parameter in online.parameters())


def test_trained_learns():
    role = Trained(nn.Linear(6, 2), multiple=10.0)
    role(rows()).sum().backward()
    assert role.module.weight.grad is not None
    assert role.rate(1e-4) == pytest.approx(1e-3)


def test_a_rate_of_its_own_does_not_follow_the_loops():
    role = Trained(nn.Linear(6, 2), learning_rate=5e-4)
    assert {role.rate(given) for given in (1e-6, 1e-4, 1.0)} == {5e-4}
