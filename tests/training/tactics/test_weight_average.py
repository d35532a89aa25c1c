"""The average of weights: its formula, that training does not see it, and that a run goes on with it."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.combined import Combined
from isotrope.methods.simcse import SimCSE
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.state import Judgement
from isotrope.training.tactics.weight_average import WeightAverage, WeightAverageSettings
from isotrope.training.updates import Updater

pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
SHORT: dict[str, Any] = {
    "batch_size": 8,
    "max_steps": 4,
    "eval_steps": 2,
    "learning_rate": 1e-3,
    "held_out": 0,
    "max_length": 32,
}


def average_of(tiny: Path, decay: float) -> WeightAverage:
    combined = Combined(SimCSE(SimCSE.Settings(), isotrope.load(tiny, device="cpu"), 32))
    return WeightAverage(WeightAverageSettings(decay), combined, LoopSettings(), 100)


def naive(course: list[Tensor], decay: float) -> Tensor:
    """The same in float64, one number at a time."""
    mean = course[0].double()
    for step, weight in enumerate(course):
        share = min(decay, (1 + step) / (10 + step))
        mean = share * mean + (1 - share) * weight.double()
    return mean


@pytest.mark.parametrize("decay", [0.3, 0.999])
def test_it_is_the_formula(tiny: Path, decay: float) -> None:
    tactic = average_of(tiny, decay)
    weight = next(tactic.combined.parameters()).detach()
    course = []
    for step in range(40):
        weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(step)))
        course.append(weight.clone())
        tactic.after_update(step)
    with tactic.judged():
        assert torch.allclose(weight.double(), naive(course, decay), atol=1e-4)
        assert not torch.equal(weight, course[-1])
    assert torch.equal(weight, course[-1])  # training goes on from where it was


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """A weight of the encoder at each evaluation; the scores rise."""
    seen: list[Tensor] = []
    count = itertools.count()

    def judge(encoder: Encoder) -> Judgement:
        seen.append(next(encoder.backbone.parameters()).detach().clone())
        return Judgement({"score": float(next(count))}, "score")

    monkeypatch.setattr("isotrope.evaluation.checkpoint_judge.make_judge", lambda *_: judge)
    return seen


def test_the_run_is_the_same_and_its_average_is_kept(
    tiny: Path, samples: dict[str, Path], tmp_path: Path, judged: list[Tensor]
) -> None:
    runs = {
        decay: isotrope.train("simcse", samples["sentences"], tiny, tmp_path / str(decay), average_decay=decay, **SHORT)
        for decay in (0.0, 0.5)
    }
    losses = [[line["loss"] for line in run.history if "loss" in line] for run in runs.values()]
    assert losses[0] == losses[1]  # training does not see it
    plain, averaged = judged[:3], judged[3:]
    assert torch.equal(plain[0], averaged[0])
    assert not torch.equal(plain[2], averaged[2])
    assert torch.equal(next(runs[0.5].encoder.backbone.parameters()).detach().cpu(), averaged[2])


def test_a_resumed_run_has_the_same_average(
    tiny: Path,
    samples: dict[str, Path],
    tmp_path: Path,
    judged: list[Tensor],
    stopped_at: Callable[[int], AbstractContextManager[None]],
) -> None:
    common: dict[str, Any] = {**SHORT, "average_decay": 0.9}
    isotrope.train("simcse", samples["sentences"], tiny, tmp_path / "whole", **common)
    with stopped_at(3), pytest.raises(KeyboardInterrupt):
        isotrope.train("simcse", samples["sentences"], tiny, tmp_path / "cut", **common)
    isotrope.train("simcse", samples["sentences"], tiny, tmp_path / "cut", resume=True, **common)
    whole, cut = (load_file(tmp_path / name / "checkpoints" / "best-4.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(tensor, cut[name]) for name, tensor in whole.items())


@pytest.fixture
def stopped_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], AbstractContextManager[None]]:
    """with stopped_at(3): a run that is started inside gets Ctrl-C in its third update."""
    plain = Updater.update

    @contextmanager
    def stopped(last: int) -> Iterator[None]:
        def update(updater: Updater, step: int, source: Any) -> Any:
            if step == last - 1:
                os.kill(os.getpid(), signal.SIGINT)
            return plain(updater, step, source)

        monkeypatch.setattr(Updater, "update", update)
        yield
        monkeypatch.setattr(Updater, "update", plain)

    return stopped


def test_pre_training_takes_it(tmp_path: Path, samples: dict[str, Path]) -> None:
    common: dict[str, Any] = {
        "vocabulary": 60,
        "layers": 1,
        "width": 32,
        "heads": 2,
        "length": 16,
        "batch_size": 2,
        "steps": 3,
        "warmup_steps": 1,
        "adam_beta2": 0.98,
    }
    plain, averaged = (
        isotrope.pretrain([samples["documents"]], tmp_path / str(decay), average_decay=decay, **common).encoder
        for decay in (0.0, 0.9)
    )
    pairs = zip(plain.parameters(), averaged.parameters(), strict=True)
    assert any(not torch.equal(one.cpu(), other.cpu()) for one, other in pairs)
