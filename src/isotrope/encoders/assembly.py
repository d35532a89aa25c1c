"""An encoder while its folder is read: each part puts itself in, then the pooling is chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.part import Backbone, VectorPart
from isotrope.encoders.parts.token_weights import TokenWeighting
from isotrope.encoders.pooling import Pooling, is_masked
from isotrope.encoders.read_out import is_raw, raw_facts
from isotrope.errors import InputError


@dataclass
class Assembly:
    """What the parts read so far add up to; the folder and its facts are there from the start."""

    folder: Path
    first: Backbone
    prompt: str
    facts: dict[str, Any]
    layer_weights: tuple[float, ...] | None = None
    token_weights: TokenWeighting | None = None
    pooling: Pooling | None = None
    parts: list[nn.Module] = field(default_factory=list)
    places: dict[int, Path] = field(default_factory=dict)  # of each part by its id, for messages

    @property
    def layers(self) -> int:
        return int(self.first.backbone.config.num_hidden_layers)

    def encoder(self, pooling: str | None) -> Encoder:
        """The finished encoder, with the pooling named, or else the stored one, or else the mean."""
        first, weights = self.first, self.token_weights
        if weights is not None and weights.pooling_name and pooling not in (None, weights.pooling_name):
            self.token_weights = None  # weights that belong to one pooling are of no use to another
        chosen = self._chosen(pooling)
        self._check_widths(chosen)
        raw = is_raw(self.facts) or (self.pooling is None and not first.own_pooling and not self.parts)
        return Encoder(
            first.backbone,
            first.tokenizer,
            chosen,
            self.parts,
            first.max_length,
            self.prompt,
            raw_facts(self.facts, pooling) if raw else self.facts,
            first.language_model,
            self.token_weights,
        )

    def _check_widths(self, pooling: Pooling) -> None:
        """Each part takes vectors as wide as the one before gives them."""
        width = int(self.first.backbone.config.hidden_size) * len(pooling.modes)
        for part in self.parts:
            if not isinstance(part, VectorPart):
                continue
            if part.input_width() not in (None, width):
                place = self.places.get(id(part), self.folder)
                raise InputError(
                    f"{place}: the {part.type_name} module takes vectors of {part.input_width()} dimensions, and those "
                    f"before it have {width}; load the model with the pooling it was saved with."
                )
            width = part.output_width(width)

    def _chosen(self, pooling: str | None) -> Pooling:
        stored = self.pooling
        fitted = bool(self.facts.get("spaces")) or self.token_weights is not None
        if pooling is not None and stored is not None and fitted:
            if pooling != stored.name:
                reason = "a space was fitted to this model's pooling"
                if is_masked(stored.name):
                    reason = "this model reads texts in a template and takes the vector at its mask, the pooling"
                raise InputError(f"{self.folder}: {reason}, '{stored.name}'; load it without another pooling.")
            pooling = None
        if pooling is None and stored is not None:
            return stored
        return Pooling.named(pooling or self.first.own_pooling or "mean", self.layers)
