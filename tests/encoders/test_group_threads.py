"""Batches side by side: the order and the vectors of one after another, and torch's threads as they were."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from isotrope.encoders.group_threads import side_by_side
from isotrope.encoders.loading import load

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def two_cores() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def place(number: int) -> tuple[int, str, int, bool]:
    return number, threading.current_thread().name, torch.get_num_threads(), torch.is_inference_mode_enabled()


def test_results_come_in_order_from_threads_of_one_core_each() -> None:
    found = list(side_by_side(place, range(20), nn.Linear(1, 1), CPU))
    assert [one[0] for one in found] == list(range(20))
    assert all(name.startswith("isotrope-encode") and cores == 1 and inside for _, name, cores, inside in found)
    seen: list[int] = []
    later = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert (torch.get_num_threads(), seen) == (2, [2])


def test_few_batches_a_watched_module_and_a_device_stay_in_this_thread() -> None:
    watched = nn.Linear(1, 1)
    watched.register_forward_hook(lambda *given: None)
    cases = [
        (range(3), nn.Linear(1, 1), CPU),
        (range(9), watched, CPU),
        (range(9), nn.Linear(1, 1), torch.device("meta")),
    ]
    for given, module, device in cases:
        names = {name for _, name, _, _ in side_by_side(place, given, module, device)}
        assert names == {threading.current_thread().name}


FORKED = """
import faulthandler, os, sys, torch, isotrope
torch.set_num_threads(2)
encoder = isotrope.load(sys.argv[1], device="cpu")
texts = [f"the {number} cats see the river number {number * 7}" for number in range(400)]
before = encoder.encode(texts)
process = os.fork()
if process == 0:
    faulthandler.dump_traceback_later(30, exit=True)
    os._exit(0 if abs(encoder.encode(texts) - before).max() < 1e-5 and torch.get_num_threads() == 1 else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) or torch.get_num_threads() - 2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("model", ["builtin", "builtin-static"])
def test_a_forked_process_encodes_without_the_threads_that_it_does_not_have(model: str) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, model], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_what_a_batch_raises_is_raised_here() -> None:
    def work(number: int) -> int:
        if number == 5:
            raise ValueError("the sixth")
        return number

    with pytest.raises(ValueError, match="the sixth"):
        list(side_by_side(work, range(50), nn.Linear(1, 1), CPU))


def test_after_a_failure_no_further_batch_begins() -> None:
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 0:
            raise KeyboardInterrupt
        time.sleep(0.3)
        return number

    with pytest.raises(KeyboardInterrupt):
        list(side_by_side(work, range(20), nn.Linear(1, 1), CPU))
    assert max(begun) < 4  # five were handed over
    assert torch.get_num_threads() == 2


def test_vectors_are_those_of_one_thread(tiny: Path, topics: list[str]) -> None:
    encoder = load(tiny, device="cpu")
    found = encoder.encode(topics[:120], batch_size=5)
    torch.set_num_threads(1)
    np.testing.assert_allclose(encoder.encode(topics[:120], batch_size=5), found, atol=1e-5)
