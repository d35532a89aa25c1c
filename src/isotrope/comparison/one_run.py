"""One run of a comparison: train, judge, write down."""

from __future__ import annotations

import gc
import json
import shutil
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from isotrope.comparison.common_set import COMMON, CommonSet
from isotrope.comparison.judgement import Failure, Judgement, Outcome, TrainedOn, kept_judgement
from isotrope.comparison.judges import judge
from isotrope.comparison.method_terms import COMPARED
from isotrope.comparison.terms import LABEL_FREE, Task
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.evaluation.checkpoint_judge import make_judge
from isotrope.files import written_file
from isotrope.locks import wait_until_free
from isotrope.progress import hidden
from isotrope.training.history_lines import measures_at
from isotrope.training.plan import DEFAULT_MODEL, make_plan
from isotrope.training.run import run_plan
from isotrope.training.run_folder import RunFolder
from isotrope.training.state import TrainingWarning


def attempt(task: Task) -> Outcome:
    """The judgement of a run, or its failure: one method's mistake must not end the others' runs."""
    try:
        return perform(task)
    except InputError as error:
        return Failure(task.label, task.seed, str(error))
    except Exception as error:
        file = task.folder.parent / "errors" / f"{task.name}.txt"
        with written_file(file) as temporary:
            temporary.write_text(traceback.format_exc(), encoding="utf-8")
        said = (str(error).splitlines() or [""])[0]
        return Failure(task.label, task.seed, f"{type(error).__name__}: {said} (all of it is in {file})")
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()  # what one run leaves reserved, another process may need


def perform(task: Task) -> Judgement:
    """Train, or go on with a run that was interrupted; the judgement is written into the run's folder.

    A run that ended under another judge is not trained again: its model is judged as it stands.
    """
    wait_until_free(task.folder)  # a worker whose comparison was killed is saving there
    ended = kept_judgement(task)
    return _train(task) if ended is None else _judge_again(task, ended)


def _judge_again(task: Task, ended: Judgement) -> Judgement:
    folder = RunFolder(task.folder)
    with hidden():
        encoder, common = load(folder.model), _common_set(task)
        measures = judge(encoder, task.terms, measures_at(folder.history(), ended.selected_step))
        measures |= {} if common is None else common.measures(encoder)
    kept = {name: value for name, value in ended.measures.items() if name in ("steps", "seconds")}
    before = {name: value for name, value in ended.before.items() if name != COMMON}
    before |= {} if common is None else common.before()
    found = replace(ended, measures={**measures, **kept}, before=before, facts=task.facts())
    found.write(task.folder)
    return found


def _train(task: Task) -> Judgement:
    contestant, terms = task.contestant, task.terms
    scratch = contestant.method.from_scratch
    with hidden(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan = make_plan(
            contestant.method.name,
            contestant.data,
            DEFAULT_MODEL if scratch else terms.model,
            task.folder,
            pooling=None if scratch else task.pooling,
            eval_data=terms.eval_data or None,
            resume=RunFolder(task.folder).begun(),
            adapts=False,  # the same loop for every method
            **{**COMPARED, **task.settings},
        )
        run = run_plan(plan, make_judge)
        measures = judge(run.encoder, terms, measures_at(run.history, run.selected_step))
        common = _common_set(task)
        measures |= {} if common is None else common.measures(run.encoder)
    said = [str(warning.message) for warning in caught if issubclass(warning.category, TrainingWarning)]
    found = Judgement(
        name=contestant.label,
        seed=task.seed,
        data=TrainedOn(contestant.data, run.corpus.record_type.name, len(run.corpus)),
        measures={**measures, **_length(task, run.history), "seconds": _seconds(run.history, run.folder)},
        before={**measures_at(run.history, 0), **({} if common is None else common.before())},
        selected_step=run.selected_step,
        warnings=list(dict.fromkeys(said)),
        facts=task.facts(),
    )
    found.write(task.folder)
    shutil.rmtree(RunFolder(task.folder).checkpoints, ignore_errors=True)  # the model stays; nothing is left to resume
    return found


def _common_set(task: Task) -> CommonSet | None:
    return CommonSet.read(task.folder.parent) if LABEL_FREE in task.terms.judges else None


def _length(task: Task, history: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The steps that were made, where the terms do not say how many they are."""
    fixed = task.terms.loop["max_steps"] is not None and task.terms.loop["patience"] is None
    return {} if fixed else {"steps": max(line["step"] for line in history)}


def _seconds(history: Sequence[dict[str, Any]], folder: Path) -> float:
    """Of all training steps, without evaluations and without loading; an interruption does not count."""
    counted = [line["seconds"] for line in history if "seconds" in line]
    if counted:
        return round(counted[-1], 2)
    settings = json.loads((folder / "run.json").read_text(encoding="utf-8"))["settings"]
    records = settings["batch_size"] * settings["gradient_accumulation_steps"]
    total, before = 0.0, 0
    for line in history:
        if line.get("records_per_second"):
            total += (line["step"] - before) * records / line["records_per_second"]
            before = line["step"]
    return round(total, 2)
