"""Chain-thaw (Felbo et al. 2017): first the new head is trained, then each layer alone, then all weights together.

    head         what the method added: its trained towers
    embeddings   of the backbone
    layer 1 … L  one block each, from the bottom up; what stands behind the last one goes with it
    read-out     attention, and parts behind the pooling, where there are such
    all          everything

What a stage freezes has no gradient, so the optimiser does not touch it, nor does weight decay: it stays the same to
the last bit. Each stage is a training of its own, in which the rate rises and falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from torch import nn

from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import Positive
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import rise_and_fall, trainable
from isotrope.training.tactics.layer_names import BLOCK
from isotrope.training.tactics.tactic import Tactic, TacticSettings

HEAD, EMBEDDINGS, READ_OUT, ALL = "head", "embeddings", "read-out", "all"


@dataclass(frozen=True)
class ChainThawSettings(TacticSettings):
    chain_thaw: Annotated[
        str, "Updates of each stage (head, each layer alone, then all): one number, one for each stage, even, or none"
    ] = "none"
    chain_head_rate: Annotated[Positive, "Multiple of the learning rate while only the head is trained"] = 10.0

    @property
    def active(self) -> bool:
        return self.chain_thaw != "none"

    def rules(self) -> None:
        words = [word.strip() for word in self.chain_thaw.split(",")]
        if self.chain_thaw not in ("none", "even") and not all(word.isdecimal() for word in words):
            raise InputError(
                "chain_thaw is none, even, or updates a stage such as 50 or 100,20,20,20; "
                f"'{self.chain_thaw}' was given."
            )


@dataclass(frozen=True)
class Stage:
    """Trains ``parameters`` from update ``start`` up to, not with, ``end``."""

    name: str
    start: int
    end: int
    parameters: tuple[nn.Parameter, ...]


class ChainThaw(Tactic[ChainThawSettings]):
    """Says at each update what is trained. When to use it: a small labelled set and a large pre-trained encoder."""

    card = Card(
        name="chain-thaw",
        title="Chain-thaw, for any method",
        paper="Felbo, Mislove, Søgaard, Rahwan, Lehmann. Using millions of emoji occurrences. EMNLP 2017",
        year=2017,
        needs="what the method needs",
        family="supervised",
        kind="optimiser",
    )
    Settings = ChainThawSettings

    def __init__(self, settings: ChainThawSettings, combined: Combined, loop: LoopSettings, steps: int) -> None:
        super().__init__(settings, combined, loop, steps)
        links = chain(combined)
        lengths = _lengths(settings.chain_thaw, list(links), steps)
        self.stages: list[Stage] = []
        self.current: Stage | None = None
        start = 0
        for (name, parameters), length in zip(links.items(), lengths, strict=True):
            if length:
                self.stages.append(Stage(name, start, start + length, tuple(parameters)))
            start += length

    def stage(self, step: int) -> Stage:
        return next((stage for stage in self.stages if step < stage.end), self.stages[-1])

    def before_update(self, step: int) -> None:
        """Freeze what the stage of this update does not train. What was frozen before the stages is in none of them."""
        stage = self.stage(step)
        if stage is not self.current:
            for parameter in self.stages[-1].parameters:
                parameter.requires_grad_(False)
            for parameter in stage.parameters:
                parameter.requires_grad_()
            self.current = stage

    def rate(self, step: int) -> float:
        stage = self.stage(step)
        share = rise_and_fall(step - stage.start, stage.end - stage.start, self.loop.warmup_ratio)
        return share * (self.settings.chain_head_rate if stage.name == HEAD else 1.0)

    def logged(self, step: int) -> dict[str, Any]:
        return {"trained": self.stage(step).name}


def chain(combined: Combined) -> dict[str, list[nn.Parameter]]:
    """The stages in their order, with the parameters of each; those that would train nothing are left out."""
    everything = trainable(combined)
    learns = {id(parameter) for parameter in everything}
    online = list(combined.encoder.parameters())
    inside = {id(parameter) for parameter in online}
    head = [parameter for parameter in everything if id(parameter) not in inside]
    found: dict[str, list[nn.Parameter]] = {HEAD: head, EMBEDDINGS: []}
    last = EMBEDDINGS
    for name, parameter in combined.encoder.backbone.named_parameters():
        block = BLOCK.search(f".{name}")
        last = f"layer {int(block[0].split('.')[2]) + 1}" if block else last
        found.setdefault(last, []).append(parameter)
    if last == EMBEDDINGS:
        backbone = type(combined.encoder.backbone).__name__
        raise InputError(f"Chain-thaw trains one layer after another, and a {backbone} has no layers that it knows.")
    placed = {id(parameter) for parameters in found.values() for parameter in parameters}
    found[READ_OUT] = [parameter for parameter in online if id(parameter) not in placed]
    stages = {name: [p for p in parameters if id(p) in learns] for name, parameters in found.items()}
    return {name: parameters for name, parameters in stages.items() if parameters} | {ALL: everything}


def _lengths(asked: str, names: list[str], steps: int) -> list[int]:
    """How many updates each stage has; the last one, with all weights, has what the others leave."""
    single = len(names) - 1
    if asked == "even":
        given = [steps // len(names)] * single
        if not given[0]:
            raise InputError(
                f"The run has {steps} steps, and chain-thaw {len(names)} stages ({', '.join(names)}); "
                "give it more steps."
            )
    else:
        given = [int(number) for number in asked.split(",")]
        given = given * single if len(given) == 1 else given
    if len(given) != single:
        raise InputError(
            f"chain_thaw gives {len(given)} numbers of steps; {single} are needed, for {', '.join(names[:-1])}."
        )
    if sum(given) >= steps:
        raise InputError(
            f"The stages of chain_thaw {asked} take {sum(given):,} steps before all weights are trained, and the run "
            f"has {steps:,}; give the stages fewer steps, or the run more (max_steps, epochs)."
        )
    return [*given, steps - sum(given)]
