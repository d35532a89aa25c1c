"""The stock read-out on disk: a WeightedLayerPooling where layers are mixed, then a Pooling.

Both hold a ``Pooling`` of encoders/pooling.py; other poolings (layer_walk.py, attention.py) write themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from isotrope.encoders.encoder_uses import PROMPT_POOLED
from isotrope.encoders.parts.part import Part, Stage
from isotrope.encoders.pooling import MODES, Pooling, check_order, is_masked
from isotrope.encoders.stored_fields import Fields
from isotrope.encoders.stored_files import REPAIR, read_tensors
from isotrope.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self

    from isotrope.encoders.assembly import Assembly
    from isotrope.encoders.encoder import Encoder

# The old keys stand together with the new one: old and new readers both find what they know.
OLD_KEYS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
WIDTH = "word_embedding_dimension"
WIDTHS = (WIDTH, "embedding_dimension")  # the old name, which every version reads, and the new one
FIRST_LAYER = 4  # where sentence-transformers starts when config.json does not say


@dataclass(frozen=True)
class WeightedLayerPooling(Part):
    """Weights of H_first … H_L, whose weighted mean is what gets pooled."""

    type_name = "WeightedLayerPooling"
    stage = Stage.LAYERS

    weights: tuple[float, ...]
    width: int
    first: int = 0

    @classmethod
    def of(cls, encoder: Encoder) -> Part | None:
        weights = encoder.pooling.layer_weights
        return None if weights is None else cls(weights, int(encoder.backbone.config.hidden_size))

    def config(self) -> dict[str, Any]:
        last = self.first + len(self.weights) - 1
        return {"word_embedding_dimension": self.width, "layer_start": self.first, "num_hidden_layers": last}

    def tensors(self) -> dict[str, Tensor]:
        return {"layer_weights": torch.tensor(self.weights)}

    @classmethod
    def read(cls, place: Path, config: dict[str, Any]) -> Self:
        weights = read_tensors(place).get("layer_weights")
        if weights is None:
            raise InputError(f"{place}: the weights of the layers (layer_weights) are missing.")
        fields = Fields(place / "config.json", config)
        first, width = fields.count("layer_start", 0, default=FIRST_LAYER), fields.count(WIDTH, 0, default=0)
        if weights.dim() != 1 or not bool(weights.isfinite().all()) or float(weights.sum()) == 0:
            raise InputError(f"{place}: layer_weights are not one finite weight a layer with a sum; {REPAIR}.")
        return cls(tuple(weights.tolist()), width, first)

    def join(self, assembly: Assembly, place: Path) -> None:
        # sentence-transformers leaves the layers alone where the backbone's config keeps them to itself.
        if not assembly.first.backbone.config.output_hidden_states:
            return
        weights = (0.0,) * self.first + self.weights
        if len(weights) != assembly.layers + 1:
            raise InputError(
                f"{place}: weights of {len(weights)} layers were found; the backbone has {assembly.layers + 1}, "
                "the embeddings included."
            )
        assembly.layer_weights = weights


@dataclass(frozen=True)
class StockPooling(Part):
    """The modes of a pooling: cls, mean, max and what else sentence-transformers knows, joined in its order."""

    type_name = "Pooling"
    stage = Stage.POOLING

    modes: tuple[str, ...]
    width: int
    include_prompt: bool = True

    @classmethod
    def of(cls, encoder: Encoder) -> Part | None:
        modes = encoder.pooling.modes
        if not set(modes) <= set(MODES):
            return None
        check_order(encoder.pooling.name, modes)
        width, included = int(encoder.backbone.config.hidden_size), bool(encoder.facts.get(PROMPT_POOLED, True))
        return cls(modes, width, included)

    def config(self) -> dict[str, Any]:
        return {
            "word_embedding_dimension": self.width,
            "pooling_mode": self.modes[0] if len(self.modes) == 1 else list(self.modes),
            "include_prompt": self.include_prompt,
            **{key: mode in self.modes for mode, key in OLD_KEYS.items()},
        }

    @classmethod
    def read(cls, place: Path, config: dict[str, Any]) -> Self:
        fields = Fields(place / "config.json", config)
        if not {"pooling_mode", *OLD_KEYS.values()} & config.keys():
            raise fields.refusal("pooling_mode", f"one of {', '.join(MODES)}")
        old = tuple(mode for mode, key in OLD_KEYS.items() if fields.flag(key, False))
        names = fields.words("pooling_mode", "mean") if config.get("pooling_mode") else old or ("mean",)
        if not set(names) <= set(MODES):
            raise fields.refusal("pooling_mode", f"one of {', '.join(MODES)}")
        width = fields.count(next((name for name in WIDTHS if name in config), WIDTH), 0, default=0)
        return cls(names, width, fields.flag("include_prompt", True))

    def join(self, assembly: Assembly, place: Path) -> None:
        states = int(assembly.first.backbone.config.hidden_size)
        if self.width not in (0, states):
            raise Fields(place / "config.json", {WIDTH: self.width}).refusal(WIDTH, f"the backbone's width, {states},")
        if not self.include_prompt and assembly.prompt:
            raise InputError(f"{place}: this model leaves its prompt out of the pooling, which isotrope does not do.")
        if not self.include_prompt:
            assembly.facts[PROMPT_POOLED] = False
        pooling = Pooling.named("+".join(self.modes), assembly.layers)
        if assembly.layer_weights is not None:
            pooling = Pooling.weighted(pooling.modes, assembly.layer_weights, str(assembly.facts.get("pooling", "")))
        if assembly.token_weights is not None and pooling.modes != ("mean",):
            raise InputError(f"{place}: weights of words are known for a mean only, not for '{pooling.name}'.")
        called = str(assembly.facts.get("pooling", ""))
        if assembly.token_weights is not None and is_masked(called):
            pooling = replace(pooling, name=called)
        assembly.pooling = pooling
