"""Settings of the loop, and the reading of settings by name from a recipe or a command line."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isotrope.errors import InputError, nearest

PRECISIONS = ("auto", "float32", "bfloat16", "float16")
CHILDREN = ("none", "F", "D")
FISHERS = ("examples", "batches")
TRACKERS = ("none", "tensorboard", "wandb", "mlflow")


@dataclass(frozen=True)
class LoopSettings:
    """The defaults suit a small encoder and two cores; the papers' values for BERT and RoBERTa are in recipes/."""

    batch_size: int = 64  # records an update compares, over all processes
    learning_rate: float = 1e-4
    epochs: float = 1.0
    max_steps: int | None = None  # wins over epochs
    max_length: int = 64  # tokens of a text, special tokens counted
    warmup_ratio: float = 0.05  # share of the steps in which the rate rises
    weight_decay: float = 0.01  # on weight matrices; never on biases and norms
    max_grad_norm: float = 1.0
    gradient_accumulation_steps: int = 1
    chunk_size: int | None = None  # records in one forward: large batches in small memory, same gradient
    mlm_weight: float = 0.0  # masked language modelling beside the method
    rtd_weight: float = 0.0  # replaced-token detection beside the method; 0.005 to 0.1 beside a contrast
    child_tuning: str = (
        "none"  # F: a random part of the gradient each step; D: the weights that matter to the task, chosen once
    )
    child_p: float = 0.3  # the share of the weights that is updated
    child_fisher: str = "examples"  # D: the gradients of single records, or of batches as in the released code
    child_samples: int = 2048  # D: records that the Fisher information is taken from
    # steps of each stage: the head, then each layer alone, then all; one number, one for each stage, or even
    chain_thaw: str = "none"
    chain_head_rate: float = 10.0  # chain-thaw: times the rate while only the head is trained
    logging_steps: int = 10
    eval_steps: int = 100
    patience: int | None = None  # evaluations without a better score before stopping
    held_out: int = 512  # records kept aside for the label-free score
    seed: int = 42
    precision: str = "auto"  # bfloat16 on a GPU that has it, float32 elsewhere
    report_to: str = "none"

    def check(self) -> None:
        for name in (
            "batch_size",
            "max_length",
            "gradient_accumulation_steps",
            "logging_steps",
            "eval_steps",
            "child_samples",
        ):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; {getattr(self, name)} was given.")
        for name in ("learning_rate", "epochs", "max_grad_norm", "chain_head_rate"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be above 0; {getattr(self, name)} was given.")
        for name in ("max_steps", "patience", "chunk_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1; {value} was given.")
        for name in ("weight_decay", "mlm_weight", "rtd_weight", "held_out", "seed"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must not be negative; {getattr(self, name)} was given.")
        if not 0 <= self.warmup_ratio < 1:
            raise InputError(f"warmup_ratio must lie between 0 and 1; {self.warmup_ratio} was given.")
        if self.batch_size < 2:
            raise InputError("batch_size must be at least 2: one record alone has nothing to be compared with.")
        if not 0 < self.child_p <= 1:
            raise InputError(f"child_p is a share of the weights above 0 and at most 1; {self.child_p} was given.")
        choices_of = (
            ("precision", PRECISIONS),
            ("report_to", TRACKERS),
            ("child_tuning", CHILDREN),
            ("child_fisher", FISHERS),
        )
        for name, choices in choices_of:
            if getattr(self, name) not in choices:
                raise InputError(f"{name} is one of {', '.join(choices)}; '{getattr(self, name)}' was given.")


def resolve(given: Mapping[str, Any], *kinds: type) -> list[Any]:
    """One object of each kind from settings by name; a name or a value that fits none is an ``InputError``."""
    given = {name.replace("-", "_"): value for name, value in given.items()}
    known = {field.name: kind for kind in kinds for field in dataclasses.fields(kind)}
    for name in given:
        if name not in known:
            raise InputError(f"No setting is called '{name}'{nearest(name, known)}")
    results = []
    for kind in kinds:
        hints = typing.get_type_hints(kind)
        values = {name: _converted(name, value, hints[name]) for name, value in given.items() if known[name] is kind}
        results.append(kind(**values))
    return results


def _converted(name: str, value: Any, hint: Any) -> Any:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None or (isinstance(value, str) and value.lower() in ("none", "null")):
        if type(None) in options:
            return None
        if hint is not str:
            raise InputError(f"{name} needs a value of type {_plain(hint)}.")
    target = next(option for option in options if option is not type(None))
    try:
        if target is bool:
            lowered = str(value).lower()
            if lowered not in ("true", "false", "yes", "no", "1", "0"):
                raise ValueError
            return lowered in ("true", "yes", "1")
        if target is int and float(value) != int(float(value)):
            raise ValueError
        return int(float(value)) if target is int else target(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} takes a value of type {_plain(hint)}; {value!r} was given.") from error


def _plain(hint: Any) -> str:
    names = {int: "whole number", float: "number", str: "word", bool: "yes or no", type(None): "none"}
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return " or ".join(names.get(option, str(option)) for option in options)
