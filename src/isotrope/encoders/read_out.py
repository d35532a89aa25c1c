"""The read-out that training begins with: the paper's from a raw language model, its own from a sentence encoder.

A raw language model has states and no sentence vector: nobody has chosen how it is read out. So a method brings its
paper's pooling. A model that comes with a pooling keeps it, trained or not: a finished sentence encoder, and one that
``fresh_encoder`` made. What the user names wins. A finished encoder was trained as one: by a method, whose name its
facts have, or by another program, whose folder has no facts of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError

AUTO = "auto"  # a name of ``pooling``: let the start and the method decide
RAW = "raw"  # the fact in isotrope.json that says so
FINISHED = "finished"  # the fact that says so where the name of a method does not


@dataclass(frozen=True)
class ReadOut:
    """A pooling by name, and why it is taken."""

    pooling: str
    reason: str

    def __str__(self) -> str:
        return f"read-out: {self.pooling} ({self.reason})"


def named(pooling: str | None) -> str | None:
    """The pooling that the user named; None where the choice is left to us."""
    return None if pooling in (None, "", AUTO) else pooling


def is_raw(facts: Mapping[str, Any]) -> bool:
    """Whether these are the facts of a language model for which nobody has chosen a read-out."""
    return bool(facts.get(RAW, facts.get("method") == "pretrain"))


def is_finished(facts: Mapping[str, Any]) -> bool:
    """Whether these are the facts of a finished sentence encoder."""
    return bool(facts.get(FINISHED, facts.get("method") and not is_raw(facts)))


def raw_facts(facts: Mapping[str, Any], pooling: str | None) -> dict[str, Any]:
    """The facts of a raw language model as it is loaded: a pooling by name chooses its read-out, and trains nothing."""
    return {FINISHED: False, **facts, RAW: pooling is None}


def with_read_out(encoder: Encoder, given: str | None, paper: str | None, whose: str) -> tuple[Encoder, ReadOut]:
    """The encoder as a method reads it out. ``given``: the user's choice; ``paper``: the pooling of ``whose`` paper.

    ``paper`` is None where the paper has no sentence vector, or takes it from a network that the encoder is not.
    """
    own = encoder.pooling.name
    if named(given):
        return encoder, ReadOut(own, "as given")
    if not is_raw(encoder.facts):
        return encoder, ReadOut(own, "the model's own: it comes with a pooling")
    if paper is None:
        return encoder, ReadOut(own, f"the model's own: the paper of {whose} names none for a transformer")
    if paper == own:
        return encoder, ReadOut(own, f"that of {whose} as published: the model is a raw language model")
    try:
        pooled = _pooled_by(encoder, paper)
    except InputError:
        return encoder, ReadOut(own, f"the model's own: {whose} as published takes {paper}, which it cannot have")
    return pooled, ReadOut(paper, f"that of {whose} as published: the model is a raw language model")


def _pooled_by(encoder: Encoder, pooling: str) -> Encoder:
    """The same backbone under another pooling."""
    return Encoder(
        encoder.backbone,
        encoder.tokenizer,
        pooling,
        list(encoder.parts),
        encoder.max_length,
        encoder.prompt,
        encoder.facts,
        encoder.language_model,
    )
