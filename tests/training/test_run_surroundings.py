"""What a run leaves around itself: the caller's random numbers, closed trackers, threads, nothing that was refused."""

from __future__ import annotations

import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.tracking import TensorBoardTracker

import isotrope
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined

SHORT: dict[str, Any] = {
    "max_steps": 3,
    "batch_size": 16,
    "eval_steps": 2,
    "logging_steps": 1,
    "held_out": 40,
    "max_length": 32,
    "final_table": False,
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning"),
    pytest.mark.filterwarnings("ignore::isotrope.encoders.language_head.NewHeadWarning"),
]


def draws() -> tuple[list[float], float, float]:
    return torch.rand(3).tolist(), float(np.random.rand()), random.random()  # noqa: NPY002 - the state that a caller has


def seed() -> None:
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002
    random.seed(7)


@pytest.fixture
def headless(tiny: Path, tmp_path: Path) -> Path:
    """The tiny encoder without its masked-language head."""
    isotrope.load(tiny).save(tmp_path / "headless")
    return tmp_path / "headless"


def stop(self: Combined, representations: Any) -> None:
    os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does


def test_the_callers_random_numbers_go_on_as_if_no_run_had_been(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed()
    undisturbed = draws()
    seed()
    isotrope.train("simcse", sentences, tiny, tmp_path / "run", **SHORT)
    assert draws() == undisturbed
    seed()
    two = [{"name": name, "data": sentences, "method": "simcse"} for name in "ab"]
    isotrope.train(sources=two, model=tiny, output=tmp_path / "sources", **SHORT)
    assert draws() == undisturbed
    seed()
    monkeypatch.setattr(Combined, "after_update", stop)
    with pytest.raises(KeyboardInterrupt):
        isotrope.train("simcse", sentences, tiny, tmp_path / "stopped", **SHORT)
    assert draws() == undisturbed


def test_pre_training_leaves_the_callers_random_numbers_alone(samples: dict[str, Path], tmp_path: Path) -> None:
    seed()
    undisturbed = draws()
    seed()
    shape = {"vocabulary": 200, "layers": 1, "width": 32, "heads": 2, "length": 32}
    isotrope.pretrain(samples["sentences"], tmp_path / "base", steps=2, warmup_steps=0, batch_size=4, **shape)
    assert draws() == undisturbed


def test_a_language_head_that_the_start_lacks_is_drawn_by_the_seed_of_the_run(
    headless: Path, sentences: Path, tmp_path: Path
) -> None:
    found = []
    for number, chosen in enumerate((1, 1, 2)):
        torch.manual_seed(number)  # the caller's own, which is none of the run's business
        run = isotrope.train("mlm", sentences, headless, tmp_path / str(number), seed=chosen, **SHORT)
        found.append([line["loss"] for line in run.history if "loss" in line])
    assert found[0] == found[1] != found[2]


def test_a_tracker_is_closed_whatever_ends_the_run_and_the_processes_stay_together(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[TensorBoardTracker] = []
    monkeypatch.setattr(TensorBoardTracker, "finish", lambda self: closed.append(self))
    # It destroys the process group, and the run still has to agree on the best weights and to save them.
    monkeypatch.setattr(Accelerator, "end_training", lambda self: pytest.fail("the processes were parted"))
    isotrope.train("simcse", sentences, tiny, tmp_path / "run", report_to="tensorboard", **SHORT)
    assert len(closed) == 1
    monkeypatch.setattr(Combined, "after_update", stop)
    with pytest.raises(KeyboardInterrupt):
        isotrope.train("simcse", sentences, tiny, tmp_path / "stopped", report_to="tensorboard", **SHORT)
    assert len(closed) == 2


def test_muon_is_refused_for_a_table_of_vectors_before_anything_is_written(triples: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="choose adamw"):
        isotrope.train("simcse-supervised", triples, "builtin-static", tmp_path / "run", optimiser="muon", **SHORT)
    assert not (tmp_path / "run").exists()


def test_a_run_in_a_thread_gives_the_same_and_leaves_no_thread(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    found: dict[str, isotrope.Run] = {}
    before = set(threading.enumerate())

    def train(name: str) -> None:
        found[name] = isotrope.train("simcse", sentences, tiny, tmp_path / f"a blank and ü, {name}", **SHORT)

    train("here")
    other = threading.Thread(target=train, args=("there",))
    other.start()
    other.join()
    losses = [[line["loss"] for line in run.history if "loss" in line] for run in found.values()]
    assert len(losses) == 2
    assert losses[0] == losses[1]
    assert set(threading.enumerate()) == before
