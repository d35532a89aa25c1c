"""Dropout whose mask is a hash of (seed, place), for compiled layers on a GPU: ten operations of whole numbers a value.

    y = x · m / (1 − p),   m = [h(seed, place) ≥ p],   h: multiply, shift and xor, twice

The compiler's own draw (Philox) takes about a hundred, and in a layer of width 384 that is as long as its products.
Inside a compiled function the hash is fused with what stands around it, and the backward computes it again or keeps
bits. Constants fit into 32 signed bits, or a kernel would count in 64. Attention has the same in its own kernel.
"""

from __future__ import annotations

import torch
from torch import Tensor

FIRST, SECOND, THIRD = 0x21F0AAAD, 0x735A2D97, 0x1E3779B1  # odd
LOWEST, LEVELS = -(1 << 31), 1 << 32


def draw_seeds(rows: int, device: torch.device) -> Tensor:
    """[rows, 4] seeds in int32, from torch's generator of the device: keyed by the step, as every draw is.

    A layer takes three; a row of four begins where a kernel likes its inputs to begin.
    """
    return torch.randint(LOWEST, -LOWEST, (rows, 4), dtype=torch.int32, device=device)


def hashed_dropout(values: Tensor, rate: float, seed: Tensor) -> Tensor:
    """``values`` under a mask. ``seed`` is a single number in int32."""
    place = torch.arange(values.numel(), dtype=torch.int32, device=values.device).view(values.shape)
    bits = hashed(place, hashed(seed, seed))
    return torch.where(bits >= LOWEST + round(rate * LEVELS), values / (1 - rate), 0.0)


def hashed(place: Tensor, seed: Tensor) -> Tensor:
    """32 bits for each place, uniform over int32. The seed comes in again later, or two seeds would permute one mask.

    It comes before the first product, too: a compiler would multiply the place by its stride otherwise, past 32 bits.
    """
    bits = (place ^ seed) * THIRD + seed
    bits = (bits ^ (bits >> 16) & 0xFFFF) * FIRST + seed
    return (bits ^ (bits >> 15) & 0x1FFFF) * SECOND
