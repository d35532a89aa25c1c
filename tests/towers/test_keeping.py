"""Frozen stays frozen, momentum follows by its formula, dropout reaches every part."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from isotrope.encoders.modes import evaluating, set_dropout
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


# --------------------------------------------------------------------------------------------------------------------------
# frozen


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


def test_a_frozen_encoder_gives_its_eval_vectors_in_training(fresh, texts):
    encoder = fresh()
    expected = encoder.encode(texts)
    parent = Parent(teacher=Frozen.copy_of(encoder.train())).train()
    assert (parent.parts["teacher"].module.encode(texts) == expected).all()
    assert encoder.training


# ------------------------------------------------------------------------------------------------------------------------
# momentum


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
    role = Trained(nn.Linear(6, 2), learning_rate=10.0)
    role(rows()).sum().backward()
    assert role.module.weight.grad is not None
    assert role.learning_rate == 10.0


# ------------------------------------------------------------------------------------------------------------- modes
# and dropout


def test_evaluating_puts_back_each_part_as_it_was():
    module = nn.Sequential(small(), Frozen(small()), small().eval()).train()
    module[2].eval()
    before = [part.training for part in module.modules()]
    with evaluating(module) as inside:
        assert inside is module
        assert not any(part.training for part in module.modules())
        assert not module[0](rows()).requires_grad
    assert [part.training for part in module.modules()] == before
    assert {True, False} == set(before)


def attention_rates(encoder, monkeypatch) -> set[float]:
    """The dropout that attention is really called with in training."""
    rates = set()
    attend = nn.functional.scaled_dot_product_attention

    def watched(*args, dropout_p=0.0, **named):
        rates.add(dropout_p)
        return attend(*args, dropout_p=dropout_p, **named)

    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", watched)
    encoder.train()(encoder.frame([torch.arange(7, 12).numpy()] * 2))
    return rates


@pytest.mark.parametrize("rate", [0.0, 0.25])
def test_dropout_reaches_attention(rate, fresh, monkeypatch):
    encoder = fresh()
    set_dropout(encoder.backbone, rate)
    assert {part.p for part in encoder.backbone.modules() if isinstance(part, nn.Dropout)} == {rate}
    assert attention_rates(encoder, monkeypatch) == {rate}


def test_without_dropout_training_gives_the_vectors_of_evaluation(fresh, texts):
    encoder = fresh()
    tokens = encoder.frame([torch.arange(5, 20).numpy()])
    expected = encoder(tokens)
    assert not torch.allclose(encoder.train()(tokens), expected, atol=1e-3)
    set_dropout(encoder.backbone, 0.0)
    torch.testing.assert_close(encoder.train()(tokens), expected, rtol=0, atol=1e-5)


def test_dropout_kept_as_a_number_is_set_too():
    from transformers import ModernBertConfig, ModernBertModel

    shape = {
        "vocab_size": 50,
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    model = ModernBertModel(
        ModernBertConfig(**shape, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
    )
    set_dropout(model, 0.3)
    rates = {
        part.attention_dropout
        for part in model.modules()
        if isinstance(getattr(part, "attention_dropout", None), float)
    }
    assert rates == {0.3}
