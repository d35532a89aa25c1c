"""``encode`` shared by several processes of one machine: each has a copy of the model and its share of the threads.

    vectors = encoder.encode(texts, processes=4)

Worth it for tens of thousands of texts on a CPU of many cores, where one process leaves cores idle; each process needs
the memory of the model again and some seconds to begin. The vectors are those of one process up to rounding. The model
travels as a saved folder, so one that cannot be saved is refused. Processes are spawned, so a script that calls this
needs the guard ``if __name__ == "__main__":``, as Python's own pools do.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from isotrope.encoders.cut_texts import CutTexts, counting_cut, note_cut
from isotrope.encoders.truncation import check_count
from isotrope.errors import InputError, check_between
from isotrope.progress import bar, hidden

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

CHUNKS = 4  # for each process: the last ones to end differ by little
LARGEST = 4096  # texts in one chunk
_encoder: Encoder | None = None


def encode_in_processes(
    encoder: Encoder,
    texts: list[str],
    processes: int,
    batch_size: int | None = None,
    normalize_embeddings: bool = False,
    show_progress_bar: bool | None = None,
    truncate_dim: int | None = None,
) -> npt.NDArray[np.float32]:
    """[texts, d] in the order given."""
    check_count("processes", processes)
    check_between("processes", processes, 1, 1024)
    if encoder.device.type != "cpu":
        raise InputError(
            f"processes share the cores of a CPU, and this model is on {encoder.device}; encode in one process there.",
            setting="processes",
        )
    width = encoder.dimension if truncate_dim is None else truncate_dim
    vectors = np.empty((len(texts), width), dtype=np.float32)
    size = min(max(-(-len(texts) // (CHUNKS * processes)), 1), LARGEST)
    options = (batch_size, normalize_embeddings, False, True, False, truncate_dim)
    threads = max(torch.get_num_threads() // processes, 1)
    show = len(texts) > 2000 and None if show_progress_bar is None else show_progress_bar
    try:
        with (
            tempfile.TemporaryDirectory(prefix="isotrope-") as place,
            _pool(encoder, f"{place}/model", processes, threads) as pool,
            bar("encoding", len(texts), show=show) as advance,
        ):
            jobs = [
                pool.submit(_work, start, texts[start : start + size], options) for start in range(0, len(texts), size)
            ]
            try:
                for job in as_completed(jobs):
                    start, found, counted = job.result()
                    vectors[start : start + len(found)] = found
                    note_cut(counted.texts, counted.cut, counted.max_length)
                    advance(len(found))
            finally:  # after a failure nobody waits for the rest
                pool.shutdown(wait=False, cancel_futures=True)
    except BrokenProcessPool as error:
        raise InputError(
            "A process of encode ended before its work: out of memory, or a script without the guard "
            '`if __name__ == "__main__":` around its calls; add it, or give fewer processes.',
            setting="processes",
        ) from error
    return vectors


def _pool(encoder: Encoder, folder: str, processes: int, threads: int) -> ProcessPoolExecutor:
    encoder.save(folder)
    spawned = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes, mp_context=spawned, initializer=_begin, initargs=(folder, threads))


def _begin(folder: str, threads: int) -> None:
    global _encoder
    from isotrope.encoders.loading import load

    torch.set_num_threads(threads)
    _encoder = load(folder, device="cpu")


def _work(start: int, texts: list[str], options: tuple[Any, ...]) -> tuple[int, npt.NDArray[np.float32], CutTexts]:
    assert _encoder is not None
    with hidden(), counting_cut() as counted:
        return start, _encoder.encode(texts, *options), counted
