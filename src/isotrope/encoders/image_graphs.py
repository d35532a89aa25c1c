"""Augmentation and network of an image encoder as CUDA graphs: a batch costs a few launches, not a thousand.

    images = augment(pixels, draws)        nothing in it is random
    vectors = network(images)              with its backward; without one for a momentum copy

A graph has fixed shapes and fixed memory. All batches of a run have one shape, so each of these is recorded once; it is
replayed only while its last forward has had its backward. Batch norms count a recorded batch as any other. Nothing is
recorded in evaluation, or where batch norms of several processes share their statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, distributed, nn

from isotrope.encoders.shared_batch_norm import batch_norms
from isotrope.encoders.speed import remember, speed_now
from isotrope.progress import say
from isotrope.views.image_views import ImageView

SPARE = 0.2  # of the GPU's memory that must be free before one is recorded
WARMING = 3  # calls before one is recorded: what is compiled or allocated at a first call must not be
ORIGINAL = "_orig_mod."  # what torch.compile puts before the names of a module's weights


class Recorded:
    """One call of ``work``, without gradient."""

    def __init__(self, work: Callable[..., Tensor], inputs: Sequence[Tensor]) -> None:
        self.inputs = [one.clone() for one in inputs]
        with torch.no_grad():
            warmed(lambda: work(*self.inputs))
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
                self.output = work(*self.inputs)

    def __call__(self, *inputs: Tensor) -> Tensor:
        for own, given in zip(self.inputs, inputs, strict=True):
            own.copy_(given)
        self.graph.replay()
        return self.output.clone()


class RecordedNetwork:
    """One forward of a network with its backward, and the memory that both have for themselves."""

    def __init__(self, network: nn.Module, walk: Callable[..., Tensor], images: Tensor, prefix: str) -> None:
        self.busy = False
        self.images = images.clone()
        self.trained = [weight for weight in network.parameters() if weight.requires_grad]
        # Others over the same memory: those of the model may stand in a graph of autograd on another stream.
        weights = {
            prefix + name: weight.detach().requires_grad_(weight.requires_grad)
            for name, weight in network.named_parameters()
        }
        leaves = [weight for weight in weights.values() if weight.requires_grad]

        def gradients(vectors: Tensor, gradient: Tensor) -> tuple[Tensor | None, ...]:
            return torch.autograd.grad(vectors, leaves, gradient, allow_unused=True)

        def whole() -> None:
            vectors = walk(weights, self.images)
            gradients(vectors, torch.zeros_like(vectors))

        warmed(whole)
        pool = torch.cuda.graph_pool_handle()
        self.forward, self.backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.forward, pool=pool, capture_error_mode="thread_local"):
            vectors = walk(weights, self.images)
        self.gradient = torch.zeros_like(vectors)
        with torch.cuda.graph(self.backward, pool=pool, capture_error_mode="thread_local"):
            self.gradients = gradients(vectors, self.gradient)
        self.vectors = vectors.detach()

    def __call__(self, images: Tensor) -> Tensor:
        self.images.copy_(images)
        self.busy = True
        vectors: Tensor = Replayed.apply(self, *self.trained)  # type: ignore[no-untyped-call]
        return vectors


class Replayed(torch.autograd.Function):
    """The vectors, with the gradients of the weights behind them. They are valid until the next replay."""

    @staticmethod
    def forward(ctx: Any, graph: RecordedNetwork, *trained: Tensor) -> Tensor:
        ctx.graph = graph
        graph.forward.replay()
        return graph.vectors.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        graph: RecordedNetwork = ctx.graph
        graph.gradient.copy_(gradient)
        graph.backward.replay()
        graph.busy = False
        return None, *(None if found is None else found.detach() for found in graph.gradients)


class ImageGraphs:
    """What was compiled and recorded of one network, by everything that is fixed in it."""

    def __init__(self) -> None:
        self.found: dict[Any, Any] = {}
        self.compiled: nn.Module | None = None
        remember(self)

    def clear(self) -> None:
        self.found.clear()
        self.compiled = None

    def images(self, view: ImageView) -> Tensor:
        """The augmented images of a view."""
        if not view.pixels.is_cuda or not speed_now().graphs:
            return view.images()
        tensors = view.tensors()
        key = (view.steps, view.size, *(tuple(one.shape) for one in tensors))
        if key not in self.found:
            self.found[key] = attempted(
                lambda: Recorded(lambda *given: view.with_tensors(given).images(), tensors), view.pixels.device
            )
        recorded: Recorded | None = self.found[key]
        return view.images() if recorded is None else recorded(*tensors)

    def vectors(self, network: nn.Module, images: Tensor) -> Tensor:
        """The same as ``network(images)``."""
        speed, norms = speed_now(), batch_norms(network)
        learns = network.training or any(norm.training for norm in norms)
        if not images.is_cuda or not learns or not (speed.compiled or speed.graphs) or _several():
            plain: Tensor = network(images)
            return plain
        if speed.compiled and self.compiled is None:
            self.compiled = compiled_network(network)
        chosen = network if self.compiled is None else self.compiled
        recorded = self._recorded(network, chosen, images) if speed.graphs else None
        if recorded is None or getattr(recorded, "busy", False):
            vectors: Tensor = chosen(images)
            return vectors
        replayed: Tensor = recorded(images)
        return replayed

    def _recorded(self, network: nn.Module, chosen: nn.Module, images: Tensor) -> Any:
        weights = list(network.parameters())
        trained = torch.is_grad_enabled() and any(weight.requires_grad for weight in weights)
        half, dtype = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
        key = (
            *(tuple(images.shape), images.dtype, half, dtype, trained),
            tuple((part.training, getattr(part, "groups", 1)) for part in network.modules()),
            tuple((weight.data_ptr(), weight.requires_grad) for weight in weights),
        )
        if key not in self.found:

            def walk(given: dict[str, Tensor], pixels: Tensor) -> Tensor:
                with torch.autocast("cuda", dtype, enabled=half, cache_enabled=False):  # a cast must be recorded
                    vectors: Tensor = torch.func.functional_call(chosen, given, (pixels,))
                    return vectors

            def record() -> Any:
                if trained:
                    return RecordedNetwork(network, walk, images, "" if chosen is network else ORIGINAL)
                return Recorded(lambda pixels: walk({}, pixels), [images])

            with unchanged(network, images.device):
                self.found[key] = attempted(record, images.device)
        return self.found[key]


_known: WeakKeyDictionary[nn.Module, ImageGraphs] = WeakKeyDictionary()


def graphs_of(network: nn.Module) -> ImageGraphs:
    if network not in _known:
        _known[network] = ImageGraphs()
    return _known[network]


def compiled_network(network: nn.Module) -> nn.Module:
    """Batch norms, activations and casts fused between the convolutions."""
    compiled: nn.Module = torch.compile(network, dynamic=False)  # type: ignore[assignment]
    return compiled


def warmed(work: Callable[[], object]) -> None:
    """Call it a few times on a stream of its own."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARMING):
            work()
    torch.cuda.current_stream().wait_stream(side)


def attempted(record: Callable[[], Any], device: torch.device) -> Any:
    """What was recorded; None where memory is short."""
    free, whole = torch.cuda.mem_get_info(device)
    if free < SPARE * whole:
        return None
    try:
        return record()
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        say("Memory is too short for CUDA graphs: the run goes on without them.")
        return None


@contextmanager
def unchanged(network: nn.Module, device: torch.device) -> Iterator[None]:
    """Buffers of a network and random numbers of its device are after the block what they were before."""
    generator = torch.cuda.default_generators[device.index or 0]
    kept, state = [(buffer, buffer.clone()) for buffer in network.buffers()], generator.get_state()
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, before in kept:
                buffer.copy_(before)
        generator.set_state(state)


def _several() -> bool:
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1
