"""The loop as a whole: it learns, resumes bit for bit, keeps the best, speaks up, and loses nothing."""

from __future__ import annotations

import itertools
import json
import os
import signal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation import checkpoint_judge
from isotrope.methods.frame.combined import Combined
from isotrope.methods.simcse import SimCSE
from isotrope.training.run_folder import RunFolder
from isotrope.training.state import Judgement, TrainingWarning

SHORT: dict[str, Any] = {
    "batch_size": 16,
    "eval_steps": 4,
    "logging_steps": 2,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 32,
}


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def without_clock(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k not in ("records_per_second", "seconds")} for line in history]


# A handful of steps on a tiny model need not improve anything.
unjudged = pytest.mark.filterwarnings("ignore:Training did not improve")


@pytest.fixture
def rising_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores that always improve: tests of the loop's mechanics do not hang on what a tiny model learns."""
    count = iter(range(1000))
    monkeypatch.setattr(
        checkpoint_judge, "make_judge", lambda *_: lambda encoder: Judgement({"score": float(next(count))}, "score")
    )


@pytest.mark.usefixtures("rising_judge")
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_resume_equals_an_uninterrupted_run(tiny: Path, sentences: Path, tmp_path: Path, pooling: str) -> None:
    common = {**SHORT, "model": tiny, "max_steps": 12, "pooling": pooling, "gradient_accumulation_steps": 1}
    whole = isotrope.train("simcse", sentences, output=tmp_path / "whole", **common)
    stops = Combined.after_update

    def interrupt_at_six(self: Combined, representations: Any) -> None:
        self.steps_taken = getattr(self, "steps_taken", 0) + 1
        if self.steps_taken == 6:
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does

    try:
        Combined.after_update = interrupt_at_six  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt, match="step 6"):
            isotrope.train("simcse", sentences, output=tmp_path / "cut", **common)
    finally:
        Combined.after_update = stops  # type: ignore[method-assign]
    assert (tmp_path / "cut" / "checkpoints" / "step-6").is_dir()
    assert (tmp_path / "cut" / "model").is_dir()  # a stopped run leaves what it has
    resumed = isotrope.train("simcse", sentences, output=tmp_path / "cut", resume=True, **common)
    first, second = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert all(torch.equal(first[name], second[name]) for name in first)
    losses = [[line["loss"] for line in run.history if "loss" in line] for run in (whole, resumed)]
    assert losses[0] == losses[1]
    assert resumed.selected_step == whole.selected_step == 12


