"""The leading dimensions of a vector: what remains of a Matryoshka encoder where memory counts.

    v' = v[:m]

Use it with an encoder that was trained with ``matryoshka``, or whose directions are sorted by strength (a static
student, whitening); of any other encoder it keeps an arbitrary part. Cosines take the length away again; ask for
``normalize_embeddings`` where dot products are compared. sentence-transformers has the same under the same name.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from isotrope.encoders.parts.dense import Dense
from isotrope.errors import InputError

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number from 1; ``name`` is the setting's."""
    _check_whole(name, value)
    if value < 1:
        raise InputError(f"{name} must be at least 1, not {value}.", setting=name)


def _check_whole(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name} must be a whole number, not {value!r}.", setting=name)


def check_width(truncate_dim: int, width: int) -> int:
    """Refuse what is no part of a vector of ``width``."""
    _check_whole("truncate_dim", truncate_dim)
    if not 1 <= truncate_dim <= width:
        raise InputError(
            f"truncate_dim must lie between 1 and {width}, the dimensions of this model; {truncate_dim} was given.",
            setting="truncate_dim",
        )
    return int(truncate_dim)  # JSON takes no whole number of numpy


def truncated(encoder: Encoder, truncate_dim: int | None) -> Encoder:
    """The encoder over the same weights whose vectors end after ``truncate_dim`` dimensions; None: as it is.

    The cut is a stock Dense module with rows of the identity, so it is saved, and loads everywhere.
    """
    width = encoder.dimension if truncate_dim is None else check_width(truncate_dim, encoder.dimension)
    if width == encoder.dimension:
        return encoder
    cut = Dense(encoder.dimension, width, bias=False, activation=nn.Identity()).to(encoder.device)
    with torch.no_grad():
        cut.linear.weight.copy_(torch.eye(width, encoder.dimension))
    return encoder.with_parts([*encoder.parts, cut]).train(encoder.training)
