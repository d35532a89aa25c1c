"""AdamW, Muon with AdamW, Adagrad, SGD, LARS or RMSprop, decay of weight matrices only, the schedule of the rate."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, cast

from torch import Tensor, nn
from torch.optim import SGD, Adagrad, AdamW, Muon, Optimizer, RMSprop
from torch.optim.lr_scheduler import LambdaLR

from isotrope.methods.frame.learner import Learner
from isotrope.training.lars import LARS
from isotrope.training.loop_settings import LoopSettings


def build_optimiser(combined: Learner, settings: LoopSettings) -> Optimizer:
    """Every trainable tensor of the method, its heads and towers included, in exactly one group."""
    if settings.optimiser == "muon":
        matrices = hidden_matrices(combined)
        rest = _groups(combined, settings, leave_out=matrices)
        muon = Muon(
            matrices,
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            adjust_lr_fn="match_rms_adamw",  # both share one rate
        )
        return Joined([muon, _adamw(rest, combined, settings)])
    groups = _groups(combined, settings)
    if settings.optimiser == "adagrad":  # a row that had no gradient stays as it is
        return Adagrad(groups, fused=not any(parameter.is_cuda for parameter in trainable(combined)))
    if settings.optimiser == "sgd":
        return SGD(groups, lr=settings.learning_rate, momentum=settings.sgd_momentum)
    if settings.optimiser == "rmsprop":  # decay and epsilon of TensorFlow, where papers took theirs from
        return RMSprop(groups, lr=settings.learning_rate, alpha=0.9, eps=1e-7)
    if settings.optimiser == "lars":
        # A group holds matrices and kernels, or else biases and norms.
        adapted = [{**group, "adapts": group["params"][0].dim() > 1} for group in groups]
        return LARS(adapted, settings.sgd_momentum)
    return _adamw(groups, combined, settings)


def _adamw(groups: list[dict[str, Any]], combined: Learner, settings: LoopSettings) -> AdamW:
    fused = all(parameter.is_cuda for parameter in trainable(combined))
    return AdamW(groups, betas=(settings.adam_beta1, settings.adam_beta2), fused=fused)


def _groups(combined: Learner, settings: LoopSettings, leave_out: Sequence[Tensor] = ()) -> list[dict[str, Any]]:
    rates, taken = combined.rates(settings.learning_rate), {id(weight) for weight in leave_out}
    decayed = {
        id(parameter)
        for module in combined.modules()
        if not isinstance(module, nn.LayerNorm)
        for name, parameter in module.named_parameters(recurse=False)
        if name != "bias" and parameter.dim() > 1
    }
    groups: dict[tuple[float, bool], list[nn.Parameter]] = defaultdict(list)
    for parameter in trainable(combined):
        if id(parameter) not in taken:
            groups[rates.get(id(parameter), settings.learning_rate), id(parameter) in decayed].append(parameter)
    return [
        {
            "params": members,
            "lr": rate,
            "weight_decay": settings.weight_decay if decay else 0.0,
        }
        for (rate, decay), members in groups.items()
    ]


class Joined(Optimizer):
    """Several optimisers, each with its own parameters, behind one list of groups for the schedule."""

    def __init__(self, members: Sequence[Optimizer]) -> None:
        self.members = list(members)
        super().__init__([{"params": group["params"]} for member in members for group in member.param_groups], {})
        self._share_groups()

    def _share_groups(self) -> None:
        """The same dictionaries: a schedule that writes here writes there."""
        self.param_groups = [group for member in self.members for group in member.param_groups]

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for member in self.members:
            member.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for member in self.members:
            member.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        return {"members": [member.state_dict() for member in self.members]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for member, state in zip(self.members, state_dict["members"], strict=True):
            member.load_state_dict(state)
        self._share_groups()


def hidden_matrices(module: nn.Module) -> list[nn.Parameter]:
    """Trainable weights of linear maps; a map that shares its weight with an embedding is none of them."""
    tables = {id(part.weight) for part in module.modules() if isinstance(part, nn.Embedding)}
    found = {
        id(part.weight): part.weight
        for part in module.modules()
        if isinstance(part, nn.Linear) and part.weight.requires_grad and id(part.weight) not in tables
    }
    return cast("list[nn.Parameter]", list(found.values()))


def build_schedule(optimiser: Optimizer, share: Callable[[int], float]) -> LambdaLR:
    """The rate of each group times ``share`` of the step."""
    return LambdaLR(optimiser, share)


def rise_and_fall(step: int, steps: int, warmup_ratio: float, schedule: str = "linear") -> float:
    """The share of the rate at a step: up in a straight line, then down to zero, in one too or by half a cosine.

    "constant" stays up, as papers without a schedule do.
    """
    warmup = int(steps * warmup_ratio)
    if step < warmup:
        return (step + 1) / (warmup + 1)
    if schedule == "constant":
        return 1.0
    left = max(steps - step, 0) / max(steps - warmup, 1)
    return left if schedule == "linear" else 0.5 * (1 - math.cos(math.pi * left))


def trainable(module: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in module.parameters() if parameter.requires_grad]
