"""The run folder: checkpoints that are whole or absent, the best weights, the metrics, the facts of the run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from isotrope.checksums import Sum, sum_of
from isotrope.durable import sync
from isotrope.errors import InputError
from isotrope.files import BEGUN, check_run_folder, explained, names_in, write_json, written_file
from isotrope.leftovers import sweep
from isotrope.locks import FolderLock
from isotrope.progress import say
from isotrope.training.history_lines import KEPT, append_line, read_lines, sorted_lines
from isotrope.training.step_folder import StepFolder, put_weights, steps_in, weights_of

SAME = (
    "method",
    "method_files",
    "data",
    "model",
    "mixture",
    "settings",
    "eval_content",
    "processes",
)  # what a run must share to be resumed
PLURAL = {
    "data": "data", "settings": "settings", "eval_content": "evaluation data", "processes": "processes",
    "method_files": "contents of the method's file",
}  # fmt: skip
KEPT_STEPS = 2  # checkpoints: where the newest is damaged, the one before it is there
STOPPED = "stopped"  # in run.json: why the run cannot go on as it is
ADVISED = {"learning_rate", "max_grad_norm"}  # settings that such a run may be resumed with
FREE = {  # settings that any run may be resumed with: how long it is, when it is looked at
    "max_steps", "epochs", "max_seconds", "time_limit", "steps", "warmup_steps",
    "eval_steps", "first_eval", "patience", "logging_steps", "report_to",
    "kept_share",  # what is kept at the end
}  # fmt: skip


class RunFolder:
    """run.json, metrics.jsonl, checkpoints/step-N (what resume needs), checkpoints/best-N.safetensors, model/."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints = folder / "checkpoints"
        self.model = folder / "model"
        self.lock = FolderLock(folder)
        self.facts: dict[str, Any] = {}
        self.best_sums: dict[int, Sum] = {}

    def begun(self) -> bool:
        """Whether a run was begun here, so that it is resumed and not started."""
        return bool(names_in(self.folder) & BEGUN)

    @contextmanager
    def alone(self, resume: bool, main: bool) -> Iterator[None]:
        """Inside the block no other process trains in this folder. A new one is locked when ``begin`` makes it."""
        try:
            if resume and main:
                check_run_folder(self.folder, resume)
                with explained(self.folder):
                    self.lock.take()
            yield
        finally:
            self.lock.release()

    def begin(self, facts: dict[str, Any], resume: bool) -> None:
        """A fresh folder, or, to resume, the folder of a run with the same facts."""
        with explained(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.lock.take()
            check_run_folder(self.folder, resume)  # once nobody else can begin here
            for place in (self.folder, self.checkpoints):
                sweep(place)
        self.facts = facts
        if not resume:
            write_json(self.folder / "run.json", facts)
            return
        before = self.written_facts() or self._remembered()
        self._check_same(before, json.loads(json.dumps(facts)))
        if not self.written_facts() or STOPPED in before or before.get("settings") != facts.get("settings"):
            write_json(self.folder / "run.json", facts)

    def add_facts(self, facts: dict[str, Any]) -> None:
        """Put into run.json what is known only at the end."""
        write_json(self.folder / "run.json", {**(self.written_facts() or self.facts), **facts})

    def written_facts(self) -> dict[str, Any]:
        """What run.json says; nothing where it is missing or damaged."""
        try:
            found = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) and {"method", "settings"} <= set(found) else {}

    def _remembered(self) -> dict[str, Any]:
        """The same from the newest whole checkpoint, for a run without its run.json."""
        newest = next((one for one in reversed(steps_in(self.checkpoints)) if one.damage() is None), None)
        say(f"{self.folder / 'run.json'} is missing or damaged; it is written again")
        return {} if newest is None else dict(newest.state().get("run", {}))

    def _check_same(self, before: dict[str, Any], facts: dict[str, Any]) -> None:
        if isinstance(before.get("settings"), dict):
            free = FREE | (ADVISED if STOPPED in before else set())
            settings = {name: value for name, value in facts["settings"].items() if name in free}
            # One that an earlier version did not know is as it is now.
            known = {**facts["settings"], **before["settings"]}
            before = {**before, "settings": {**known, **settings}}
        for part in SAME:
            then, now = before.get(part), facts.get(part)
            if then != now and (part in before or part == "mixture"):
                differs = f"{PLURAL[part]} differ" if part in PLURAL else f"{part} differs"
                raise InputError(f"{self.folder}: cannot resume, the {differs}: {difference(then, now)}.")

    def log(self, line: dict[str, Any]) -> None:
        with explained(self.folder / "metrics.jsonl"):
            append_line(self.folder / "metrics.jsonl", line)

    def history(self) -> list[dict[str, Any]]:
        return read_lines(self.folder / "metrics.jsonl")

    def forget_after(self, step: int) -> None:
        """Drop log lines past a checkpoint, and those of the end: the steps will be taken again."""
        file = self.folder / "metrics.jsonl"
        found, unreadable = sorted_lines(file)
        if unreadable:
            say(f"{file}: {len(unreadable)} lines cannot be read and are dropped, the first is line {unreadable[0]}")
        kept = [line for line in found if line["step"] <= step and KEPT not in line]
        with written_file(file) as temporary:
            temporary.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")

    def save(
        self,
        step: int,
        method: nn.Module,
        optimiser: torch.optim.Optimizer,
        state: dict[str, Any],
        tactics: dict[str, Any] | None = None,
    ) -> None:
        """Write step-N, then drop all but the newest two and the weights that are the best of neither."""
        best = self.best_sums.get(state.get("best_step", 0))
        kept = {**state, "step": step, "best_file": best, "run": {part: self.facts.get(part) for part in SAME}}
        with explained(self.folder / "metrics.jsonl"):
            if (self.folder / "metrics.jsonl").is_file():
                sync(self.folder / "metrics.jsonl")  # what led to the checkpoint
        StepFolder(self.checkpoints / f"step-{step}").write(method, optimiser, kept, tactics or {})
        self._drop_old(step)

    def _drop_old(self, step: int) -> None:
        earlier = [one for one in steps_in(self.checkpoints) if one.step <= step]
        for one in earlier[:-KEPT_STEPS]:
            shutil.rmtree(one.folder)
        best = {f"best-{one.state().get('best_step')}.safetensors" for one in earlier[-KEPT_STEPS:]}
        for file in self.checkpoints.glob("best-*"):
            if file.name not in best:
                file.unlink()

    def save_best(self, step: int, method: nn.Module) -> None:
        file = self.checkpoints / f"best-{step}.safetensors"
        with written_file(file) as temporary:
            save_file(weights_of(method), temporary)
        self.best_sums = {step: sum_of(file)}

    def load_best(self, step: int, method: nn.Module) -> None:
        put_weights(method, load_file(self.checkpoints / f"best-{step}.safetensors"))

    def last(self) -> Path | None:
        found = steps_in(self.checkpoints)
        return found[-1].folder if found else None

    def set_damaged_aside(self) -> None:
        """Rename the checkpoints that cannot be resumed from, newest first, until one is whole; say which and why."""
        for one in reversed(steps_in(self.checkpoints)):
            wrong = one.damage()
            if wrong is None:
                return
            say(f"{one.folder} is damaged ({wrong}): skipped, and kept as {one.set_aside()}")

    def load_last(self, method: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Any] | None:
        """Put weights and moments back; returns the loop's own state, None where no checkpoint was written yet."""
        found = steps_in(self.checkpoints)
        if not found:
            return None
        state = found[-1].load(method, optimiser)
        if state.get("best_file"):
            self.best_sums = {state["best_step"]: state["best_file"]}
        return {**state, "tactics": found[-1].tactics()}


def difference(before: Any, now: Any) -> str:
    """What differs between two sets of facts, in words."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        return ", ".join(
            f"{name}: {difference(before[name], now[name])}"
            if isinstance(before.get(name), dict) and isinstance(now.get(name), dict)
            else f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
            for name in names
        )
    return f"it was {before!r} and is {now!r}"
