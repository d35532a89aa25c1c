"""From token states to one vector: which layers, then how they are pooled.

Special tokens count as tokens everywhere; padding never does. H_0 is the embedding output, H_L the last layer.

    cls          the first token of H_L
    mean, max    over the tokens of H_L
    first_last   mean over the tokens of (H_1 + H_L) / 2
    embed_last   mean over the tokens of (H_0 + H_L) / 2      (what SimCSE's printed BERT baseline really used)
    last2        mean over the tokens of (H_{L-1} + H_L) / 2
    layer:K      mean over the tokens of H_K; layer:K:cls, layer:K:max … pool H_K in another way
                 K runs from 0 to L; a negative one counts from the end, so layer:-2 is H_{L-1}
    mask         the [MASK] of a template around the text, in H_L; mask:TEMPLATE names the template, with [X] for the
                 text: mask:The sentence "[X]" is about [MASK].   (mask_read_out.py)

Folders of sentence-transformers may also name lasttoken, weightedmean, mean_sqrt_len_tokens, and several joined by "+".
With weights of tokens (token_weights.py, attention.py) a mean is a weighted one.

Take the pooling that the model was trained with; cls of a model that never trained its first token says little, and
cls of a model without such a token is refused (first_token.py). Which layer of a raw language model is best is a
question for ``isotrope evaluate --suite layers``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from isotrope.errors import InputError, nearest
from isotrope.tokens.template import Template

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
LAYERED = {"first_last": (1, -1), "embed_last": (0, -1), "last2": (-2, -1)}
POOLINGS = ("cls", "mean", "max", *LAYERED)
MASKED = "mask"
LAYER = "layer:"


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
            return cls(name, ("mean",), _mixed(LAYERED[name], layers))
        layer, modes = parse(name)
        if layer is None:
            return cls(name, modes)
        if not -layers - 1 <= layer <= layers:
            raise InputError(
                f"The pooling '{name}' asks for layer {layer}; this model has the layers 0 (embeddings) to {layers}."
            )
        return cls._of_layer(layer % (layers + 1), modes, layers)

    @classmethod
    def _of_layer(cls, layer: int, modes: tuple[str, ...], layers: int) -> Pooling:
        """One layer under one name, however it was spelt; the last layer is what a pooling without layers reads."""
        joined = "+".join(modes)
        if layer == layers:
            return cls(joined, modes)
        name = f"{LAYER}{layer}" if modes == ("mean",) else f"{LAYER}{layer}:{joined}"
        return cls(name, modes, _mixed((layer,), layers))

    @classmethod
    def weighted(cls, modes: tuple[str, ...], weights: Sequence[float], called: str = "") -> Pooling:
        """Any mix of layers, under a name of ours where one fits; ``called`` first: two names fit two layers."""
        layers = len(weights) - 1
        for name in sorted(LAYERED, key=lambda name: name != called):
            known = cls.named(name, layers)
            if modes == known.modes and tuple(weights) == known.layer_weights:
                return known
        alone = [layer for layer, weight in enumerate(weights) if weight]
        if len(alone) == 1 and alone[0] < layers and weights[alone[0]] > 0:
            return cls._of_layer(alone[0], modes, layers)
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


def check_order(name: str, modes: Sequence[str]) -> None:
    """Refuse what no saved model can say: the stock module joins poolings in one order."""
    if set(modes) <= set(MODES) and list(modes) != sorted(modes, key=MODES.index):
        right = "+".join(sorted(modes, key=MODES.index))
        raise InputError(
            f"Poolings are joined in the order {', '.join(MODES)}; '{name}' is not, and could not be saved. "
            f"Say '{right}'."
        )


def parse(name: str) -> tuple[int | None, tuple[str, ...]]:
    """The layer that a pooling names, if it names one, and its modes; an unknown name is refused.

    Whether a model has that layer is for ``Pooling.named`` to say; use this to check a name before a model is loaded.
    """
    if name in LAYERED:
        return None, ("mean",)
    if is_masked(name):
        if name != MASKED:
            Template.parse(name.removeprefix(f"{MASKED}:"))
        return None, ("mean",)  # in which the mask token alone has weight
    layer, rest = None, name
    if name.startswith(LAYER):
        number, colon, given = name.removeprefix(LAYER).partition(":")
        rest = given if colon else "mean"
        if not re.fullmatch(r"-?\d+", number):
            raise InputError(
                f"The pooling '{name}' names no layer: layer:K and layer:K:cls take a number K, such as layer:4."
            )
        layer = int(number)
    modes = tuple(rest.split("+"))
    for mode in modes:
        if mode not in MODES:
            known = MODES if layer is not None else {*POOLINGS, *MODES, f"{LAYER}K", MASKED}
            raise InputError(f"Unknown pooling '{mode}'{nearest(mode, known)}")
    return layer, modes


def is_masked(name: str) -> bool:
    """Whether a pooling of that name reads the mask token of a template."""
    return name == MASKED or name.startswith(f"{MASKED}:")


def _mixed(chosen: Sequence[int], layers: int) -> tuple[float, ...]:
    """Weight 1 for each chosen one of H_0 … H_L, 0 for the others."""
    numbers = {index % (layers + 1) for index in chosen}
    return tuple(float(layer in numbers) for layer in range(layers + 1))


def pool(
    mode: str, states: torch.Tensor, mask: torch.Tensor, token_weights: torch.Tensor | None = None
) -> torch.Tensor:
    """One vector a row by ``mode``, zero where a row has no token. Rows are padded on the right: the first token is
    token 0."""
    if mode == "cls":
        return states[:, 0]
    if mode == "lasttoken":
        last = (mask.sum(dim=1).clamp(min=1) - 1).view(-1, 1, 1)
        found = states.gather(1, last.expand(-1, 1, states.shape[-1])).squeeze(1)  # an index would fix an export's rows
        return found * mask[:, :1].to(found.dtype)
    present = mask.unsqueeze(-1)
    if mode == "max":
        found = states.masked_fill(present == 0, float("-inf")).amax(dim=1)
        return found.masked_fill(mask[:, :1] == 0, 0.0)
    weights = present.to(torch.promote_types(states.dtype, torch.float32))  # half precision would lose count
    if token_weights is not None:
        weights = weights * token_weights.unsqueeze(-1)
    if mode == "weightedmean":
        weights = weights * torch.arange(1, states.shape[1] + 1, device=states.device).view(1, -1, 1)
    total = weights.sum(dim=1).clamp(min=1e-9)
    if mode == "mean_sqrt_len_tokens":
        total = total.sqrt()
    return ((states * weights).sum(dim=1) / total).to(states.dtype)
