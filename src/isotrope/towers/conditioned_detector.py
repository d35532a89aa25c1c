"""A detector that knows the sentence vector: it reads a text with the vector in the place of its first token.

    scores = W · backbone([h, x_1, …, x_n]) + b      two classes a token: as it was, replaced

The gradient of what it scores reaches the vector, and so the encoder that made it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError


class ConditionedDetector(nn.Module):
    """A copy of the encoder's backbone as it is now, which learns apart from it, and a linear classifier of tokens.

    The vector takes the place of the first token's embedding as the layers would see it: positions and norm are added
    before.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        if _entrance(encoder.backbone) is None:
            raise InputError(
                "The detector puts the sentence vector among the embeddings of BERT and its kin (RoBERTa, DistilBERT, "
                f"ALBERT, ELECTRA); a {type(encoder.backbone).__name__} keeps them otherwise."
            )
        self.backbone = copy.deepcopy(encoder.backbone)
        self.classifier = nn.Linear(int(encoder.backbone.config.hidden_size), 2)

    def forward(self, ids: Tensor, mask: Tensor, vectors: Tensor) -> Tensor:
        """Scores [rows, n] of ids [rows, n] and vectors [rows, d]: log-odds of "replaced"."""
        with self._conditioned(vectors):
            states = self.backbone(input_ids=ids, attention_mask=mask).last_hidden_state
        classes: Tensor = self.classifier(states)
        return classes[..., 1] - classes[..., 0]

    @contextmanager
    def _conditioned(self, vectors: Tensor) -> Iterator[None]:
        def replace_first(module: nn.Module, given: Any, embedded: Tensor) -> Tensor:
            first = vectors.to(embedded.dtype).unsqueeze(1)
            return torch.cat([first, embedded[:, 1:]], dim=1)

        entrance = _entrance(self.backbone)
        assert entrance is not None
        handle = entrance.register_forward_hook(replace_first)
        try:
            yield
        finally:
            handle.remove()


def _entrance(backbone: nn.Module) -> nn.Module | None:
    """What the first layer reads: the embeddings, or the map behind narrow ones (ELECTRA, ALBERT)."""
    modules = dict(backbone.named_modules())
    places = ("embeddings_project", "encoder.embedding_hidden_mapping_in", "embeddings")
    return next((modules[place] for place in places if place in modules), None)
