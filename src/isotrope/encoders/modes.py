"""Eval mode for a while, and one dropout rate for a whole backbone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import nn

ModuleT = TypeVar("ModuleT", bound=nn.Module)


@contextmanager
def evaluating(module: ModuleT) -> Iterator[ModuleT]:
    """Eval mode and no gradient inside the block; each submodule gets its own mode back after it."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        with torch.inference_mode():
            yield module
    finally:
        for part, mode in modes.items():
            part.training = mode


def set_dropout(module: nn.Module, rate: float) -> None:
    """Set every dropout of a backbone, in attention too, to one rate."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = rate
        elif isinstance(getattr(part, "attention_dropout", None), float):
            part.attention_dropout = rate  # type: ignore[assignment]
