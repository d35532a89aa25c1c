"""Eval mode for a while leaves each part as it was; one dropout rate reaches every part of a backbone."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from isotrope.encoders.modes import evaluating, set_dropout


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 2))


def rows() -> torch.Tensor:
    return torch.randn(8, 6, generator=torch.Generator().manual_seed(1))


class AlwaysEval(nn.Sequential):
    """Stays in eval mode whoever calls ``train()``, as a frozen tower does."""

    def train(self, mode: bool = True) -> AlwaysEval:
        return super().train(False)


def test_evaluating_puts_back_each_part_as_it_was():
    module = nn.Sequential(small(), AlwaysEval(small()), small().eval()).train()
    module[2].eval()
    before = [part.training for part in module.modules()]
    with evaluating(module) as inside:
        assert inside is module
        assert not any(part.training for part in module.modules())
        assert not module[0](rows()).requires_grad
    assert [part.training for part in module.modules()] == before
    assert {True, False} == set(before)


def test_threads_that_share_a_part_leave_it_in_eval_mode_until_the_last_is_done():
    shared = small()
    first, second = nn.Sequential(shared).train(), nn.Sequential(shared, small()).train()
    begun, go_on = threading.Event(), threading.Event()

    def other() -> None:
        with evaluating(first):
            begun.set()
            go_on.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    assert begun.wait(10)
    with evaluating(second):
        go_on.set()
        thread.join()
        assert first.training
        assert not any(part.training for part in second.modules())
    assert all(part.training for module in (first, second) for part in module.modules())


def test_blocks_inside_one_another_and_a_failure_put_the_modes_back():
    module = small().train()
    with pytest.raises(KeyboardInterrupt), evaluating(module), evaluating(module[2]):
        raise KeyboardInterrupt
    assert all(part.training for part in module.modules())
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    module.eval()
    with evaluating(module):
        pass
    assert not any(part.training for part in module.modules())


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
