"""Everything that decides the vectors changes the fingerprint; what does not, leaves it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import isotrope
from isotrope.encoders.content_fingerprint import readings
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.dense import Dense
from isotrope.encoders.parts.token_weights import TokenWeights
from isotrope.encoders.pooling import Pooling


def dense(activation: nn.Module | None) -> Dense:
    part = Dense(32, activation=activation)
    with torch.no_grad():
        part.linear.weight.copy_(torch.eye(32))
        part.linear.bias.zero_()
    return part


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_act", "relu"),
        ("layer_norm_eps", 1e-3),
        ("num_attention_heads", 4),
        ("is_decoder", True),
    ],
)
def test_a_config_decides(tiny: Path, name: str, value: Any) -> None:
    encoder = isotrope.load(tiny)
    before = encoder.fingerprint()
    setattr(encoder.backbone.config, name, value)
    assert encoder.fingerprint() != before


@pytest.mark.parametrize("name", ["hidden_dropout_prob", "architectures", "_name_or_path", "use_cache"])
def test_what_no_vector_hangs_on_does_not(tiny: Path, name: str) -> None:
    encoder = isotrope.load(tiny)
    before = encoder.fingerprint()
    setattr(encoder.backbone.config, name, {"hidden_dropout_prob": 0.7, "use_cache": False}.get(name))
    assert encoder.fingerprint() == before


def test_the_activation_of_a_dense_decides(tiny: Path) -> None:
    encoder = isotrope.load(tiny)
    activations = (None, nn.Tanh(), nn.ReLU(), nn.LeakyReLU(0.1), nn.LeakyReLU(0.2))
    prints = {encoder.with_parts([dense(one)]).fingerprint() for one in activations}
    assert len(prints) == len(activations)
    assert encoder.with_parts([dense(nn.Tanh())]).fingerprint() in prints


@pytest.mark.parametrize(
    "change",
    [
        lambda encoder: setattr(encoder, "max_length", 7),
        lambda encoder: setattr(encoder, "prompt", "query: "),
        lambda encoder: setattr(encoder, "pooling", Pooling.named("max", 2)),
        lambda encoder: setattr(encoder, "token_weights", TokenWeights(torch.ones(300))),
        lambda encoder: encoder.backbone.encoder.layer[1].output.dense.bias.data.add_(1e-3),
        lambda encoder: encoder.half(),
        lambda encoder: encoder.bfloat16(),
    ],
)
def test_every_piece_of_an_encoder_decides(tiny: Path, change: Callable[[Encoder], Any]) -> None:
    encoder = isotrope.load(tiny)
    before = encoder.fingerprint()
    change(encoder)
    assert encoder.fingerprint() != before


def test_a_reading_is_that_of_an_encoder_with_its_pooling(tiny: Path) -> None:
    encoder = isotrope.load(tiny)
    names = ("layer:1:cls", "mean", "first_last")
    found = readings(encoder, [Pooling.named(name, 2) for name in names])
    assert found == [isotrope.load(tiny, pooling=name).fingerprint() for name in names]
