"""Encoding on a GPU: texts are tokenized ahead by other cores while the GPU computes, and vectors come back behind it.

    block i + 1   tokenized in a thread (most of it outside the interpreter's lock)
    block i       groups of like length → the GPU, without waiting for an answer
    group j − 1   its vectors arrive in pinned memory and are checked

Half precision (float16) computes products in 16 bits and sums in 32. What it costs is measured, not promised:
``half_cost`` compares it with float32 on some of the texts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from isotrope.errors import InputError
from isotrope.progress import say
from isotrope.tokens.padded import Lengths, Tokens

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder
    from isotrope.tokens.text_tokenizer import Flat, TextTokenizer

FIRST, BLOCK = 4_096, 16_384  # texts that are tokenized at a time: the GPU waits for the first block
IN_FLIGHT = 2  # groups whose vectors are not back yet
COMPARED = 256  # texts that the cost of half precision is measured on


def half_precision(device: torch.device, half: bool) -> Any:
    """Products in float16 inside the block, on a GPU."""
    return torch.autocast(device.type, torch.float16) if half and device.type == "cuda" else nullcontext()


def tokenized_ahead(tokenizer: TextTokenizer, texts: Sequence[str]) -> Iterator[tuple[int, Flat]]:
    """(the number of the first text, ids and lengths) of each block; the next one is made meanwhile."""
    starts = [0, *range(FIRST, len(texts), BLOCK)] if texts else []
    ends = [*starts[1:], len(texts)]
    with ThreadPoolExecutor(2) as pool:

        def begin(number: int) -> Future[Flat]:
            return pool.submit(tokenizer.flat, list(texts[starts[number] : ends[number]]))

        waiting = deque(begin(number) for number in range(min(2, len(starts))))
        for number, start in enumerate(starts):
            found = waiting.popleft().result()
            if number + 2 < len(starts):
                waiting.append(begin(number + 2))
            yield start, found


def framed_rows(
    tokenizer: TextTokenizer, flat: npt.NDArray[Any], starts: Lengths, lengths: Lengths, rows: Any, most: int
) -> Tokens:
    """Some rows of ids that stand one behind another, framed and padded."""
    chosen = lengths[rows]
    behind = np.cumsum(chosen) - chosen
    places = np.arange(int(chosen.sum())) + np.repeat(starts[rows] - behind, chosen)
    return tokenizer.framed(flat[places], chosen, most)


def vectors_behind(outputs: Iterator[tuple[Any, torch.Tensor]]) -> Iterator[tuple[Any, npt.NDArray[np.float32]]]:
    """The same outputs on the host, a few groups later: nobody waits for the one that is being computed."""
    pending: deque[tuple[Any, torch.Tensor, torch.cuda.Event]] = deque()
    for rows, output in outputs:
        host = torch.empty(output.shape, dtype=output.dtype, pin_memory=True)
        host.copy_(output, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        pending.append((rows, host, event))
        if len(pending) > IN_FLIGHT:
            yield _arrived(*pending.popleft())
    while pending:
        yield _arrived(*pending.popleft())


def _arrived(rows: Any, host: torch.Tensor, event: torch.cuda.Event) -> tuple[Any, npt.NDArray[np.float32]]:
    event.synchronize()
    return rows, host.numpy()


@dataclass(frozen=True)
class HalfCost:
    """Cosines between the vectors of half precision and those of float32."""

    texts: int
    mean: float
    least: float

    def __str__(self) -> str:
        return (
            f"half precision: cosine with float32 {self.mean:.6f} on average, {self.least:.6f} at least "
            f"({self.texts:,} texts)"
        )


def say_half_cost(encoder: Encoder, texts: Sequence[str]) -> None:
    """One line of the log; a model on a CPU, which has no half precision, is refused."""
    if encoder.device.type != "cuda":
        raise InputError(
            f"half is for a GPU, and the model is on {encoder.device.type}; leave it out, or make an int8 copy for a "
            "CPU: isotrope export MODEL DIR --int8.",
            setting="half",
        )
    say(str(half_cost(encoder, texts)))


def half_cost(encoder: Encoder, texts: Sequence[str]) -> HalfCost:
    """What half precision changes, on the first texts; on a CPU, which has none, nothing."""
    sample = [text for text in texts if text][:COMPARED]
    half, whole = (
        np.asarray(encoder.encode(sample, show_progress_bar=False, half=half), dtype=np.float64)
        for half in (True, False)
    )
    lengths = np.linalg.norm(half, axis=1) * np.linalg.norm(whole, axis=1)
    cosines = (half * whole).sum(axis=1) / np.maximum(lengths, 1e-12)
    return HalfCost(len(sample), float(cosines.mean()), float(cosines.min()))
