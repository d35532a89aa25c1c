"""Forward and backward of a whole backbone as CUDA graphs: a step of small batches costs two launches, not a thousand.

A graph has fixed shapes, so the tokens of a batch are filled up to one of a few numbers (at most a sixteenth more), and
a graph is recorded for each. A graph has fixed memory too, so it is replayed only while its last forward has had its
backward; a second forward inside one step goes without. Where rows are long, memory is short, or a step has several
batches, nothing is recorded. What dropout draws follows the seed of the step as it does without graphs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from isotrope.encoders.row_attention import is_short
from isotrope.encoders.row_layers import Inputs, RowLayers

MOST = 12  # graphs of one backbone
SMALLEST = 512  # tokens between two numbers that graphs are recorded for
SPARE = 0.4  # of the GPU's memory that must be free before one is recorded


class RowGraphs:
    """The graphs of one backbone, by everything that is fixed in them."""

    def __init__(self, layers: RowLayers) -> None:
        self.layers = layers
        self.weights = list(layers.parameters())
        self.dropouts = [part for part in layers.modules() if isinstance(part, nn.Dropout)]
        self.head_width = layers.head_width
        self.found: dict[Any, Graph | None] = {}

    def clear(self) -> None:
        self.found.clear()

    def last(self, inputs: Inputs, dtype: torch.dtype, compiled: bool, places: Tensor | None = None) -> Tensor | None:
        """H_L of the tokens or at some places, filled up; None where no graph can be had."""
        trained = torch.is_grad_enabled() and any(weight.requires_grad for weight in self.weights)
        if not trained or not is_short(inputs.longest, self.head_width, dtype):
            return None
        tokens, more = len(inputs.ids), 0 if places is None else size_for(len(places)) - len(places)
        filled = fill(inputs, room_for(inputs, more))
        if places is not None:  # more of them, behind the last row
            places = torch.cat([places, torch.arange(tokens, tokens + more, device=places.device)])
        modes = tuple(part.p if part.training else 0.0 for part in self.dropouts)
        key = (
            *(len(filled.ids), len(filled.borders), filled.longest, filled.segments is None, dtype, compiled, modes),
            None if places is None else len(places),
            tuple((weight.data_ptr(), weight.requires_grad) for weight in self.weights),
        )
        if key not in self.found:
            self.found[key] = self._recorded(filled, dtype, compiled, places)
        graph = self.found[key]
        return None if graph is None or graph.busy else graph(filled, places)

    def _recorded(self, inputs: Inputs, dtype: torch.dtype, compiled: bool, places: Tensor | None) -> Graph | None:
        if len(self.found) >= MOST:
            return None
        free, whole = torch.cuda.mem_get_info(inputs.ids.device)
        if free < SPARE * whole:
            return None
        generator = torch.cuda.default_generators[inputs.ids.device.index or 0]
        before = generator.get_state()
        try:
            return Graph(self.layers, inputs, dtype, compiled, places)
        finally:
            generator.set_state(before)


class Graph:
    """One recorded forward with its backward, and the memory that both have for themselves.

    Other threads go on meanwhile: the one that makes batches allocates and copies.
    """

    def __init__(
        self, layers: RowLayers, inputs: Inputs, dtype: torch.dtype, compiled: bool, places: Tensor | None
    ) -> None:
        self.busy = False
        self.places = None if places is None else places.clone()
        self.layers, self.dtype, self.compiled = layers, dtype, compiled
        self.named = dict(layers.named_parameters())
        self.inputs = inputs._replace(
            ids=inputs.ids.clone(),
            positions=inputs.positions.clone(),
            borders=inputs.borders.clone(),
            segments=None if inputs.segments is None else inputs.segments.clone(),
        )
        self.trained = [weight for weight in layers.parameters() if weight.requires_grad]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # what is compiled or allocated at a first call must not be recorded
            for _ in range(3):
                states, leaves = self._walk()
                self._gradients(states, leaves, torch.zeros_like(states))
                del states, leaves
        torch.cuda.current_stream().wait_stream(side)
        pool = torch.cuda.graph_pool_handle()
        self.forward, self.backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.forward, pool=pool, capture_error_mode="thread_local"):
            states, leaves = self._walk()
        self.gradient = torch.zeros_like(states)
        with torch.cuda.graph(self.backward, pool=pool, capture_error_mode="thread_local"):
            self.gradients = self._gradients(states, leaves, self.gradient)
        self.states = states.detach()

    def _walk(self) -> tuple[Tensor, list[Tensor]]:
        """H_L, and the weights it was computed with: others over the same memory, for those of the model may stand in
        a graph of autograd that lives on another stream."""
        leaves = {name: weight.detach().requires_grad_(weight.requires_grad) for name, weight in self.named.items()}
        given = (self.inputs, self.dtype, self.compiled, self.places)
        states: Tensor = torch.func.functional_call(self.layers, leaves, given)
        return states, [leaf for leaf in leaves.values() if leaf.requires_grad]

    @staticmethod
    def _gradients(states: Tensor, leaves: list[Tensor], gradient: Tensor) -> tuple[Tensor | None, ...]:
        return torch.autograd.grad(states, leaves, gradient, allow_unused=True)

    def __call__(self, inputs: Inputs, places: Tensor | None) -> Tensor:
        for own, given in zip((*self.inputs, self.places), (*inputs, places), strict=True):
            if isinstance(own, Tensor) and isinstance(given, Tensor):
                own.copy_(given)
        self.busy = True
        states: Tensor = Replayed.apply(self, *self.trained)  # type: ignore[no-untyped-call]
        return states


class Replayed(torch.autograd.Function):
    """The states, with the gradients of the weights behind them. They are valid until the next replay."""

    @staticmethod
    def forward(ctx: Any, graph: Graph, *trained: Tensor) -> Tensor:
        ctx.graph = graph
        graph.forward.replay()
        return graph.states.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        graph: Graph = ctx.graph
        graph.gradient.copy_(gradient)
        graph.backward.replay()
        graph.busy = False
        return None, *(None if found is None else found.detach() for found in graph.gradients)


def size_for(tokens: int) -> int:
    """The number of tokens that a batch is filled up to: at most a sixteenth more, or 511 tokens."""
    step = max(SMALLEST, 1 << max(tokens.bit_length() - 5, 0))
    return -(-tokens // step) * step


def room_for(inputs: Inputs, more: int) -> int:
    """The same for a batch and ``more`` tokens behind it.

    Never as many as its rows would have if they were full: kernels leave no room undefined by that.
    """
    tokens = len(inputs.ids)
    size = size_for(tokens + more)
    full = (len(inputs.borders) - 1) * inputs.longest
    return size + SMALLEST if tokens < size == full else size


def fill(inputs: Inputs, size: int) -> Inputs:
    """Tokens behind the last border, which no row sees and whose states nobody reads."""
    more = size - len(inputs.ids)

    def longer(part: Tensor) -> Tensor:
        return nn.functional.pad(part, (0, more))

    segments = None if inputs.segments is None else longer(inputs.segments)
    return inputs._replace(ids=longer(inputs.ids), positions=longer(inputs.positions), segments=segments)
