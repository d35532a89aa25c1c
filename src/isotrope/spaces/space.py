"""The frame of a space: texts → the vectors of a frozen encoder → a map behind it → an encoder again.

A space is fitted once, to an encoder in eval mode that it never changes: the result is a copy. Where a map may follow
another:

- a space that changes the pooling (``pools``) comes first or not at all;
- any other may follow other maps, none of them twice;
- behind a ``last`` one comes nothing: the vectors fill a ball already.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.dense import Dense
from isotrope.encoders.parts.stock_parts import Normalize
from isotrope.errors import InputError
from isotrope.files import digest
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import Settings

Floats = npt.NDArray[np.float64]
S = TypeVar("S", bound=Settings)


class SpaceWarning(UserWarning):
    """The map was fitted, but something about it should be known."""


def space_card(name: str, title: str, paper: str, year: int) -> Card:
    return Card(name, title, paper, year, "sentences", family="post-processing", kind="space")


class Space(Generic[S]):
    """A subclass has a card, settings with the paper's values, and ``fitted`` (a map of vectors) or ``change``."""

    card: ClassVar[Card]
    Settings: ClassVar[type[Settings]] = Settings
    pools: ClassVar[bool] = False  # it changes the pooling, so it must come before any other map
    last: ClassVar[bool] = False  # no map may follow it

    def __init__(self, settings: S) -> None:
        self.settings = settings

    @classmethod
    def found_in(cls, encoder: Encoder) -> bool:
        """Whether the modules of the encoder show this space. Facts do not survive further training; modules do."""
        return False

    def fit(self, encoder: Encoder, texts: Sequence[str]) -> Encoder:
        """A copy of the encoder with the map behind it; its facts say what was fitted, and to how many texts."""
        self._check_place(encoder)
        check_texts(texts)
        mapped = copy.deepcopy(encoder).eval()
        mapped.classifier = None  # it was learned from other vectors
        self.change(mapped, texts)
        own = {
            "name": self.card.name,
            "settings": asdict(self.settings),
            "texts": len(texts),
            "fingerprint": digest(*texts),
        }
        mapped.facts = {**encoder.facts, "spaces": [*_spaces(encoder), own]}
        return mapped

    def change(self, encoder: Encoder, texts: Sequence[str]) -> None:
        """Fit the map to the encoder's vectors and put it behind them. An encoder that gave unit vectors still does."""
        append(encoder, self.fitted(vectors_of(encoder, texts)))

    def fitted(self, vectors: Floats) -> nn.Module:
        """The map for vectors [n, d], as a module [rows, d] → [rows, k]."""
        raise NotImplementedError

    def _check_place(self, encoder: Encoder) -> None:
        from isotrope.spaces.space_registry import registry  # it imports this file

        known = registry()
        before = [str(space["name"]) for space in _spaces(encoder)]
        before = before or [name for name, space in known.items() if space.found_in(encoder)]
        ended = any(name in known and known[name].last for name in before)
        if ended or self.card.name in before or (self.pools and before):
            raise InputError(
                f"This model already has a space ({', '.join(before)}); "
                f"fit {self.card.name} to the model it was made from."
            )
        head = next((part for part in encoder.parts if not isinstance(part, Normalize)), None)
        if self.pools and head is not None:
            raise InputError(
                f"{self.card.name} changes the pooling, but a {type(head).__name__} module follows the pooling and was "
                "made for the old one."
            )


@dataclass(frozen=True)
class LinearMap:
    """y = (x − mean) · columns, as float64; as a module it is a stock Dense."""

    mean: Floats  # [d]
    columns: Floats  # [d, k]

    def module(self) -> Dense:
        width, kept = self.columns.shape
        dense = Dense(width, kept, activation=nn.Identity())
        with torch.no_grad():
            dense.linear.weight.copy_(torch.from_numpy(np.ascontiguousarray(self.columns.T)))
            dense.linear.bias.copy_(torch.from_numpy(-self.mean @ self.columns))
        return dense


def append(encoder: Encoder, module: nn.Module) -> None:
    """Put a map behind the encoder. An encoder that gave unit vectors still does."""
    ends_in_units = len(encoder.parts) > 0 and isinstance(encoder.parts[-1], Normalize)
    encoder.parts.append(module.to(encoder.device).eval())
    if ends_in_units:
        encoder.parts.append(Normalize())


def check_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise InputError("A space is fitted to a list of texts.")
    different = len(set(texts))
    if different < 2:
        found = (
            "none was" if not texts else "one was" if len(texts) == 1 else f"{len(texts):,} that are all the same were"
        )
        raise InputError(f"A space is fitted to many different texts; {found} given.")


def vectors_of(encoder: Encoder, texts: Sequence[str]) -> Floats:
    """[n, d] in float64: finite, and not all alike. A text that stands twice is encoded once and counts twice."""
    places = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    vectors = encoder.encode(list(places))[[places[text] for text in texts]].astype(np.float64)
    check_vectors(vectors, texts)
    return vectors


def check_vectors(vectors: Floats, texts: Sequence[str] | None = None) -> None:
    if vectors.ndim != 2 or len(vectors) < 2:
        raise InputError(
            f"A space is fitted to two vectors or more; an array of shape {list(vectors.shape)} was given."
        )
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(broken):
        example = f", such as that of {texts[broken[0]][:60]!r}" if texts is not None else ""
        raise InputError(
            f"{len(broken):,} of {len(vectors):,} vectors hold NaN or infinity{example}; the encoder is broken."
        )
    spread = np.abs(vectors - vectors[0]).max()
    if spread <= 1e-6 * np.abs(vectors).max():
        raise InputError(
            f"All {len(vectors):,} vectors are the same: the encoder has collapsed, or the texts do not differ for it."
        )


def _spaces(encoder: Encoder) -> list[dict[str, Any]]:
    return list(encoder.facts.get("spaces", []))
