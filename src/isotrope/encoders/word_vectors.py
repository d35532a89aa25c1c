"""A table in place of a backbone: a token's state is its row, whatever its context; a vector is the mean of the rows.

Use it for word2vec and for models of concepts: no layers, so it is fast on any machine, and blind to word order. On
disk it is StaticEmbedding of sentence-transformers (parts/static_embedding.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

ENDLESS = 1 << 20  # words of a text: a mean has no longest text


@dataclass
class StaticConfig:
    """The fields of a backbone's config that other rooms read."""

    hidden_size: int
    vocab_size: int
    num_hidden_layers: int = 0
    max_position_embeddings: int = ENDLESS
    output_hidden_states: bool = False
    is_decoder: bool = False


@dataclass(frozen=True)
class States:
    """The fields of a backbone's output that other rooms read."""

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...]


class StaticVectors(nn.Module):
    """The table, in the shape of a backbone without layers."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.table = nn.Embedding.from_pretrained(vectors, freeze=False)
        self.config = StaticConfig(vectors.shape[1], vectors.shape[0])

    def get_input_embeddings(self) -> nn.Embedding:
        return self.table

    @torch.no_grad()
    def weigh(self, weights: Tensor) -> None:
        """Each row times its weight: the mean becomes a weighted one, divided by the number of words."""
        self.table.weight.mul_(weights.unsqueeze(1))

    def means(self, ids: Tensor, starts: Tensor) -> Tensor:
        """[texts, d]: the mean of the rows of each text, whose tokens stand one after another in ``ids`` from its place
        in ``starts``; a text without tokens is zero. Nothing is padded, so it is the fast way.
        """
        return nn.functional.embedding_bag(ids, self.table.weight, starts, mode="mean")

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **rest: Any) -> States:
        states = self.table(input_ids)
        return States(states, (states,))


class Concepts(StaticVectors):
    """The table of concepts, and a matrix for each relation: ``matrices[r] @ a`` lies near what r relates a to."""

    matrices: Tensor

    def __init__(self, vectors: Tensor, relations: Sequence[str], matrices: Tensor) -> None:
        super().__init__(vectors)
        self.relations = tuple(relations)
        self.register_buffer("matrices", matrices)
