"""Smooth inverse frequency (Arora et al. 2017): rare tokens weigh more in the mean, and the common direction is taken
away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.mask_read_out import is_at_mask
from isotrope.encoders.parts.token_weights import TokenWeights
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.errors import InputError
from isotrope.methods.frame.settings import Positive, Settings, at_least
from isotrope.spaces.remove_components import top_directions, without
from isotrope.spaces.space import Floats, LinearMap, Space, append, space_card, vectors_of


@dataclass(frozen=True)
class SIFSettings(Settings):
    smoothing: Annotated[Positive, "The paper's a in a token's weight a / (a + share of the token)"] = 1e-3
    components: Annotated[int, at_least(0), "Directions to take away; 0 keeps the weighted mean alone"] = 1


class SIF(Space[SIFSettings]):
    """v_s = 1/|s| Σ w(t) h_t,  w(t) = a / (a + p(t));  then ṽ_s = v_s − u uᵀ v_s,  u the first singular vector of all
    v_s.

    p(t) is the share of a token among all tokens of the texts, special ones too: [CLS] stands in every text and hardly
    counts. The model gives v_s divided by Σ w in place of |s|, which is what WordWeights of sentence-transformers does,
    so it loads everywhere; u is that of the paper's v_s, and so the cosines are the paper's. The paper weighs word
    vectors; here they are the states of the encoder.
    """

    card = space_card(
        name="sif",
        title="Smooth inverse frequency",
        paper="Arora, Liang, Ma. A Simple but Tough-to-Beat Baseline for Sentence Embeddings. ICLR 2017",
        year=2017,
    )
    Settings = SIFSettings
    pools = True

    @classmethod
    def found_in(cls, encoder: Encoder) -> bool:
        return isinstance(encoder.token_weights, TokenWeights) and not is_at_mask(encoder)

    def change(self, encoder: Encoder, texts: Sequence[str]) -> None:
        if encoder.pooling.modes != ("mean",) or is_at_mask(encoder):
            raise InputError(
                f"sif weighs the tokens of a mean; this model's pooling is '{encoder.pooling.name}'; "
                "load it with mean pooling."
            )
        frequency = token_frequencies(encoder, texts)
        weights = (
            torch.from_numpy(self.settings.smoothing / (self.settings.smoothing + frequency)).float().to(encoder.device)
        )
        if isinstance(encoder.backbone, StaticVectors):
            encoder.backbone.weigh(weights)  # as in the paper; the cosines are the same
        else:
            encoder.token_weights = TokenWeights(weights)
        vectors = vectors_of(encoder, texts)
        removed = self.settings.components
        if removed >= min(vectors.shape):
            raise InputError(
                f"{removed} components cannot be taken from {len(vectors):,} texts in {vectors.shape[1]} dimensions."
            )
        if removed:
            common = top_directions(vectors * mean_weights(encoder, texts)[:, None], removed)
            append(encoder, LinearMap(np.zeros(vectors.shape[1]), without(common)).module())


def token_frequencies(encoder: Encoder, texts: Sequence[str], block: int = 1000) -> Floats:
    """[vocabulary]: the share of each token among all tokens that the encoder sees."""
    counts = np.zeros(encoder.text_tokenizer.vocabulary)
    for start in range(0, len(texts), block):
        tokens = encoder.tokenize(list(texts[start : start + block]))
        counts += np.bincount(tokens.ids[tokens.mask.bool()].numpy(), minlength=len(counts))
    return counts / counts.sum()


def mean_weights(encoder: Encoder, texts: Sequence[str], block: int = 1000) -> Floats:
    """[texts]: Σ w / |s|, which brings a weighted mean to the paper's length; 1 where the encoder divides by |s|."""
    if not isinstance(encoder.token_weights, TokenWeights):
        return np.ones(len(texts))
    weights = encoder.token_weights.weights.double().cpu()
    means = []
    for start in range(0, len(texts), block):
        tokens = encoder.tokenize(list(texts[start : start + block]))
        means.append((weights[tokens.ids] * tokens.mask).sum(dim=1) / tokens.mask.sum(dim=1).clamp(min=1))
    return torch.cat(means).numpy()
