"""Settings of pre-training, and which tasks go together."""

from __future__ import annotations

from dataclasses import dataclass

from isotrope.errors import InputError, nearest
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.method_registry import registry
from isotrope.methods.mlm import MaskedLanguageModel
from isotrope.methods.nsp import SentencePairs

OPTIMISERS = ("adamw", "muon")


@dataclass(frozen=True)
class PretrainSettings:
    """The defaults are for two cores; a GPU takes batch_size 1024 and the steps that go with it."""

    tasks: str = "mlm"  # mlm, nsp, sop, structbert: one, or mlm and a sentence task with a comma between
    vocabulary: int = 16_384
    layers: int = 6
    width: int = 384
    heads: int = 6
    length: int = 128
    batch_size: int = 64  # rows of an update
    optimiser: str = "adamw"  # or muon, for the weight matrices of the layers
    learning_rate: float = 7e-4
    steps: int = 2000
    warmup_steps: int = 200
    mask_rate: float = 0.3
    keep: float = 0.1  # of the tokens asked for: left as they are
    replace: float = 0.1  # of the tokens asked for: replaced by a random one
    weight_decay: float = 0.01
    dropout: float = 0.1  # while pre-training; the saved model has 0.1 for what follows
    logging_steps: int = 50
    save_steps: int = 500
    minutes: float | None = None  # stop after so long, with a checkpoint to resume from
    seed: int = 42

    def check(self) -> None:
        for name in ("vocabulary", "layers", "width", "heads", "batch_size", "steps", "logging_steps", "save_steps"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; {getattr(self, name)} was given.")
        self.methods()
        if self.width % self.heads:
            raise InputError(f"width ({self.width}) must be a multiple of heads ({self.heads}).")
        if self.length < 8:
            raise InputError(f"length must be at least 8; {self.length} was given.")
        if not 0 < self.mask_rate < 1 or self.keep < 0 or self.replace < 0 or self.keep + self.replace > 1:
            raise InputError(
                "mask_rate must lie between 0 and 1, and keep and replace must be shares that sum to at most 1."
            )
        if self.optimiser not in OPTIMISERS:
            raise InputError(f"optimiser is one of {', '.join(OPTIMISERS)}; '{self.optimiser}' was given.")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate must be above 0; {self.learning_rate} was given.")
        if not 0 <= self.warmup_steps < self.steps:
            raise InputError(f"warmup_steps must be fewer than steps ({self.steps}); {self.warmup_steps} was given.")

    def methods(self) -> tuple[type[Method], ...]:
        """The methods that the tasks are."""
        names = [name.strip() for name in self.tasks.split(",")]
        known = {
            name: kind
            for name, kind in registry().items()
            if kind is MaskedLanguageModel or issubclass(kind, SentencePairs)
        }
        for name in names:
            if name not in known:
                raise InputError(
                    f"tasks are {', '.join(known)}, with commas between; '{name}' was given{nearest(name, known)}"
                )
        kinds = tuple(dict.fromkeys(known[name] for name in names))
        sentence = [kind.name for kind in kinds if issubclass(kind, SentencePairs)]
        if len(sentence) > 1:
            raise InputError(
                f"A pair of segments can be drawn for one sentence task, and tasks names {' and '.join(sentence)}; "
                "structbert asks in one task whether a segment follows, precedes, or is from elsewhere."
            )
        return kinds