@unjudged
def test_two_runs_with_one_seed_are_equal_and_another_seed_differs(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    runs = [
        isotrope.train("simcse", sentences, model=tiny, output=tmp_path / str(i), max_steps=4, seed=seed, **SHORT)
        for i, seed in enumerate((1, 1, 2))
    ]
    assert without_clock(runs[0].history) == without_clock(runs[1].history)
    assert without_clock(runs[0].history) != without_clock(runs[2].history)


@unjudged
def test_each_log_line_says_how_many_candidates_an_anchor_saw(tiny: Path, triples: Path, tmp_path: Path) -> None:
    run = isotrope.train("simcse-supervised", triples, model=tiny, output=tmp_path / "run", max_steps=4, **SHORT)
    logged = [line for line in run.history if "loss" in line]
    assert logged
    assert all(line["candidates"] == 32 for line in logged)
    assert run.history == [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]


@unjudged
def test_accumulation_is_the_mean_of_batches_and_says_that_it_adds_no_negatives(
    tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    with pytest.warns(TrainingWarning, match="adds no negatives"):
        run = isotrope.train(
            "simcse",
            sentences,
            model=tiny,
            output=tmp_path / "run",
            max_steps=2,
            gradient_accumulation_steps=3,
            **SHORT,
        )
    assert [line["candidates"] for line in run.history if "loss" in line] == [16]


def test_the_best_evaluation_is_what_is_kept(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([0.0, 1.0, 5.0, 2.0, 3.0])
    seen: list[np.ndarray] = []

    def judge(encoder: isotrope.Encoder) -> Judgement:
        seen.append(encoder.encode("the chef bakes bread"))
        return Judgement({"score": next(scores)}, "score")

    monkeypatch.setattr(checkpoint_judge, "make_judge", lambda *_: judge)
    run = isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=16, **SHORT)
    assert run.selected_step == 8
    assert np.allclose(run.encoder.encode("the chef bakes bread"), seen[2], atol=1e-6)
    assert np.allclose(isotrope.load(run.folder / "model").encode("the chef bakes bread"), seen[2], atol=1e-5)
    assert {entry.name for entry in (run.folder / "checkpoints").iterdir()} == {
        "step-12",
        "step-16",
        "best-8.safetensors",
    }


def test_a_score_that_is_not_a_number_never_stays_the_best_and_is_said(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([0.0, float("nan"), 2.0, float("nan"), 1.0])
    monkeypatch.setattr(
        checkpoint_judge, "make_judge", lambda *_: lambda encoder: Judgement({"score": next(scores)}, "score")
    )
    with pytest.warns(TrainingWarning, match=r"score is not a number at step (4|12)"):
        run = isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=16, **SHORT)
    assert run.selected_step == 8


def test_patience_stops_early(tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([0.0, 9.0, *[1.0] * 50])
    monkeypatch.setattr(
        checkpoint_judge, "make_judge", lambda *_: lambda encoder: Judgement({"score": next(scores)}, "score")
    )
    run = isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=40, patience=2, **SHORT)
    assert [line["step"] for line in run.history if "score" in line] == [0, 4, 8, 12]
    assert run.selected_step == 4


@pytest.mark.usefixtures("rising_judge")
def test_a_loss_that_is_not_a_number_stops_and_keeps_the_last_good_checkpoint(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = SimCSE.loss
    calls = iter(range(100))

    def poisoned(self: SimCSE, representations: Any, batch: Any) -> dict[str, torch.Tensor]:
        factor = float("nan") if next(calls) == 6 else 1.0
        return {name: term * factor for name, term in plain(self, representations, batch).items()}

    monkeypatch.setattr(SimCSE, "loss", poisoned)
    with pytest.raises(InputError, match=r"step 7.*step-4"):
        isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=12, **SHORT)
    kept = load_file(tmp_path / "run" / "checkpoints" / "step-4" / "weights.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in kept.values())


def test_training_that_does_not_help_is_said(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([1.0, 0.5])
    monkeypatch.setattr(
        checkpoint_judge, "make_judge", lambda *_: lambda encoder: Judgement({"score": next(scores)}, "score")
    )
    with pytest.warns(TrainingWarning, match="did not improve"):
        isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=4, **SHORT)


@unjudged
def test_collapse_warns_in_a_real_run(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    """A temperature far too high gives no gradient to speak of: the loss stays at log N."""
    settings = {**SHORT, "learning_rate": 1e-6, "logging_steps": 5, "eval_steps": 60}
    with pytest.warns(TrainingWarning, match=r"log\(16\)"):
        isotrope.train(
            "simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=60, temperature=50.0, **settings
        )


@pytest.mark.usefixtures("rising_judge")
@pytest.mark.parametrize("several", [False, True])
def test_a_resumed_run_does_not_repeat_its_alarm(tiny: Path, sentences: Path, tmp_path: Path, several: bool) -> None:
    settings = {**SHORT, "learning_rate": 1e-6, "logging_steps": 1, "eval_steps": 52, "final_table": False}
    common = {**settings, "model": tiny, "output": tmp_path / "run"}
    one = {"data": sentences, "method": "simcse", "settings": {"temperature": 50.0}}
    if several:
        common |= {"sources": [{**one, "name": name} for name in "ab"]}
    else:
        common |= {"method": "simcse", "data": sentences, "temperature": 50.0}
    with pytest.warns(TrainingWarning, match=r"log\(16\)"):
        isotrope.train(max_steps=52, **common)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        isotrope.train(max_steps=64, resume=True, **common)
    assert not [one for one in said if "log(16)" in str(one.message)]


@pytest.mark.usefixtures("rising_judge")
def test_tensorboard_by_a_switch(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    run = isotrope.train(
        "simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=4, report_to="tensorboard", **SHORT
    )
    assert list((run.folder / "trackers").rglob("events.out.tfevents*"))
    with pytest.raises(InputError, match="pip install mlflow"):
        isotrope.train(
            "simcse", sentences, model=tiny, output=tmp_path / "other", max_steps=4, report_to="mlflow", **SHORT
        )


@pytest.mark.usefixtures("rising_judge")
def test_the_run_folder_tells_the_whole_story(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    run = isotrope.train(
        "simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=4, temperature=0.1, **SHORT
    )
    facts = json.loads((run.folder / "run.json").read_text())
    assert facts["method"] == "simcse"
    assert facts["settings"]["temperature"] == 0.1
    assert facts["settings"]["batch_size"] == 16
    assert facts["seed"] == 42
    assert facts["data"]["records"] == 400
    assert {"torch", "transformers", "isotrope"} <= set(facts["versions"])
    assert json.loads((run.folder / "model" / "isotrope.json").read_text())["pooling"] == "mean"


def test_a_folder_that_holds_something_else_is_left_alone(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds something else"):
        isotrope.train("simcse", sentences, model=tiny, output=tmp_path, max_steps=4, **SHORT)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


@pytest.mark.usefixtures("rising_judge")
def test_a_second_run_or_a_changed_setting_does_not_overwrite_the_first(
    tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    common = {**SHORT, "model": tiny, "output": tmp_path / "run", "max_steps": 4}
    isotrope.train("simcse", sentences, **common)
    with pytest.raises(InputError, match="continue it with resume"):
        isotrope.train("simcse", sentences, **common)
    with pytest.raises(InputError, match=r"temperature was 0\.05 and is 0\.2"):
        isotrope.train("simcse", sentences, temperature=0.2, resume=True, **common)
    with pytest.raises(InputError, match="no run to resume"):
        isotrope.train("simcse", sentences, resume=True, **{**common, "output": tmp_path / "nothing"})


@pytest.mark.usefixtures("rising_judge")
def test_the_callers_encoder_stays_as_it_was(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    encoder = isotrope.load(tiny)
    before = encoder.encode("the chef bakes bread")
    run = isotrope.train("simcse", sentences, model=encoder, output=tmp_path / "run", max_steps=4, **SHORT)
    assert np.array_equal(encoder.encode("the chef bakes bread"), before)
    assert not np.allclose(run.encoder.encode("the chef bakes bread"), before, atol=1e-3)


def test_no_space_leaves_the_last_checkpoint_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    folder = RunFolder(tmp_path / "run")
    folder.begin({"method": "m", "data": {}, "model": {}, "settings": {}}, resume=False)
    module = torch.nn.Linear(2, 2)
    optimiser = torch.optim.AdamW(module.parameters())
    folder.save(1, module, optimiser, {"best_step": 0})

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(InputError, match="no space left"):
        folder.save(2, module, optimiser, {"best_step": 0})
    assert [entry.name for entry in folder.checkpoints.iterdir()] == ["step-1"]


def test_simcse_lowers_its_loss_and_opens_the_space(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {**SHORT, "batch_size": 32, "logging_steps": 5, "eval_steps": 60}
    run = isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=60, **settings)
    losses = [line["contrastive"] for line in run.history if "contrastive" in line]
    before, after = (line["evaluation"] for line in run.history if "evaluation" in line)
    assert losses[-1] < 0.5 * losses[0]
    assert after["uniformity"] < before["uniformity"] - 0.5
    assert after["retrieval_mrr"] > before["retrieval_mrr"]


@unjudged
def test_a_handful_of_short_lines_trains_with_a_smaller_batch_and_says_so(tiny: Path, tmp_path: Path) -> None:
    lines = [f"{word} {number}" for word in ("bread", "boat", "roses") for number in range(10)]
    with pytest.warns(TrainingWarning, match="batch_size is 15 instead of 64"):
        run = isotrope.train("simcse", lines, model=tiny, output=tmp_path / "run", max_steps=3, eval_steps=3)
    assert run.selected_step == 3
    with pytest.raises(InputError, match="fewer than batch_size"):
        isotrope.train("simcse", lines, model=tiny, output=tmp_path / "other", max_steps=3, batch_size=64)


def test_a_checkpoint_can_be_chosen_by_the_mean_over_several_files(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    lines = [line for line in sentences.read_text().splitlines() if line]
    files = []
    for number in range(2):
        files.append(tmp_path / f"part{number}.tsv")
        rows = [f"{a}\t{b}\t{(i * (number + 1)) % 5}" for i, (a, b) in enumerate(itertools.pairwise(lines[:31]))]
        files[-1].write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n")
    run = isotrope.train(
        "simcse",
        sentences,
        tiny,
        tmp_path / "run",
        eval_data=files,
        max_steps=2,
        batch_size=8,
        eval_steps=1,
        held_out=50,
    )
    measures = [line for line in run.history if "evaluation" in line][-1]
    parts = [measures["evaluation"][f"spearman part{number}"] for number in range(2)]
    assert parts[0] != parts[1]
    assert measures["score"] == pytest.approx(sum(parts) / 2)
