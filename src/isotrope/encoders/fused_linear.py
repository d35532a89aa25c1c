"""Linear layers through oneDNN while texts are encoded on a CPU: weights laid out once a call, GELU inside the product.

    y = x Wᵀ + b        and, where a layer is followed by its GELU,        y = GELU(x Wᵀ + b)

Torch hands a plain float32 product to its BLAS, which on many processors is slower than oneDNN, and reads and writes
the widest state of a layer once more for the GELU. The operators are those that torch's own compiler emits for frozen
weights; they have no public name, so a torch without them, or without oneDNN, takes the plain path. Values agree to
rounding. Weights are laid out at every call that is long enough to pay for it: nothing can go stale in training.

oneDNN compiles a kernel for every number of rows and keeps the last 1,024, and torch keeps as many descriptions in each
thread: half a megabyte a kernel, so that a process that encodes now and then grows for hours. ``KEPT`` is enough for
groups that come sorted by length.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

ROWS = 1024  # what one product usually has; the layout suits other numbers too
KEPT = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128", "LRU_CACHE_CAPACITY": "32"}  # kernels; what the user set goes first
WORTH_IT = 1024  # tokens in a call; with fewer, laying the weights out costs more than it saves
APPROXIMATIONS = {"GELUActivation": "none", "GELUTanh": "tanh", "NewGELUActivation": "tanh"}


def keep_few_kernels() -> None:
    """Torch reads the variables when it makes its first kernel, of whatever kind: so they are set at import."""
    for name, capacity in KEPT.items():
        os.environ.setdefault(name, capacity)


keep_few_kernels()


@contextmanager
def fused_linears(module: nn.Module, tokens: int) -> Iterator[None]:
    """Inside the block the module's linear layers compute through oneDNN, where that is possible and pays.

    Each layer is changed by one assignment of its ``forward``, so a second thread that encodes with the same module
    sees a layer that computes the same in either state.
    """
    changed: list[nn.Module] = []
    try:
        if tokens >= WORTH_IT and available():
            for part in module.modules():
                found = _fused(part)
                if found is not None and "forward" not in vars(part):
                    vars(part)["forward"] = found
                    changed.append(part)
        yield
    finally:
        for part in changed:
            vars(part).pop("forward", None)


@cache
def available() -> bool:
    """Whether this torch has the operators, and they compute what a linear layer does."""
    if not torch.backends.mkldnn.is_available():
        return False
    rows, weight, bias = torch.eye(3, 4), torch.arange(8.0).view(2, 4), torch.ones(2)
    try:
        with torch.inference_mode():
            found = _function(weight, bias, "gelu", "none")(rows)
    except (AttributeError, RuntimeError, TypeError):
        return False
    return torch.allclose(found, nn.functional.gelu(nn.functional.linear(rows, weight, bias)), atol=1e-5)


def _fused(part: nn.Module) -> Callable[[Tensor], Tensor] | None:
    if type(part) is nn.Linear:
        return _of_layer(part, "none", "")
    # The feed-forward half of BERT and its kin: one module with a linear layer and its activation.
    dense, activation = getattr(part, "dense", None), getattr(part, "intermediate_act_fn", None)
    named = APPROXIMATIONS.get(type(activation).__name__)
    approximation = activation.approximate if isinstance(activation, nn.GELU) else named
    if type(dense) is nn.Linear and approximation and type(part).__name__.endswith("Intermediate"):
        return _of_layer(dense, "gelu", approximation)
    return None


def _of_layer(layer: nn.Linear, activation: str, approximation: str) -> Callable[[Tensor], Tensor] | None:
    weight = layer.weight
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or _hooked(layer):
        return None
    return _function(weight, layer.bias, activation, approximation)


def _hooked(layer: nn.Module) -> bool:
    return bool(layer._forward_hooks or layer._forward_pre_hooks)


def _function(weight: Tensor, bias: Tensor | None, activation: str, approximation: str) -> Callable[[Tensor], Tensor]:
    operators: Any = torch.ops.mkldnn
    laid_out = operators._reorder_linear_weight(weight.detach(), ROWS)

    def forward(rows: Tensor) -> Tensor:
        found: Tensor = operators._linear_pointwise(rows, laid_out, bias, activation, [], approximation)
        return found

    return forward
