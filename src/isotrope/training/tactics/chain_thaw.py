"""Chain-thaw (Felbo et al. 2017): first the new head is trained, then each layer alone from the bottom up, then all
weights together.

    head         what the method added: its trained roles
    embeddings   of the backbone
    layer 1 … L  one block each; what stands behind the last one goes with it
    read-out     attention, and modules behind the pooling, where there are such
    all          everything

What a stage freezes has no gradient, so the optimiser does not touch it, nor does weight decay: it stays the same to
the last bit. Each stage is a training of its own, in which the rate rises and falls; that of the head has
``chain_head_rate`` times the rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from isotrope.errors import InputError
from isotrope.methods.frame.method import Method
from isotrope.training.optimiser import rise_and_fall, trainable
from isotrope.training.settings import LoopSettings
from isotrope.training.tactics.child_tuning import BLOCK

HEAD, EMBEDDINGS, READ_OUT, ALL = "head", "embeddings", "read-out", "all"


@dataclass(frozen=True)
class Stage:
    """Trains ``parameters`` from update ``start`` up to, not with, ``end``."""

    name: str
    start: int
    end: int
    parameters: tuple[nn.Parameter, ...]


class ChainThaw:
    """Says at each update what is trained.

    It knows the update's number only, so a resumed run goes on in the middle of a stage.
    """

    def __init__(self, stages: Sequence[Stage], settings: LoopSettings) -> None:
        self.stages, self.settings = stages, settings
        self.current: Stage | None = None

    def stage(self, step: int) -> Stage:
        return next((stage for stage in self.stages if step < stage.end), self.stages[-1])

    def begin(self, step: int) -> None:
        """Freeze what the stage of this update does not train.

        What was frozen before there were stages is in none of them.
        """
        stage = self.stage(step)
        if stage is not self.current:
            for parameter in self.stages[-1].parameters:
                parameter.requires_grad_(False)
            for parameter in stage.parameters:
                parameter.requires_grad_()
            self.current = stage

    def rate(self, step: int) -> float:
        """The share of the learning rate that this update has."""
        stage = self.stage(step)
        share = rise_and_fall(step - stage.start, stage.end - stage.start, self.settings.warmup_ratio)
        return share * (self.settings.chain_head_rate if stage.name == HEAD else 1.0)


def thaw_of(method: Method, settings: LoopSettings, steps: int) -> ChainThaw | None:
    """What the settings ask for. Call it while everything that is ever trained can be."""
    if settings.chain_thaw == "none":
        return None
    links = chain(method)
    lengths = _lengths(settings.chain_thaw, list(links), steps)
    stages, start = [], 0
    for (name, parameters), length in zip(links.items(), lengths, strict=True):
        if length:
            stages.append(Stage(name, start, start + length, tuple(parameters)))
        start += length
    return ChainThaw(stages, settings)


def chain(method: Method) -> dict[str, list[nn.Parameter]]:
    """The stages in their order, with the parameters of each; those that would train nothing are left out."""
    everything = trainable(method)
    learns = {id(parameter) for parameter in everything}
    online = list(method.encoder.parameters())
    inside = {id(parameter) for parameter in online}
    found: dict[str, list[nn.Parameter]] = {
        HEAD: [parameter for parameter in everything if id(parameter) not in inside],
        EMBEDDINGS: [],
    }
    last = EMBEDDINGS
    for name, parameter in method.encoder.backbone.named_parameters():
        block = BLOCK.search(f".{name}")
        last = f"layer {int(block[0].split('.')[2]) + 1}" if block else last
        found.setdefault(last, []).append(parameter)
    if last == EMBEDDINGS:
        kind = type(method.encoder.backbone).__name__
        raise InputError(f"Chain-thaw trains one layer after another, and a {kind} has no layers that it knows.")
    placed = {id(parameter) for parameters in found.values() for parameter in parameters}
    found[READ_OUT] = [parameter for parameter in online if id(parameter) not in placed]
    stages = {
        name: [parameter for parameter in parameters if id(parameter) in learns] for name, parameters in found.items()
    }
    return {name: parameters for name, parameters in stages.items() if parameters} | {ALL: everything}


def _lengths(asked: str, names: list[str], steps: int) -> list[int]:
    """How many updates each stage has; the last one, with all weights, has what the others leave."""
    single = len(names) - 1
    if asked == "even":
        given = [steps // len(names)] * single
        if not given[0]:
            raise InputError(
                f"The run has {steps} steps, and chain-thaw {len(names)} stages ({', '.join(names)}); give it more steps."
            )
    else:
        numbers = [number.strip() for number in asked.split(",")]
        if not all(number.isdecimal() for number in numbers):
            raise InputError(
                f"chain_thaw is none, even, or steps a stage such as 50 or 100,20,20,20; '{asked}' was given."
            )
        given = [int(number) for number in numbers]
        given = given * single if len(given) == 1 else given
    if len(given) != single:
        raise InputError(
            f"chain_thaw gives {len(given)} numbers of steps; {single} are needed, for {', '.join(names[:-1])}."
        )
    if sum(given) >= steps:
        raise InputError(
            f"The stages of chain_thaw {asked} take {sum(given):,} steps before all weights are trained, and the run has {steps:,}; "
            "give the stages fewer steps, or the run more (max_steps, epochs)."
        )
    return [*given, steps - sum(given)]
