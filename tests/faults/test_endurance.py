"""Work again and again in one process leaves neither files nor threads nor objects behind.

The hour of it, with memory, is ``benchmarks/endurance.py``.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

import isotrope


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="open files are counted in /proc")
@pytest.mark.filterwarnings("ignore")
def test_rounds_of_work_leave_nothing_open(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))
    work = tmp_path / "work"

    def round_of_work(number: int) -> None:
        loop = {"max_steps": 2, "eval_steps": 1, "batch_size": 8, "held_out": 40, "max_length": 16}
        run = isotrope.train("simcse", sentences, tiny, output=work / "run", final_table=False, seed=number, **loop)
        isotrope.evaluate(run.encoder, "geometry", texts=sentences, leaks=False)
        isotrope.encode(tiny, sentences, work / "v.npy")
        isotrope.index(tiny, sentences, work / "index")
        isotrope.search(work / "index", f"round {number}")
        shutil.rmtree(work)

    def standing() -> tuple[int, int, int]:
        gc.collect()
        return len(os.listdir("/proc/self/fd")), threading.active_count(), len(gc.get_objects())

    for number in range(2):  # fills caches
        round_of_work(number)
    files, threads, objects = standing()
    for number in range(2, 4):
        round_of_work(number)
    more_files, more_threads, more_objects = standing()
    assert (more_files, more_threads) == (files, threads)
    assert more_objects - objects < 1000  # torch leaves some dozen weak references a run
