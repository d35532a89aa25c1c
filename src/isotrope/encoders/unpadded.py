"""Rows without their padding through a model of BERT's family, on a GPU: every token that is computed is a real one.

    x = LN(word + position + type)                       [tokens, d], all rows one behind another
    x = LN(x + W_o · attention(W_q x, W_k x, W_v x))     a token attends to those of its own row
    x = LN(x + W_2 · GELU(W_1 x))

The weights are those of the transformers module, read at each call; its arithmetic, dropout and order of operations are
kept, so states agree to rounding. Under autocast states are kept in half precision between layers, and sums and norms
are computed in float32. In half of a batch of sentences there is nothing but padding: leaving it out is most of the
gain, and no row has to wait for others of its length. Models of another family, with hooks, adapters or gradient
checkpointing, take their own forward.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional

from isotrope.encoders.row_attention import fits_heads
from isotrope.encoders.row_graphs import RowGraphs
from isotrope.encoders.row_layers import Inputs, RowLayers
from isotrope.encoders.speed import Speed, remember, speed_now
from isotrope.tokens.padded import Tokens, moved

FAMILY = ("bert", "roberta", "xlm-roberta", "camembert", "electra")
ACTIVATIONS = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}


_known: WeakKeyDictionary[nn.Module, Unpadded | None] = WeakKeyDictionary()
_padded: ContextVar[bool] = ContextVar("padded", default=False)


@contextmanager
def with_padding() -> Iterator[None]:
    """Inside the block models take their own forward: what benchmarks and tests compare with."""
    token = _padded.set(True)
    try:
        yield
    finally:
        _padded.reset(token)


def unpadded(backbone: nn.Module, device: torch.device) -> Unpadded | None:
    """The forward without padding of tokens on a device, where that is a GPU and the model can have one."""
    if device.type != "cuda" or _padded.get():
        return None
    return of_backbone(backbone)


def of_backbone(backbone: nn.Module) -> Unpadded | None:
    """The same on any device: on a CPU it is slow, and there for tests."""
    if backbone not in _known:
        _known[backbone] = Unpadded(backbone) if _is_plain(backbone) else None
    found = _known[backbone]
    return None if found is None or found.changed(backbone) else found


class Unpadded:
    """The forward of one backbone, and the graphs that were recorded of it."""

    def __init__(self, backbone: Any) -> None:
        config = backbone.config
        self.layers = RowLayers(
            backbone.embeddings,
            getattr(backbone, "embeddings_project", None),
            backbone.encoder.layer,
            int(config.num_attention_heads),
            ACTIVATIONS[config.hidden_act],
        )
        self.graphs = RowGraphs(self.layers)
        remember(self.graphs)
        parents = [backbone.embeddings, *backbone.encoder.layer.modules()]
        self.children = [parent._modules for parent in parents]
        self.inside = self._inside()
        hooked = [backbone, *(part for part in self.inside if part is not None)]
        self.hooks = [hooks for part in hooked for hooks in (part._forward_hooks, part._forward_pre_hooks)]

    def _inside(self) -> list[nn.Module | None]:
        return [part for children in self.children for part in children.values()]

    def changed(self, backbone: Any) -> bool:
        """Whether a hook, an adapter or gradient checkpointing came since: the model's own forward sees them."""
        if backbone.is_gradient_checkpointing or backbone.embeddings is not self.layers.embeddings:
            return True
        return any(self.hooks) or self._inside() != self.inside

    def states(self, tokens: Tokens) -> Tensor:
        """H_L, [rows, width, d], zero where padding stands."""
        place, inputs = laid_out(tokens)
        return padded(self._last(tokens, inputs)[: len(place)].float(), tokens, place)

    def first_states(self, tokens: Tokens) -> Tensor:
        """Of H_L the first token of each row, [rows, d]: nothing is padded for it, forward or backward."""
        _, inputs = laid_out(tokens)
        return self._last(tokens, inputs).index_select(0, inputs.borders[:-1]).float()

    def _last(self, tokens: Tokens, inputs: Inputs) -> Tensor:
        """H_L of the tokens, perhaps with some behind them."""
        speed, dtype = self._speed(tokens)
        last = self.graphs.last(inputs, dtype, speed.compiled) if speed.graphs else None
        return self.layers(inputs, dtype, speed.compiled) if last is None else last

    def states_at(self, tokens: Tokens, places: Tensor) -> Tensor:
        """H_L at some flat places of the padded rows, none twice and none of them padding, [places, d]."""
        place, inputs = laid_out(tokens)
        if len(place) < tokens.ids.numel():
            order = torch.arange(len(place), device=place.device)
            places = place.new_zeros(tokens.ids.numel()).index_copy(0, place, order)[places]
        speed, dtype = self._speed(tokens)
        last = self.graphs.last(inputs, dtype, speed.compiled, places) if speed.graphs else None
        if last is None:
            compiled = speed.compiled and places.is_cuda and torch.is_grad_enabled()
            last = self.layers.at(inputs, places, dtype, compiled)
        return last[: len(places)].float()

    def all_layers(self, tokens: Tokens) -> tuple[Tensor, ...]:
        """H_0 … H_L, each [rows, width, d]."""
        place, inputs = laid_out(tokens)
        speed, dtype = self._speed(tokens)
        return tuple(padded(s.float(), tokens, place) for s in self.layers.walk(inputs, dtype, speed.compiled))

    def _speed(self, tokens: Tokens) -> tuple[Speed, torch.dtype]:
        kind = tokens.ids.device.type
        half = torch.is_autocast_enabled(kind)
        weight: Tensor = self.layers.embeddings.word_embeddings.weight
        return speed_now(), torch.get_autocast_dtype(kind) if half else weight.dtype


