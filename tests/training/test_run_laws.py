"""Laws of a run that no single result shows: keys that never repeat, means that are means, patience that survives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import isotrope
from isotrope.data.corpus import Records, open_corpus
from isotrope.evaluation import checkpoint_judge
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.simcse import SimCSE, UnsupervisedSettings
from isotrope.training import feeds, step
from isotrope.training.loop import make_accelerator
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.state import Judgement
from isotrope.training.updates import Updater

SHORT: dict[str, Any] = {
    "batch_size": 16,
    "eval_steps": 4,
    "logging_steps": 1,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 32,
    "final_table": False,
}
pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")


def judge_by(scores: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter(scores)
    monkeypatch.setattr(
        checkpoint_judge, "make_judge", lambda *_: lambda encoder: Judgement({"score": next(left)}, "score")
    )


def test_no_two_batches_draw_the_same_random_numbers(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in their views, nor in their forwards, nor in their losses; the corpus is gone through more than once."""
    forwards, views, losses = [], [], []
    represent, make = step.represent_seeded, feeds.make_batch

    def noting_forward(combined: Combined, batch: Batch, accelerator: Any, seed: int) -> Any:
        forwards.append(seed)
        return represent(combined, batch, accelerator, seed)

    def noting_views(combined: Combined, corpus: Any, rows: Any, key: Any, shared: Any) -> Batch:
        views.append(key)
        batch = make(combined, corpus, rows, key, shared)
        losses.append(batch.seed)
        return batch

    monkeypatch.setattr(step, "represent_seeded", noting_forward)
    monkeypatch.setattr(feeds, "make_batch", noting_views)
    settings = {**SHORT, "max_steps": 26, "eval_steps": 26, "gradient_accumulation_steps": 2}
    isotrope.train("simcse", sentences, tiny, tmp_path / "run", **settings)
    assert len(forwards) == len(set(forwards)) == 52
    assert len(views) == len(set(views)) >= 52
    assert len(losses) == len(set(losses)) >= 52
    assert not {*forwards} & {*losses}, "a loss draws what dropout drew"


def test_the_gradient_of_accumulated_batches_is_their_mean(tiny: Path, sentences: Path) -> None:
    norms = []
    for batches in (1, 3):
        encoder = isotrope.load(tiny, device="cpu")
        combined = Combined(SimCSE(UnsupervisedSettings(), encoder, 32)).train()
        corpus = open_corpus(sentences, ("sentences",), encoder.text_tokenizer)
        batch = Batch(combined.views(Records(corpus, list(range(8))), np.random.default_rng(0)), 8, 7)
        settings = LoopSettings(gradient_accumulation_steps=batches, max_grad_norm=None)
        updater = Updater(combined, settings, 10, (), make_accelerator(settings))
        # The same batch under the same masks: its mean over any number is itself.
        norms.append(float(updater.update(0, iter([(0, batch)] * batches)).norm))
    assert norms[0] > 0
    assert norms[1] == pytest.approx(norms[0], rel=1e-5)


def test_a_resumed_run_remembers_its_best_score_and_its_patience(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An equal score is no better one: of equals the first is kept."""
    common = {**SHORT, "max_steps": 40, "patience": 3}
    judge_by([0.0, 5.0, 5.0, 4.0, 5.0], monkeypatch)
    whole = isotrope.train("simcse", sentences, tiny, tmp_path / "whole", **common)
    assert (whole.selected_step, whole.history[-1]["step"]) == (4, 16)
    judge_by([0.0, 5.0, 5.0], monkeypatch)
    steps, follow = iter(range(1, 100)), Combined.after_update

    def fall_at_ten(self: Combined, representations: dict[str, torch.Tensor]) -> None:
        follow(self, representations)
        if next(steps) == 10:
            raise RuntimeError("the power fails")

    with monkeypatch.context() as patch:
        patch.setattr(Combined, "after_update", fall_at_ten)
        with pytest.raises(RuntimeError, match="the power fails"):
            isotrope.train("simcse", sentences, tiny, tmp_path / "cut", **common)
    judge_by([4.0, 5.0, 6.0, 7.0], monkeypatch)
    again = isotrope.train("simcse", sentences, tiny, tmp_path / "cut", resume=True, **common)
    assert (again.selected_step, again.history[-1]["step"]) == (4, 16)


def test_a_finished_run_that_is_made_longer_goes_on_with_the_rate_of_its_new_length(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended at a rate of zero, with which the next step would change nothing."""
    judge_by([float(number) for number in range(10)], monkeypatch)
    common = {**SHORT, "warmup_ratio": 0.0, "weight_decay": 0.0, "optimiser": "sgd", "sgd_momentum": 0.0}
    found = []
    for steps in (4, 5):
        run = isotrope.train("simcse", sentences, tiny, tmp_path / "run", max_steps=steps, resume=steps > 4, **common)
        assert run.selected_step == steps
        found.append(load_file(run.folder / "model" / "model.safetensors"))
    assert not all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_what_a_method_counts_are_rows_that_it_trains_on(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[np.ndarray] = []
    monkeypatch.setattr(SimCSE, "count", lambda self, rows: counted.append(rows))
    run = isotrope.train("simcse", sentences, tiny, tmp_path / "run", **{**SHORT, "max_steps": 1})
    assert len(counted) == 1
    assert len(run.held) >= 20
    assert not np.isin(run.held, counted[0]).any()
