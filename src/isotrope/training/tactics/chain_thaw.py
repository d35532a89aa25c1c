"""Chain-thaw (Felbo et al. 2017): first the new head is trained, then each layer alone, then all weights together.

    head         what the method added: its trained towers
    embeddings   of the backbone
    layer 1 … L  one block each, from the bottom up; what stands behind the last one goes with it
    read-out     attention, and parts behind the pooling, where there are such
    all          everything

What a stage freezes has no gradient, so the optimiser does not touch it, nor does weight decay: it stays the same to
the last bit. Each stage is a training of its own, in which the rate rises and falls as the loop's schedule says. A
stage whose score no longer rises ends before its time; what it leaves goes to the last stage. The best weights of a
stage are put back behind it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import Positive, at_least
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import rise_and_fall, trainable
from isotrope.training.tactics.tactic import BLOCK, Tactic, TacticSettings

HEAD, EMBEDDINGS, READ_OUT, ALL = "head", "embeddings", "read-out", "all"


@dataclass(frozen=True)
class ChainThawSettings(TacticSettings):
    chain_thaw: Annotated[
        str, "Updates of each stage (head, each layer alone, then all): one number, one for each stage, even, or none"
    ] = "none"
    stage_patience: Annotated[
        int | None,
        at_least(1),
        "Evaluations without a better score that end a stage; none: a stage has all of its updates",
    ] = 5
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


@dataclass
class Watch:
    """The evaluations of a stage: the best of them, its weights, and how many came after it."""

    stage: str = ""
    best: float = -math.inf
    stale: int = 0
    weights: list[Tensor] = field(default_factory=list)

    def see(self, score: float, parameters: tuple[nn.Parameter, ...]) -> None:
        if score > self.best:
            self.best, self.stale = score, 0
            self.weights = [parameter.detach().clone() for parameter in parameters]
        else:
            self.stale += 1

    @torch.no_grad()
    def put_back(self, parameters: tuple[nn.Parameter, ...]) -> None:
        for parameter, best in zip(parameters, self.weights, strict=False):
            parameter.copy_(best)


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
    counts_steps = True

    def __init__(self, settings: ChainThawSettings, combined: Combined, loop: LoopSettings, steps: int) -> None:
        super().__init__(settings, combined, loop, steps)
        links = chain(combined)
        lengths = _lengths(settings.chain_thaw, list(links), steps)
        self.stages: list[Stage] = []
        self.current: Stage | None = None
        self.watch = Watch()
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
        self._put_best_back(stage)
        if stage is not self.current:
            for parameter in self.stages[-1].parameters:
                parameter.requires_grad_(False)
            for parameter in stage.parameters:
                parameter.requires_grad_()
            self.current = stage

    def after_evaluation(self, step: int, score: float) -> None:
        stage = self.stage(step - 1)
        if self.settings.stage_patience is None or stage is self.stages[-1]:
            return
        if self.watch.stage != stage.name:
            self.watch = Watch(stage.name)
        self.watch.see(score, stage.parameters)
        if self.watch.stale >= self.settings.stage_patience:
            self.watch.put_back(stage.parameters)
            self._end_early(stage, step)

    def _put_best_back(self, begun: Stage) -> None:
        """Where the stage before ended with evaluations that were no better than its best one, take that one's weights;
        what was trained after the best and never judged stays."""
        seen = self.watch.stage
        if seen in ("", begun.name):
            return
        if self.watch.stale:
            self.watch.put_back(next(stage for stage in self.stages if stage.name == seen).parameters)
        self.watch = Watch()

    def _end_early(self, ended: Stage, step: int) -> None:
        """Later stages begin earlier and keep their lengths; the last one has what is left."""
        place, saved = self.stages.index(ended), ended.end - step
        self.stages[place] = replace(ended, end=step)
        for number in range(place + 1, len(self.stages)):
            stage = self.stages[number]
            end = stage.end if number + 1 == len(self.stages) else stage.end - saved
            self.stages[number] = replace(stage, start=stage.start - saved, end=end)

    def state(self) -> dict[str, Any]:
        if self.settings.stage_patience is None:
            return {}
        return {"spans": [[stage.start, stage.end] for stage in self.stages], "watch": vars(self.watch)}

    def restore(self, state: dict[str, Any]) -> None:
        if state:
            both = zip(self.stages, state["spans"], strict=True)
            self.stages = [replace(stage, start=start, end=end) for stage, (start, end) in both]
            self.watch = Watch(**state["watch"])

    def rate(self, step: int) -> float:
        stage = self.stage(step)
        done, length = step - stage.start, stage.end - stage.start
        share = rise_and_fall(done, length, self.loop.warmup_ratio, self.loop.schedule)
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
