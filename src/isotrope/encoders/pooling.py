"""From token states to one vector: which layers, then how they are pooled.

Special tokens count as tokens everywhere; padding never does. H_0 is the embedding output, H_L the last layer.

    cls          the first token of H_L
    mean, max    over the tokens of H_L
    first_last   mean over the tokens of (H_1 + H_L) / 2
    embed_last   mean over the tokens of (H_0 + H_L) / 2      (what SimCSE's printed BERT baseline really used)
    last2        mean over the tokens of (H_{L-1} + H_L) / 2

Folders of sentence-transformers may also name lasttoken, weightedmean, mean_sqrt_len_tokens, and several joined by "+".
With weights of tokens (token_weights.py, attention.py) a mean is a weighted one.

Take the pooling that the model was trained with; cls of a model that never trained its first token says little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from isotrope.errors import InputError, nearest

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
LAYERED = {"first_last": (1, -1), "embed_last": (0, -1), "last2": (-2, -1)}
POOLINGS = ("cls", "mean", "max", *LAYERED)


@dataclass(frozen=True)
class Pooling:
    """``layer_weights`` (one for each of H_0 … H_L) mix layers before ``modes`` pool; None means H_L alone."""

    name: str
    modes: tuple[str, ...]
    layer_weights: tuple[float, ...] | None = None

    @classmethod
    def named(cls, name: str, layers: int) -> Pooling:
        """The pooling of that name for a backbone of ``layers`` layers."""
        if name in LAYERED:
            chosen = {index % (layers + 1) for index in LAYERED[name]}
            return cls(name, ("mean",), tuple(float(layer in chosen) for layer in range(layers + 1)))
        modes = tuple(name.split("+"))
        for mode in modes:
            if mode not in MODES:
                raise InputError(f"Unknown pooling '{mode}'{nearest(mode, {*POOLINGS, *MODES})}")
        return cls(name, modes)

    @classmethod
    def weighted(cls, modes: tuple[str, ...], weights: Sequence[float], called: str = "") -> Pooling:
        """Any mix of layers, under a name of ours where one fits; ``called`` first: two names fit two layers."""
        layers = len(weights) - 1
        for name in sorted(LAYERED, key=lambda name: name != called):
            known = cls.named(name, layers)
            if modes == known.modes and tuple(weights) == known.layer_weights:
                return known
        return cls("+".join(modes), modes, tuple(weights))

    @property
    def needs_all_layers(self) -> bool:
        return self.layer_weights is not None

    def __call__(
        self, layers: Sequence[torch.Tensor], mask: torch.Tensor, weights: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Vectors [rows, d × modes] of ``layers``: H_0 … H_L, or H_L alone, each [rows, width, d].

        ``weights`` [rows, width] make a mean a weighted one.
        """
        states = layers[-1]
        if self.layer_weights is not None:
            pairs = [(weight, layer) for weight, layer in zip(self.layer_weights, layers, strict=True) if weight]
            states = sum((weight * layer for weight, layer in pairs), torch.zeros_like(states)) / sum(
                self.layer_weights
            )
        pooled = [pool(mode, states, mask, weights) for mode in self.modes]
        return pooled[0] if len(pooled) == 1 else torch.cat(pooled, dim=-1)


def pool(
    mode: str, states: torch.Tensor, mask: torch.Tensor, token_weights: torch.Tensor | None = None
) -> torch.Tensor:
    """One vector a row by ``mode``. Rows are padded on the right: the first token is token 0."""
    if mode == "cls":
        return states[:, 0]
    if mode == "lasttoken":
        last = mask.sum(dim=1).clamp(min=1) - 1
        return states[torch.arange(len(states), device=states.device), last]
    present = mask.unsqueeze(-1)
    if mode == "max":
        return states.masked_fill(present == 0, float("-inf")).amax(dim=1)
    weights = present.to(torch.promote_types(states.dtype, torch.float32))  # half precision would lose count
    if token_weights is not None:
        weights = weights * token_weights.unsqueeze(-1)
    if mode == "weightedmean":
        weights = weights * torch.arange(1, states.shape[1] + 1, device=states.device).view(1, -1, 1)
    total = weights.sum(dim=1).clamp(min=1e-9)
    if mode == "mean_sqrt_len_tokens":
        total = total.sqrt()
    return ((states * weights).sum(dim=1) / total).to(states.dtype)
