"""One run of a comparison: train, judge, write down. What is written is found again, so that no run is made twice."""

from __future__ import annotations

import gc
import json
import shutil
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from isotrope.api import train
from isotrope.comparison.plan import Task, Terms
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.sts import PROTOCOL, evaluate_sts
from isotrope.evaluation.transfer import PROTOCOL as TRANSFER
from isotrope.evaluation.transfer import TASKS, evaluate_transfer
from isotrope.files import write_json, written_file
from isotrope.methods.frame.method_registry import find
from isotrope.progress import hidden
from isotrope.training.checkpoints import RunFolder, difference
from isotrope.training.state import TrainingWarning

LABEL_FREE = ("retrieval_mrr", "alignment", "uniformity", "effective_rank")
OF_THE_JUDGE = (*LABEL_FREE, "retrieval_first", "mean_cosine")  # what every run measures, whatever its method
Finding = dict[str, Any]


def finished(task: Task) -> Finding | None:
    """The judgement of an earlier call, where there is one and it was made under the same terms."""
    file = task.folder / "judgement.json"
    if not file.is_file():
        return None
    kept: Finding = json.loads(file.read_text(encoding="utf-8"))
    for part, now in task.facts().items():
        if kept["facts"].get(part) != now:
            told = difference(kept["facts"].get(part), now)
            raise InputError(
                f"{task.folder}: this run was made under other terms, the {part} differs: {told}; choose another --output."
            )
    return kept


def attempt(task: Task) -> Finding:
    """The judgement of a run, or, under ``failure``, the sentence that says why there is none."""
    try:
        return perform(task)
    except InputError as error:
        return {"failure": str(error)}
    except Exception as error:  # one method's mistake must not end the others' runs
        file = task.folder.parent / "errors" / f"{task.name}.txt"
        with written_file(file) as temporary:
            temporary.write_text(traceback.format_exc(), encoding="utf-8")
        said = (str(error).splitlines() or [""])[0]
        return {"failure": f"{type(error).__name__}: {said} (all of it is in {file})"}
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()  # what one run leaves reserved, another process may need


def perform(task: Task) -> Finding:
    contestant, terms = task.contestant, task.terms
    anew = find(contestant.method).starts_anew
    with hidden(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = train(
            contestant.method,
            contestant.data,
            "builtin-base" if anew else terms.model,
            task.folder,
            pooling=None if anew else task.pooling,
            eval_data=terms.eval_data or None,
            resume=(task.folder / "run.json").is_file(),
            **task.settings(),
        )
        measures = judge(run.encoder, terms, _measured(run.history, run.selected_step))
    said = [str(warning.message) for warning in caught if issubclass(warning.category, TrainingWarning)]
    finding = {
        "name": contestant.label,
        "seed": task.seed,
        "data": {"source": contestant.data, "record_type": run.corpus.record_type.name, "records": len(run.corpus)},
        "measures": {**measures, "seconds": _seconds(run.history, run.folder)},
        "before": _measured(run.history, 0),
        "selected_step": run.selected_step,
        "warnings": list(dict.fromkeys(said)),
        "facts": task.facts(),
    }
    write_json(task.folder / "judgement.json", finding)
    shutil.rmtree(RunFolder(task.folder).checkpoints, ignore_errors=True)  # the model stays; nothing is left to resume
    return finding


def judge(encoder: Encoder, terms: Terms, measured: dict[str, float]) -> dict[str, float]:
    """By benchmarks, or by what the run measured itself on its held-out texts."""
    return {name: value for suite in terms.judges for name, value in JUDGES[suite](encoder, terms, measured).items()}


def _by_sts(encoder: Encoder, terms: Terms, measured: dict[str, float]) -> dict[str, float]:
    found = evaluate_sts(encoder, terms.data_dir, terms.aggregation, resamples=1).scores["sts"]  # no interval is shown
    geometry = {name: found["geometry"][name] for name in ("alignment", "uniformity", "effective_rank")}
    return {
        "sts_average": found["average"]["spearman"],
        "sts_b": found["STS-B"]["spearman"],
        **geometry,
        **_dev(measured),
    }


def _by_transfer(encoder: Encoder, terms: Terms, measured: dict[str, float]) -> dict[str, float]:
    found = evaluate_transfer(encoder, terms.data_dir).scores["transfer"]
    tasks = {f"transfer_{task.lower()}": found[task]["accuracy"] for task in TASKS}
    return {"transfer_average": found["average"]["accuracy"], **tasks}


def _without_labels(encoder: Encoder, terms: Terms, measured: dict[str, float]) -> dict[str, float]:
    return {**{name: measured[name] for name in LABEL_FREE if name in measured}, **_dev(measured)}


def _by_own_task(encoder: Encoder, terms: Terms, measured: dict[str, float]) -> dict[str, float]:
    given = [name for name in measured if name.startswith("spearman")] if terms.eval_data else []
    return {name: value for name, value in measured.items() if name not in (*OF_THE_JUDGE, *given)}


def _dev(measured: dict[str, float]) -> dict[str, float]:
    return {"dev_spearman": measured["spearman"]} if "spearman" in measured else {}


JUDGES = {"sts": _by_sts, "transfer": _by_transfer, "label-free": _without_labels, "own": _by_own_task}


def protocol(terms: Terms) -> str:
    named = {
        "sts": f"{PROTOCOL}, aggregation {terms.aggregation}",
        "transfer": f"{TRANSFER}, seed 0",
        "label-free": "the label-free score on the held-out part of each text, another part for each seed",
        "own": "each method's own task, on records kept aside (others for each seed) and on its test file",
    }
    return "; ".join(named[suite] for suite in terms.judges)


def _measured(history: Sequence[dict[str, Any]], step: int) -> dict[str, float]:
    """What the run itself measured at a step."""
    return next((line["evaluation"] for line in history if "evaluation" in line and line["step"] == step), {})


def _seconds(history: Sequence[dict[str, Any]], folder: Path) -> float:
    """Of all training steps, without evaluations and without loading; an interruption does not count."""
    settings = json.loads((folder / "run.json").read_text(encoding="utf-8"))["settings"]
    records = settings["batch_size"] * settings["gradient_accumulation_steps"]
    total, before = 0.0, 0
    for line in history:
        if line.get("records_per_second"):
            total += (line["step"] - before) * records / line["records_per_second"]
            before = line["step"]
    return round(total, 2)
