"""Linear layers through oneDNN: the same vectors, and a module that is as it was."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from isotrope.encoders import fused_linear
from isotrope.encoders.fused_linear import WORTH_IT, available, fused_linears
from isotrope.encoders.loading import load


@pytest.fixture
def needed() -> None:
    if not available():
        pytest.skip("this torch has no oneDNN operators")


class Intermediate(nn.Module):
    """As the halves of BERT: a linear layer and its activation."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(6, 10)
        self.intermediate_act_fn = GELUActivation()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.intermediate_act_fn(self.dense(rows))


class GELUActivation(nn.Module):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(rows)


@pytest.mark.usefixtures("needed")
def test_a_layer_and_its_gelu_compute_the_same() -> None:
    torch.manual_seed(0)
    module, rows = nn.Sequential(Intermediate(), nn.Linear(10, 3, bias=False)), torch.randn(4, 5, 6)
    with torch.inference_mode():
        plain = module(rows)
        with fused_linears(module, WORTH_IT):
            assert "forward" in vars(module[0])
            assert "forward" in vars(module[1])
            torch.testing.assert_close(module(rows), plain, rtol=1e-5, atol=1e-6)
    assert not any("forward" in vars(part) for part in module.modules())


@pytest.mark.usefixtures("needed")
def test_changed_weights_are_seen_by_the_next_call() -> None:
    layer, rows = nn.Linear(4, 2), torch.ones(1, 4)
    for value in (1.0, 2.0):
        layer.weight.data.fill_(value)
        layer.bias.data.zero_()
        with torch.inference_mode(), fused_linears(layer, WORTH_IT):
            assert layer(rows).tolist() == [[4 * value, 4 * value]]


def test_few_tokens_half_precision_and_hooks_take_the_plain_path() -> None:
    for layer, tokens in ((nn.Linear(2, 2), WORTH_IT - 1), (nn.Linear(2, 2).half(), WORTH_IT), (_hooked(), WORTH_IT)):
        with fused_linears(layer, tokens):
            assert "forward" not in vars(layer)


def _hooked() -> nn.Linear:
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lambda *_: None)
    return layer


def test_an_error_inside_the_block_leaves_the_module_as_it_was() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(KeyError), fused_linears(layer, WORTH_IT):
        raise KeyError
    assert "forward" not in vars(layer)


@pytest.mark.usefixtures("needed")
def test_encode_gives_the_vectors_of_the_plain_path(
    tiny: Path, topics: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load(tiny, device="cpu")
    fused = encoder.encode(topics[:200])
    monkeypatch.setattr(fused_linear, "WORTH_IT", 1 << 40)
    plain = encoder.encode(topics[:200])
    cosines = (fused * plain).sum(1) / np.linalg.norm(fused, axis=1) / np.linalg.norm(plain, axis=1)
    assert cosines.min() > 0.99999


SHAPES = """
import ctypes, torch
from isotrope.encoders.fused_linear import available, _function

class Facts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena a b c mapped d e used free keep".split()]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Facts
assert available()
product = _function(torch.zeros(32, 32), None, "none", "")
used = []
with torch.inference_mode():
    for begin in (1, 301):
        for rows in range(begin, begin + 300):
            product(torch.zeros(rows, 32))
        used.append(library.mallinfo2().used)
print(used[1] - used[0])
"""


@pytest.mark.usefixtures("needed")
def test_kernels_of_many_shapes_are_not_all_kept() -> None:
    """More than are kept were made before the first count; 300 more would take some 50 to 150 MB."""
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("memory in use is asked of glibc")
    unset = {name: value for name, value in os.environ.items() if name not in fused_linear.KEPT}
    done = subprocess.run(
        [sys.executable, "-c", SHAPES],
        env={**unset, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 20_000_000


def test_what_the_user_set_for_kernels_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", raising=False)
    fused_linear.keep_few_kernels()
    assert os.environ["LRU_CACHE_CAPACITY"] == "7"
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == fused_linear.KEPT["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]
