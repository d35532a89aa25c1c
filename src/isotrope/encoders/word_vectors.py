"""A table in place of a backbone: a token's state is its row, whatever stands beside it. sentence-transformers calls it
StaticEmbedding.

A vector is the mean of the rows. Its folder holds model.safetensors (``embedding.weight``) and tokenizer.json. A table
of concepts has the matrices of its relations in the same file, where other readers pass them over.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from isotrope.errors import InputError
from isotrope.tokens.word_vocabulary import word_tokenizer

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

NAME = "StaticEmbedding"
ENDLESS = 1 << 20  # words of a text: a mean has no longest text


@dataclass
class StaticConfig:
    """What the rest of the house asks of a backbone's config."""

    hidden_size: int
    vocab_size: int
    num_hidden_layers: int = 0
    max_position_embeddings: int = ENDLESS
    output_hidden_states: bool = False
    is_decoder: bool = False


@dataclass(frozen=True)
class States:
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

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **rest: Any) -> States:
        states = self.table(input_ids)
        return States(states, (states,))


class Concepts(StaticVectors):
    """The table of concepts, and a matrix for each relation:

    ``matrices[r] @ a`` lies at what stands in relation r to a.
    """

    matrices: Tensor

    def __init__(self, vectors: Tensor, relations: Sequence[str], matrices: Tensor) -> None:
        super().__init__(vectors)
        self.relations = tuple(relations)
        self.register_buffer("matrices", matrices)


def write_static(encoder: Encoder, place: Path) -> None:
    backbone = encoder.backbone
    assert isinstance(backbone, StaticVectors)
    if encoder.pooling.modes != ("mean",) or encoder.token_weights is not None:
        raise InputError("A table of vectors is saved with its plain mean, the only pooling that its format knows.")
    tensors = {"embedding.weight": backbone.table.weight.detach().cpu().contiguous()}
    names = {}
    if isinstance(backbone, Concepts):
        tensors["relations"] = backbone.matrices.detach().cpu().contiguous()
        names["relations"] = json.dumps(backbone.relations)
    save_file(tensors, place / "model.safetensors", metadata=names)
    encoder.tokenizer.backend_tokenizer.save(str(place / "tokenizer.json"))


def read_static(place: Path) -> tuple[StaticVectors, Any]:
    """The table and its tokenizer."""
    from tokenizers import Tokenizer

    for name in ("model.safetensors", "tokenizer.json"):
        if not (place / name).is_file():
            raise InputError(f"{place}: {name} is missing.")
    try:
        with safe_open(place / "model.safetensors", framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            names = json.loads((file.metadata() or {}).get("relations", "[]"))
        backend = Tokenizer.from_file(str(place / "tokenizer.json"))
    except SafetensorError as error:
        raise InputError(f"{place}/model.safetensors: cannot be read ({error}).") from error
    except Exception as error:  # the tokenizers library raises nothing more precise
        raise InputError(f"{place}/tokenizer.json: the tokenizer cannot be loaded ({error}).") from error
    vectors = tensors.get("embedding.weight")
    if vectors is None or vectors.dim() != 2 or len(vectors) < backend.get_vocab_size():
        raise InputError(
            f"{place}: model.safetensors holds no table (embedding.weight) with a row for each token of tokenizer.json."
        )
    vectors = vectors.float()
    if "relations" not in tensors:
        return StaticVectors(vectors), word_tokenizer(backend)
    if tensors["relations"].shape != (len(names), vectors.shape[1], vectors.shape[1]):
        raise InputError(f"{place}: model.safetensors holds relations that do not fit its table.")
    return Concepts(vectors, names, tensors["relations"].float()), word_tokenizer(backend)
