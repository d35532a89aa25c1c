"""SBERT-WK (Wang and Kuo 2020): the pooling ``LayerWalk`` in place of the model's own; nothing is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.layer_walk import LayerWalk
from isotrope.errors import InputError
from isotrope.methods.frame.settings import Count, Settings, at_least
from isotrope.spaces.space import Space, space_card, vectors_of

SOUND = 100  # texts that are tried, to see that the vectors are sound


@dataclass(frozen=True)
class SBERTWKSettings(Settings):
    first_layer: Annotated[
        int | None, at_least(0), "First layer used, 0 is the output of the embeddings; none: a third of them (4 of 12)"
    ] = None
    window: Annotated[Count, "Neighbouring layers on each side that a layer is compared with"] = 2


class SBERTWK(Space[SBERTWKSettings]):
    """Layers weigh by how they differ from their neighbours, tokens by how much they move; see ``LayerWalk`` for the
    equations.
    """

    card = space_card(
        name="sbert-wk",
        title="SBERT-WK",
        paper="Wang, Kuo. SBERT-WK: A Sentence Embedding Method by Dissecting BERT-based Word Models. TASLP 2020",
        year=2020,
    )
    Settings = SBERTWKSettings
    pools = True

    @classmethod
    def found_in(cls, encoder: Encoder) -> bool:
        return isinstance(encoder.pooling, LayerWalk)

    def change(self, encoder: Encoder, texts: Sequence[str]) -> None:
        layers = int(encoder.backbone.config.num_hidden_layers)
        first = layers // 3 if self.settings.first_layer is None else self.settings.first_layer
        if layers - first < 2:
            raise InputError(
                f"sbert-wk compares three layers or more; with {layers}, first_layer is at most {layers - 2}."
            )
        ends = len(encoder.text_tokenizer.suffix) > 0
        encoder.pooling = LayerWalk(first_layer=first, window=self.settings.window, drop_last=ends)
        encoder.token_weights = None  # the attention of another pooling
        vectors_of(encoder, list(dict.fromkeys(texts))[:SOUND])
