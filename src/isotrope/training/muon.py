"""Muon (Jordan et al. 2024): momentum whose singular values are all made one; for the weight matrices of the layers.

    M ← μ·M + G,   W ← (1 − η·λ)·W − η · 0.2·√max(rows, columns) · orthogonal(G + μ·M)

The factor gives a step the size that AdamW's would have (Liu et al. 2025), so both share one rate. Everything else
(embeddings, norms, biases) is AdamW's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

# Coefficients of each step; the first ones lift small singular values, the last ones gather them around one.
NEWTON_SCHULZ = (
    (4.0848, -6.8946, 2.9270),
    (3.9505, -6.3029, 2.6377),
    (3.7418, -5.5913, 2.3037),
    (2.8769, -3.1427, 1.2046),
    (2.8366, -3.0525, 1.2012),
)


class Muon(Optimizer):
    """``matrices`` by Muon, the groups of ``rest`` by AdamW; one list of groups for the schedule."""

    def __init__(
        self, matrices: Sequence[Tensor], rest: AdamW, learning_rate: float, weight_decay: float, momentum: float = 0.95
    ):
        super().__init__(
            [{"params": list(matrices)}], {"lr": learning_rate, "weight_decay": weight_decay, "momentum": momentum}
        )
        self.rest = rest
        self.param_groups += rest.param_groups  # the same dictionaries: a schedule that writes here writes there

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        self.rest.step()
        group = self.param_groups[0]
        alike: dict[torch.Size, list[Tensor]] = defaultdict(list)
        for weight in group["params"]:
            if weight.grad is not None:
                alike[weight.shape].append(weight)
        for shape, weights in alike.items():  # matrices of one shape together: few, large kernels
            gradients = [weight.grad for weight in weights if weight.grad is not None]
            momenta = [self.state[weight].setdefault("momentum", torch.zeros_like(weight)) for weight in weights]
            torch._foreach_mul_(momenta, group["momentum"])
            torch._foreach_add_(momenta, gradients)
            ahead = torch._foreach_add(gradients, momenta, alpha=group["momentum"])
            updates = orthogonal(torch.stack(ahead)).to(weights[0].dtype)
            torch._foreach_mul_(weights, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(weights, list(updates.unbind()), alpha=-0.2 * max(shape) ** 0.5 * group["lr"])

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        self.rest.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        own = self.param_groups[0]
        momenta = [self.state[weight].get("momentum") for weight in own["params"]]
        return {
            "momenta": momenta,
            "group": {k: v for k, v in own.items() if k != "params"},
            "rest": self.rest.state_dict(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        own = self.param_groups[0]
        own.update(state_dict["group"])
        for weight, momentum in zip(own["params"], state_dict["momenta"], strict=True):
            if momentum is not None:
                self.state[weight]["momentum"] = momentum.to(weight)
        self.rest.load_state_dict(state_dict["rest"])
        self.param_groups = [own, *self.rest.param_groups]


def orthogonal(matrices: Tensor) -> Tensor:
    """U·Vᵀ of each [n, rows, columns] = U·S·Vᵀ, roughly: singular values come out within 5 % of one, the smallest ones
    less.

    Five steps of an odd polynomial, the first ones steep, the last ones flat around one. In bfloat16 on a GPU, float32
    elsewhere.
    """
    x = matrices.bfloat16() if matrices.is_cuda else matrices.float()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) * 1.01 + 1e-7)
    for a, b, c in NEWTON_SCHULZ:
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


def hidden_matrices(module: nn.Module) -> list[Tensor]:
    """Trainable weights of linear maps; a map that shares its weight with an embedding is none of them."""
    tables = {id(part.weight) for part in module.modules() if isinstance(part, nn.Embedding)}
    found = {
        id(part.weight): part.weight
        for part in module.modules()
        if isinstance(part, nn.Linear) and part.weight.requires_grad and id(part.weight) not in tables
    }
    return list(found.values())
