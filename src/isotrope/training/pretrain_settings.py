"""Settings of pre-training, and which tasks go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from isotrope.errors import InputError, nearest
from isotrope.methods.frame.masked_language import MaskedLanguage
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.method_registry import auxiliaries, registry
from isotrope.methods.frame.sentence_pairs import SentencePairs
from isotrope.methods.frame.settings import (
    ClosedShare,
    Count,
    Layers,
    OneOf,
    OpenShare,
    Positive,
    Settings,
    Weight,
    Width,
    above,
    at_least,
)
from isotrope.training.loop_settings import PRECISIONS, TRACKERS, Beta, LoopSettings, Seed
from isotrope.training.tactics.weight_average import AverageDecay


@dataclass(frozen=True)
class PretrainSettings(Settings):
    """The defaults are for two cores; a GPU takes batch_size 1024 and the steps that go with it."""

    tasks: Annotated[
        str | None, "Masked language modelling, a sentence task, or both with a comma between; none: the former alone"
    ] = None
    vocabulary: Annotated[
        int, at_least(1, most=10_000_000), "Pieces of the vocabulary that is learned from the text"
    ] = 16_384
    layers: Annotated[Layers, "Layers of the encoder"] = 6
    width: Annotated[Width, "Width of a layer; a multiple of heads"] = 384
    heads: Annotated[Width, "Attention heads of a layer"] = 6
    length: Annotated[int, at_least(8, most=65_536), "Tokens of a row, special tokens counted"] = 128
    batch_size: Annotated[Count, "Rows of an update, over all processes"] = 64
    optimiser: Annotated[str, OneOf("adamw", "muon"), "Muon takes the weight matrices of the layers"] = "adamw"
    learning_rate: Annotated[Positive, "Highest learning rate"] = 7e-4
    steps: Annotated[Count, "Updates; max_steps, the name that train has, is the same"] = 2000
    warmup_steps: Annotated[
        int | None, at_least(0), "Updates in which the rate rises; none: 200, at most a tenth of steps"
    ] = None
    mask_rate: Annotated[OpenShare, "Share of the tokens that is masked"] = 0.3
    keep: Annotated[ClosedShare, "Share of the masked tokens that stay as they are"] = 0.1
    replace: Annotated[ClosedShare, "Share of the masked tokens that become a random one"] = 0.1
    weight_decay: Annotated[Weight, "Decay of weight matrices"] = 0.01
    adam_beta2: Annotated[Beta, "Decay of AdamW's second moment"] = 0.999
    average_decay: AverageDecay = 0.0
    dropout: Annotated[
        float, at_least(0, below=1), "Dropout while pre-training; the saved model has 0.1 for what follows"
    ] = 0.1
    logging_steps: Annotated[Count, "Updates between two lines of the log"] = 50
    save_steps: Annotated[Count, "Updates between two evaluations, each with a checkpoint"] = 500
    max_seconds: Annotated[
        float | None, above(0), "Seconds of training, evaluations not counted; wins over steps, keeps their warm-up"
    ] = None
    minutes: Annotated[float | None, at_least(0), "Stop after so many minutes, with a checkpoint to resume from"] = None
    seed: Seed = 42
    precision: Annotated[str, OneOf(*PRECISIONS), "auto: bfloat16 on a GPU that has it, float32 elsewhere"] = "auto"
    report_to: Annotated[str, OneOf(*TRACKERS), "Tracker that the log goes to as well"] = "none"

    def rules(self) -> None:
        self.methods()
        if self.width % self.heads:
            raise InputError(f"width ({self.width}) must be a multiple of heads ({self.heads}).")
        if self.keep + self.replace > 1:
            raise InputError(f"keep ({self.keep}) and replace ({self.replace}) are shares that sum to at most 1.")
        if self.warmup_steps is not None and self.warmup_steps >= self.steps:
            raise InputError(f"warmup_steps must be fewer than steps ({self.steps}); {self.warmup_steps} was given.")

    def rising(self) -> int:
        """Updates in which the rate rises."""
        return min(200, self.steps // 10) if self.warmup_steps is None else self.warmup_steps

    def loop(self) -> LoopSettings:
        """The loop's settings for these."""
        return LoopSettings(
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            max_steps=self.steps,
            max_seconds=self.max_seconds,
            max_length=self.length,
            warmup_ratio=self.rising() / self.steps,
            weight_decay=self.weight_decay,
            optimiser=self.optimiser,
            adam_beta2=self.adam_beta2,
            logging_steps=self.logging_steps,
            eval_steps=self.save_steps,
            seed=self.seed,
            precision=self.precision,
            report_to=self.report_to,
        )

    def methods(self) -> tuple[type[Method[Any]], ...]:
        """The methods that the tasks are."""
        known = pretraining_tasks()
        names = [language_task().card.name] if self.tasks is None else [name.strip() for name in self.tasks.split(",")]
        for name in names:
            if name not in known:
                listed = ", ".join(known)
                raise InputError(f"tasks are {listed}, with commas between; '{name}' was given{nearest(name, known)}")
        found = tuple(dict.fromkeys(known[name] for name in names))
        sentence = [method.card.name for method in found if issubclass(method, SentencePairs)]
        if len(sentence) > 1:
            raise InputError(
                f"A pair of segments can be drawn for one sentence task, and tasks names {' and '.join(sentence)}; "
                "choose one."
            )
        return found


def with_steps(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, where ``max_steps``, as ``train`` calls it, has become ``steps``."""
    named = {name.replace("-", "_"): value for name, value in given.items()}
    if "max_steps" not in named:
        return named
    most = named.pop("max_steps")
    if str(named.setdefault("steps", most)) != str(most):
        raise InputError(f"steps ({named['steps']}) and max_steps ({most}) are two names of one setting; give one.")
    return named


def language_task() -> type[MaskedLanguage[Any]]:
    """Masked language modelling itself, among the methods that have it among their terms."""
    return next(one for one in auxiliaries().values() if issubclass(one, MaskedLanguage))


def pretraining_tasks() -> dict[str, type[Method[Any]]]:
    """What an encoder can be pre-trained with from scratch, by name: no method that can do without documents."""
    pairs = {n: m for n, m in registry().items() if issubclass(m, SentencePairs) and m.card.needs == "documents"}
    return dict(sorted({language_task().card.name: language_task(), **pairs}.items()))
