"""Hidden tokens restored from a sentence vector and the middle layer's states of the masked text.

    p(x_t | v, x̃) = softmax(scores(layers([v, H_k(x̃)_1, …, H_k(x̃)_n])_t))

The states of the masked text know the rest of it, and nothing of what is hidden: that must come from the vector. A few
layers and a frozen lower half keep the network from doing without it.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.language_head import vocabulary_scores
from isotrope.errors import InputError
from isotrope.towers.decoder import HEAD_WIDTH, SPREAD, bert_layers


class LowerLayers(nn.Module):
    """A copy of the encoder's first ``count`` layers as they are now. Keep it ``Frozen``."""

    def __init__(self, encoder: Encoder, count: int) -> None:
        super().__init__()
        self.backbone: Any = copy.deepcopy(encoder.backbone)
        self.count = count
        if bert_layers(self.backbone):  # other models run through, and the state of that layer is taken
            self.backbone.encoder.layer = self.backbone.encoder.layer[:count]
            self.backbone.config.num_hidden_layers = count

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """H_count of the rows, [rows, n, d]."""
        found = self.backbone(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        states: Tensor = found.hidden_states[self.count]
        return states


class Reconstructor(nn.Module):
    """``layers`` fresh layers as BERT has them, and a copy of the masked-language head that learns apart."""

    def __init__(self, encoder: Encoder, layers: int) -> None:
        super().__init__()
        if encoder.language_model is None or encoder.text_tokenizer.mask is None:
            raise InputError("Restoring hidden tokens needs a model with a masked-language head and a [MASK] token.")
        config: Any = encoder.backbone.config
        width = int(config.hidden_size)
        self.enter = nn.Identity() if encoder.dimension == width else nn.Linear(encoder.dimension, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width,
                int(getattr(config, "num_attention_heads", 0)) or max(width // HEAD_WIDTH, 1),
                int(getattr(config, "intermediate_size", 0)) or 4 * width,
                float(getattr(config, "hidden_dropout_prob", 0.1)),
                activation="gelu",
                layer_norm_eps=float(getattr(config, "layer_norm_eps", 1e-12)),
                batch_first=True,
            )
            for _ in range(layers)
        )
        for name, weight in self.layers.named_parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=SPREAD)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)
        self._scores, self.head = vocabulary_scores(copy.deepcopy(encoder.language_model))

    def forward(self, vectors: Tensor, states: Tensor, mask: Tensor, asked: Tensor) -> Tensor:
        """Scores [asked, vocabulary] of vectors [rows, d] and states [rows, n, d] at flat positions ``asked``."""
        joined = torch.cat([self.enter(vectors).unsqueeze(1).to(states.dtype), states[:, 1:]], dim=1)
        for layer in self.layers:
            joined = layer(joined, src_key_padding_mask=mask == 0)
        scores: Tensor = self._scores(joined.flatten(0, 1)[asked])
        return scores
