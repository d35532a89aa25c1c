"""The functions of a layer, compiled: once for all layers, lengths and models of a process."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from isotrope.encoders.layer_parts import embed_forward, layer_forward, mix, settle

VARIANTS = 128  # of a compiled function: rates, widths and lengths that it met


@cache
def can_compile() -> bool:
    """Whether torch's compiler has what it needs: triton, and a compiler of C."""
    return importlib.util.find_spec("triton") is not None and any(map(shutil.which, ("cc", "gcc", "clang")))


@cache
def compiled_layer() -> Callable[..., Tensor]:
    """One graph for all layers, and for every number of tokens."""
    _allow_variants()
    return torch.compile(layer_forward, dynamic=True)


def _allow_variants() -> None:
    """A process that trains many models, as a comparison does, needs more graphs of one function than torch keeps; past
    its limit it goes on uncompiled, and says nothing."""
    from torch._dynamo import config

    config.recompile_limit = max(config.recompile_limit, VARIANTS)
    config.accumulated_recompile_limit = max(config.accumulated_recompile_limit, 8 * VARIANTS)


@dataclass(frozen=True)
class Parts:
    """The functions that a forward consists of."""

    embed: Callable[..., Tensor] = embed_forward
    mix: Callable[..., Tensor] = mix
    settle: Callable[..., Tensor] = settle


@cache
def compiled_parts() -> Parts:
    """Each for the sizes and rates that it is called with; one graph serves all layers.

    Nothing is lost between the parts: attention is a kernel of its own, which no compiler would fuse with others.
    """
    _allow_variants()
    return Parts(*(torch.compile(part, dynamic=False) for part in (embed_forward, mix, settle)))


def any_number(rows: Tensor) -> Tensor:
    """The same tensor, with a note for the compiler: there may be another number of rows next time."""
    torch._dynamo.maybe_mark_dynamic(rows, 0)
    return rows


def same_number(rows: Tensor) -> Tensor:
    return rows
