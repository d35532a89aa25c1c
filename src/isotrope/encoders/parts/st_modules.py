"""Our own modules as sentence-transformers sees them: where no stock module will do, modules.json names one of these.

sentence-transformers loads them with ``trust_remote_code=True`` where isotrope is installed, and refuses them
otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from isotrope.encoders.parts.attention import Attention, attention_weights
from isotrope.encoders.parts.layer_walk import LayerWalk


class IsotropeFlow(nn.Module):
    """A flow behind the pooling."""

    def __init__(self, flow: nn.Module) -> None:
        super().__init__()
        self.flow = flow

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {**features, "sentence_embedding": self.flow(features["sentence_embedding"])}

    @staticmethod
    def load(path: str) -> IsotropeFlow:
        from isotrope.encoders.modules import read_flow

        return IsotropeFlow(read_flow(Path(path)))


class IsotropeAttention(nn.Module):
    """DeepMoji's attention in place of a pooling."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        states = features["token_embeddings"]
        weights = attention_weights(states, features["attention_mask"], self.attention.vector)
        return {**features, "sentence_embedding": (weights.unsqueeze(-1) * states).sum(dim=1)}

    @staticmethod
    def load(path: str) -> IsotropeAttention:
        from isotrope.encoders.modules import read_attention

        return IsotropeAttention(read_attention(Path(path)))


class IsotropeLayerWalk(nn.Module):
    """SBERT-WK in place of a pooling."""

    def __init__(self, pooling: LayerWalk) -> None:
        super().__init__()
        self.pooling = pooling

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        vectors = self.pooling(features["all_layer_embeddings"], features["attention_mask"])
        return {**features, "sentence_embedding": vectors}

    @staticmethod
    def load(path: str) -> IsotropeLayerWalk:
        from isotrope.encoders.modules import read_layer_walk

        return IsotropeLayerWalk(read_layer_walk(Path(path)))