def laid_out(tokens: Tokens) -> tuple[Tensor, Inputs]:
    """Where each token stands in the padded rows laid flat, and the tokens. Lengths are known on the host, so nothing
    is asked of the device."""
    device, (rows, width) = tokens.ids.device, tokens.ids.shape
    total = int(tokens.lengths.sum())
    lengths = moved(torch.from_numpy(tokens.lengths), device)
    ends = lengths.cumsum(0)
    row = torch.repeat_interleave(torch.arange(rows, device=device), lengths, output_size=total)
    positions = torch.arange(total, device=device) - (ends - lengths)[row]
    place = row * width + positions
    segments = None if tokens.segments is None else tokens.segments.flatten()[place]
    if tokens.positions is not None:
        positions = tokens.positions.flatten()[place]
    borders = functional.pad(ends, (1, 0)).int()
    # In steps, so that few graphs are compiled.
    return place, Inputs(tokens.ids.flatten()[place], positions, borders, segments, -(-width // 64) * 64)


def padded(states: Tensor, tokens: Tokens, place: Tensor) -> Tensor:
    """[tokens, d] → [rows, width, d]."""
    rows, width = tokens.ids.shape
    flat = states.new_zeros(rows * width, states.shape[-1])
    return flat.index_copy(0, place, states).view(rows, width, -1)


def _is_plain(backbone: Any) -> bool:
    """Whether the module is one of the family, with the parts that the forward reads and no others."""
    config: Any = getattr(backbone, "config", None)
    if getattr(config, "model_type", None) not in FAMILY or not type(backbone).__module__.startswith("transformers."):
        return False
    if config.is_decoder or getattr(config, "add_cross_attention", False) or config.hidden_act not in ACTIVATIONS:
        return False
    if getattr(config, "position_embedding_type", "absolute") != "absolute":
        return False
    dense = [part for part in backbone.encoder.modules() if hasattr(part, "in_features")]
    plain = all(type(part) is nn.Linear and part.bias is not None for part in dense)
    return plain and fits_heads(config.hidden_size // config.num_attention_heads)
