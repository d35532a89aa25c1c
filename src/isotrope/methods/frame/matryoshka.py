"""Matryoshka (Kusupati et al. 2022): the leading dimensions of a vector are trained to be a vector of their own.

    L = L(v) + Σ_m L(v[:m] / ‖v[:m]‖),      m over the widths of the setting ``matryoshka``, each with weight 1

Any objective over sentence vectors takes it, and no further forward pass is needed. The term of a width is logged as
``contrastive@64``. Use it where vectors will be stored by the million and cut with ``truncate_dim``. What goes wrong:
many small widths outweigh the full one. It is MatryoshkaLoss of sentence-transformers, except that the full width is
always there and its vectors are not scaled to unit length first, which no cosine sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from isotrope.errors import InputError

if TYPE_CHECKING:
    from isotrope.methods.frame.method import Method

AT = "@"


def parse_widths(given: str | None) -> tuple[int, ...]:
    """``64,128`` as numbers, the largest first."""
    words = [word.strip() for word in (given or "").strip("[]() ").split(",") if word.strip()]
    if given is not None and (not words or not all(word.isdecimal() and int(word) for word in words)):
        raise InputError(f"matryoshka is a list of widths such as 64,128,256; '{given}' was given.")
    return tuple(sorted({int(word) for word in words}, reverse=True))


def check_widths(widths: Sequence[int], method: Method[Any]) -> tuple[int, ...]:
    """The widths below the encoder's own; refuses one above it, and a method that compares no such vectors."""
    dimension = method.encoder.dimension
    if widths and max(widths) > dimension:
        raise InputError(f"matryoshka {max(widths)} is more than the {dimension} dimensions of this model.")
    if widths and not method.nested_vectors():
        raise InputError(
            f"matryoshka cuts the vectors that encode gives; {method.card.name} compares others with these settings."
        )
    return tuple(width for width in widths if width < dimension)


def nested_terms(
    method: Method[Any], representations: Mapping[str, Tensor], generator: torch.Generator, widths: Sequence[int]
) -> dict[str, Tensor]:
    """The method's terms at full width, and again at each of the others."""
    terms = method.loss(dict(representations), generator)
    for width in widths:
        cut = {
            name: normalize(tensor[..., :width], dim=-1) if name in method.nested_vectors() else tensor
            for name, tensor in representations.items()
        }
        terms |= {f"{name}{AT}{width}": term for name, term in method.loss(cut, generator).items()}
    return terms


def base_term(name: str) -> str:
    """``contrastive`` of ``contrastive@64``: a width has the weight of the whole."""
    return name.partition(AT)[0]
