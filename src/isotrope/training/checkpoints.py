"""The run folder: checkpoints that are whole or absent, the best weights, the metrics, the facts of the run."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from isotrope.errors import InputError
from isotrope.files import check_run_folder, explained, write_json, written_file, written_folder
from isotrope.training.collapse import CollapseAlarm
from isotrope.training.state import TrainingState

if TYPE_CHECKING:
    from accelerate import Accelerator

    from isotrope.training.updates import Updater

TACTICS = "tactics.pt"
OWN = {"run.json", "metrics.jsonl", "checkpoints", "model", "trackers"}


class RunFolder:
    """run.json, metrics.jsonl, checkpoints/step-N (what resume needs), checkpoints/best-N.safetensors, model/."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints = folder / "checkpoints"
        self.model = folder / "model"

    def begin(self, facts: dict[str, Any], resume: bool) -> None:
        """A fresh folder, or, to resume, the folder of a run with the same facts."""
        check_run_folder(self.folder, resume)
        if resume:
            self._check_same(facts)
            return
        with explained(self.folder):
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / "run.json", facts)

    def add_facts(self, facts: dict[str, Any]) -> None:
        """Put into run.json what is known only at the end."""
        file = self.folder / "run.json"
        write_json(file, {**json.loads(file.read_text(encoding="utf-8")), **facts})

    def _check_same(self, facts: dict[str, Any]) -> None:
        before = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        for part in ("method", "data", "model", "mixture", "settings"):
            then, now = before.get(part), facts.get(part)
            if then != now:
                raise InputError(f"{self.folder}: cannot resume, the {part} differs: {difference(then, now)}.")

    def log(self, line: dict[str, Any]) -> None:
        with explained(self.folder), open(self.folder / "metrics.jsonl", "a", encoding="utf-8") as metrics:
            metrics.write(json.dumps(line) + "\n")

    def history(self) -> list[dict[str, Any]]:
        file = self.folder / "metrics.jsonl"
        if not file.is_file():
            return []
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]

    def forget_after(self, step: int) -> None:
        """Drop log lines past a checkpoint: the steps will be taken again."""
        kept = [line for line in self.history() if line["step"] <= step]
        with written_file(self.folder / "metrics.jsonl") as temporary:
            temporary.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")

    def save(
        self,
        step: int,
        method: nn.Module,
        optimiser: torch.optim.Optimizer,
        state: dict[str, Any],
        tactics: dict[str, Any] | None = None,
    ) -> None:
        """Write step-N, then drop the older ones and the weights that are no longer the best."""
        with written_folder(self.checkpoints / f"step-{step}") as temporary:
            save_file(weights_of(method), temporary / "weights.safetensors")
            torch.save(optimiser.state_dict(), temporary / "optimiser.pt")
            if tactics:
                torch.save(tactics, temporary / TACTICS)
            write_json(temporary / "state.json", {**state, "step": step})
        for other in self.checkpoints.iterdir():
            stale_step = other.name.startswith("step-") and other.name != f"step-{step}"
            stale_best = other.name.startswith("best-") and other.name != f"best-{state.get('best_step')}.safetensors"
            if stale_step:
                shutil.rmtree(other)
            elif stale_best:
                other.unlink()

    def save_best(self, step: int, method: nn.Module) -> None:
        with written_file(self.checkpoints / f"best-{step}.safetensors") as temporary:
            save_file(weights_of(method), temporary)

    def load_best(self, step: int, method: nn.Module) -> None:
        put_weights(method, load_file(self.checkpoints / f"best-{step}.safetensors"))

    def last(self) -> Path | None:
        found = [(int(m[1]), p) for p in self.checkpoints.glob("step-*") if (m := re.fullmatch(r"step-(\d+)", p.name))]
        return max(found)[1] if found else None

    def tactics(self) -> dict[str, Any]:
        """The states of tactics in the last checkpoint, by the tactic's name."""
        folder = self.last()
        if folder is None or not (folder / TACTICS).is_file():
            return {}
        return dict(torch.load(folder / TACTICS, weights_only=True, map_location="cpu"))

    def load_last(self, method: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Any] | None:
        """Put weights and moments back; returns the loop's own state, None where no checkpoint was written yet."""
        folder = self.last()
        if folder is None:
            return None
        put_weights(method, load_file(folder / "weights.safetensors"))
        optimiser.load_state_dict(torch.load(folder / "optimiser.pt", weights_only=True, map_location="cpu"))
        return dict(json.loads((folder / "state.json").read_text(encoding="utf-8")))


class Checkpoints:
    """What resume needs: weights, moments, schedule, scaler, the tactics' states and the state of the run."""

    def __init__(
        self, folder: RunFolder, module: nn.Module, updater: Updater, accelerator: Accelerator, alarm: CollapseAlarm
    ) -> None:
        self.folder, self.module = folder, module
        self.optimiser, self.schedule, self.tactics = updater.optimiser, updater.schedule, updater.tactics
        self.accelerator, self.alarm = accelerator, alarm

    def begin(self, resume: bool) -> TrainingState | None:
        """The state to go on from, or None for a run from its first step; log lines that will be written again go."""
        kept = self.folder.load_last(self.module, self.optimiser) if resume else None
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            self.folder.forget_after(-1 if kept is None else kept["step"])
        if kept is None:
            return None
        self.schedule.load_state_dict(kept["schedule"])
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(kept["scaler"])
        self.alarm.first_rank, self.alarm.first_cosine = kept["alarm"]
        remembered = self.folder.tactics()
        for tactic in self.tactics:
            tactic.restore(remembered.get(tactic.card.name, {}))
        return TrainingState(**{field.name: kept[field.name] for field in fields(TrainingState) if field.name in kept})

    def save(self, state: TrainingState) -> None:
        if self.accelerator.is_main_process:
            kept = {**asdict(state), "schedule": self.schedule.state_dict()}
            if self.accelerator.scaler is not None:
                kept["scaler"] = self.accelerator.scaler.state_dict()
            kept["alarm"] = [self.alarm.first_rank, self.alarm.first_cosine]
            remembered = {tactic.card.name: found for tactic in self.tactics if (found := tactic.state())}
            self.folder.save(state.step, self.module, self.optimiser, kept, remembered)
        self.accelerator.wait_for_everyone()

    def put_best(self, state: TrainingState) -> None:
        """The weights of the best evaluation, in every process."""
        self.accelerator.wait_for_everyone()
        if state.best_step:
            self.folder.load_best(state.best_step, self.module)
        self.module.eval()


def weights_of(method: nn.Module) -> dict[str, Tensor]:
    """Every tensor once, however many names it has (tied embeddings, shared towers)."""
    named = {**dict(method.named_parameters()), **dict(method.named_buffers())}
    return {name: tensor.detach().cpu().contiguous() for name, tensor in named.items()}


@torch.no_grad()
def put_weights(method: nn.Module, weights: dict[str, Tensor]) -> None:
    named = {**dict(method.named_parameters()), **dict(method.named_buffers())}
    if named.keys() != weights.keys():
        raise InputError("The checkpoint was written by another method or model; it does not fit.")
    for name, tensor in named.items():
        tensor.copy_(weights[name])


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
