"""BERT's forward for reading alone, in torch's own layers: the first vector need not wait for transformers.

    h_0 = LN(word + segment + place)
    a   = LN(h + W_o softmax(q kᵀ / √d) v),    h' = LN(a + W_2 GELU(W_1 a))

Weights have the names of transformers' BertModel, which takes the place of this module, over the same weights, as soon
as somebody asks for it (late_backbone.py). There is no dropout here: training makes the model.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isotrope.encoders.word_vectors import States

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PREFIX = "bert."  # of the backbone's weights in a file that holds a language head too
# What a config must say to be of this shape; a field that is missing has transformers' default, which is the same.
PLAIN = {
    "model_type": ("bert",),
    "hidden_act": ("gelu", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "position_embedding_type": ("absolute", None),
    "quantization_config": (None,),
    "auto_map": (None,),
}


@dataclass
class PlainConfig:
    """The fields of a config that decide the forward."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float
    is_decoder: bool = False

    @classmethod
    def read(cls, file: Path) -> PlainConfig | None:
        """Of a config.json that describes this shape; None for any other, whole or not."""
        try:
            facts = json.loads(file.read_text(encoding="utf-8"))
            if any(facts.get(name) not in allowed for name, allowed in PLAIN.items()):
                return None
            numbers = {field.name: facts[field.name] for field in fields(cls)[:-1]}
        except (OSError, ValueError, KeyError, AttributeError):
            return None
        sound = all(type(value) in (int, float) and value > 0 for value in numbers.values())
        return cls(**numbers) if sound and numbers["hidden_size"] % numbers["num_attention_heads"] == 0 else None

    def head(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the language head's weights, which a file may hold besides, and which are not read."""
        width, start = self.hidden_size, "cls.predictions."
        named = {"bias": (self.vocab_size,), "transform.dense.weight": (width, width), "transform.dense.bias": (width,)}
        named |= {"transform.LayerNorm.weight": (width,), "transform.LayerNorm.bias": (width,)}
        return {start + name: shape for name, shape in named.items()}


def _table(rows: int, width: int) -> nn.Embedding:
    return nn.Embedding(rows, width, _weight=torch.empty(rows, width, device="meta"))


def _linear(inputs: int, outputs: int) -> nn.Linear:
    """A layer that waits for its weights: drawing them takes time, and on the meta device it imports a compiler."""
    layer = nn.Linear(1, 1)
    layer.in_features, layer.out_features = inputs, outputs
    layer.weight = nn.Parameter(torch.empty(outputs, inputs, device="meta"))
    layer.bias = nn.Parameter(torch.empty(outputs, device="meta"))
    return layer


class PlainEmbeddings(nn.Module):
    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        self.word_embeddings = _table(config.vocab_size, config.hidden_size)
        self.position_embeddings = _table(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = _table(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, ids: Tensor, segments: Tensor | None) -> Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        segments = torch.zeros_like(ids) if segments is None else segments
        words = self.word_embeddings(ids) + self.token_type_embeddings(segments)
        found: Tensor = self.LayerNorm(words + self.position_embeddings(places))
        return found


class PlainSelfAttention(nn.Module):
    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        self.heads, width = config.num_attention_heads, config.hidden_size
        self.query, self.key, self.value = _linear(width, width), _linear(width, width), _linear(width, width)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        split = (*states.shape[:2], self.heads, -1)
        query, key, value = (side(states).view(split).transpose(1, 2) for side in (self.query, self.key, self.value))
        found = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return found.transpose(1, 2).reshape(states.shape)


class PlainOutput(nn.Module):
    """LN(W x + b + what stood before)."""

    def __init__(self, config: PlainConfig, width: int) -> None:
        super().__init__()
        self.dense = _linear(width, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, states: Tensor, before: Tensor) -> Tensor:
        found: Tensor = self.LayerNorm(self.dense(states) + before)
        return found


class PlainAttention(nn.Module):
    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        self.self = PlainSelfAttention(config)
        self.output = PlainOutput(config, config.hidden_size)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        found: Tensor = self.output(self.self(states, mask), states)
        return found


class PlainIntermediate(nn.Module):
    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        self.dense = _linear(config.hidden_size, config.intermediate_size)
        self.intermediate_act_fn = nn.GELU()

    def forward(self, states: Tensor) -> Tensor:
        found: Tensor = self.intermediate_act_fn(self.dense(states))
        return found


class PlainLayer(nn.Module):
    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        self.attention = PlainAttention(config)
        self.intermediate = PlainIntermediate(config)
        self.output = PlainOutput(config, config.intermediate_size)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        attended = self.attention(states, mask)
        found: Tensor = self.output(self.intermediate(attended), attended)
        return found


class PlainLayers(nn.Module):
    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(PlainLayer(config) for _ in range(config.num_hidden_layers))


class PlainBert(nn.Module):
    """The backbone until somebody asks for transformers' own, which ``make`` builds with any weights."""

    def __init__(self, config: PlainConfig, weights: dict[str, Tensor], make: Callable[[], PreTrainedModel]) -> None:
        super().__init__()
        self.config = config
        with torch.random.fork_rng(devices=[]):  # a seed that somebody set is for his own draws
            self.embeddings, self.encoder = PlainEmbeddings(config), PlainLayers(config)
        self.load_state_dict(weights, assign=True)
        self._make = make
        self._model: list[Any] = []  # in a list: no module of this one

    @classmethod
    def of(cls, file: Path, weights: dict[str, Tensor], make: Callable[[], PreTrainedModel]) -> PlainBert | None:
        """Of config.json and the packed weights beside it; None where they are not exactly of this shape."""
        config = PlainConfig.read(file)
        own = {name.removeprefix(PREFIX): weight for name, weight in weights.items() if name.startswith(PREFIX)}
        others = {name: tuple(weight.shape) for name, weight in weights.items() if not name.startswith(PREFIX)}
        if config is None or (own and others != config.head()):
            return None
        try:
            return cls(config, own or weights, make)
        except (RuntimeError, TypeError):  # weights that are missing, unknown or of another size
            return None

    @property
    def made(self) -> PreTrainedModel | None:
        """Transformers' model, where it was asked for already."""
        return self._model[0] if self._model else None

    def model(self) -> PreTrainedModel:
        """Transformers' model over these very weights; made once."""
        if not self._model:
            own = self.state_dict(keep_vars=True)
            wanted = {name: weight.requires_grad for name, weight in own.items()}
            # Its weights are drawn and thrown away; the seed is left as it was.
            with torch.inference_mode(False), torch.random.fork_rng(devices=[]):
                model = self._make()
                model.load_state_dict(own, assign=True)
                model.to(next(iter(own.values())).device)  # the buffers, which a checkpoint may be put into later
            for name, weight in own.items():
                weight.requires_grad_(wanted[name])
            self._model.append(model.train(self.training))
        found: PreTrainedModel = self._model[0]
        return found

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embeddings.word_embeddings

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> States:
        states = self.embeddings(input_ids, token_type_ids)
        mask = None
        if not bool(attention_mask.all()):
            mask = attention_mask[:, None, None, :].bool().expand(-1, 1, input_ids.shape[1], -1)
        layers = [states]
        for layer in self.encoder.layer:
            layers.append(layer(layers[-1], mask))
            if not output_hidden_states:
                del layers[0]
        return States(layers[-1], tuple(layers))
