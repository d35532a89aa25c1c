"""AdamW, Muon beside it, or Adagrad, with decay on weight matrices only, and a rate that rises, then falls to zero, in
straight lines.
"""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import nn
from torch.optim import Adagrad, AdamW
from torch.optim.lr_scheduler import LambdaLR

from isotrope.methods.frame.method import Method
from isotrope.training.muon import Muon, hidden_matrices
from isotrope.training.settings import LoopSettings


def build_optimiser(method: Method, settings: LoopSettings, muon: bool = False) -> torch.optim.Optimizer:
    """Every trainable tensor of the method, its heads and towers included, in exactly one group."""
    multiples = method.rate_of()
    decayed = {
        id(parameter)
        for module in method.modules()
        if not isinstance(module, nn.LayerNorm)
        for name, parameter in module.named_parameters(recurse=False)
        if name != "bias" and parameter.dim() > 1
    }
    matrices = hidden_matrices(method) if muon else []
    taken = {id(weight) for weight in matrices}
    groups: dict[tuple[float, bool], list[nn.Parameter]] = defaultdict(list)
    for parameter in trainable(method):
        if id(parameter) in taken:
            continue
        groups[multiples.get(id(parameter), 1.0), id(parameter) in decayed].append(parameter)
    fused = all(parameter.is_cuda for parameter in trainable(method))
    members = [
        {
            "params": members,
            "lr": settings.learning_rate * multiple,
            "weight_decay": settings.weight_decay if decay else 0.0,
        }
        for (multiple, decay), members in groups.items()
    ]
    if method.optimiser == "adagrad":
        return Adagrad(members, fused=not any(parameter.is_cuda for parameter in trainable(method)))
    adamw = AdamW(members, betas=method.betas, fused=fused)
    return Muon(matrices, adamw, settings.learning_rate, settings.weight_decay) if muon else adamw


def build_schedule(optimiser: torch.optim.Optimizer, settings: LoopSettings, steps: int) -> LambdaLR:
    return LambdaLR(optimiser, lambda step: rise_and_fall(step, steps, settings.warmup_ratio))


def rise_and_fall(step: int, steps: int, warmup_ratio: float) -> float:
    """The share of the rate at a step: up in a straight line, then down to zero."""
    warmup = int(steps * warmup_ratio)
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return max(steps - step, 0) / max(steps - warmup, 1)


def trainable(method: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in method.parameters() if parameter.requires_grad]
