"""LARS (You, Gitman, Ginsburg 2017), as SimCLR uses it: each tensor's step is as long as the tensor allows.

    g ← g + λ·w        trust = η·‖w‖ / ‖g‖ (1 where a norm is 0)
    v ← μ·v + rate·trust·g        w ← w − v

Biases and the scales of norms are left out: no decay, trust 1. The rate stands inside the momentum, as in the published
code, so a falling rate does not shrink what was gathered before.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

TRUST = 0.001  # η


class LARS(Optimizer):
    """A group with ``adapts`` False is plain SGD with momentum."""

    def __init__(self, groups: list[dict[str, Any]], momentum: float = 0.9, trust: float = TRUST) -> None:
        defaults = {"lr": 0.0, "weight_decay": 0.0, "momentum": momentum, "trust": trust, "adapts": True}
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if not weights:
                continue
            gradients: list[Tensor] = [weight.grad for weight in weights]
            for weight in weights:
                if "velocity" not in self.state[weight]:
                    self.state[weight]["velocity"] = torch.zeros_like(weight)
            velocities: list[Tensor] = [self.state[weight]["velocity"] for weight in weights]
            torch._foreach_mul_(velocities, group["momentum"])
            if not group["adapts"]:
                torch._foreach_add_(velocities, gradients, alpha=group["lr"])
            else:
                changed = torch._foreach_add(gradients, weights, alpha=group["weight_decay"])
                norms, lengths = torch._foreach_norm(weights), torch._foreach_norm(changed)
                shares = group["lr"] * _trust(torch.stack(list(norms)), torch.stack(list(lengths)), group["trust"])
                torch._foreach_mul_(changed, list(shares.unbind()))
                torch._foreach_add_(velocities, changed)
            torch._foreach_sub_(weights, velocities)


def _trust(norms: Tensor, lengths: Tensor, trust: float) -> Tensor:
    plain = (norms == 0) | (lengths == 0)
    return torch.where(plain, torch.ones_like(norms), trust * norms / torch.where(plain, 1.0, lengths))
