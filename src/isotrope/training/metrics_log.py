"""The log of a run. Numbers stay on the device until a line is due: the only place where the host waits for them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from isotrope.errors import InputError
from isotrope.training.collapse import CollapseAlarm
from isotrope.training.run_folder import STOPPED, RunFolder
from isotrope.training.state import TrainingState, TrainingWarning
from isotrope.training.updates import Update, means

if TYPE_CHECKING:
    from accelerate import Accelerator


class MetricsLog:
    """Collects updates, writes a line for the folder, the tracker and the bar, and listens for a collapse."""

    def __init__(self, folder: RunFolder, accelerator: Accelerator, speeds: Mapping[str, int]) -> None:
        """``speeds``: the name of a rate in the log, and how much of it an update has."""
        self.folder, self.accelerator, self.speeds = folder, accelerator, speeds
        self.alarm = CollapseAlarm()
        self.pending: list[Update] = []
        self.clock = time.perf_counter()

    def add(self, update: Update) -> None:
        self.pending.append(update)
        self.warn(update.remarks)

    def write(self, state: TrainingState) -> str:
        """Log the mean of the pending updates, the last of which is the state's; gives what the bar says."""
        if not self.pending:
            return ""
        losses = torch.stack([update.loss for update in self.pending]).cpu()
        for place, finite in enumerate(torch.isfinite(losses).tolist()):
            if not finite:
                self._stop(state.step - len(losses) + place + 1, state.best_step)
        seconds, self.clock = time.perf_counter() - self.clock, time.perf_counter()
        terms = {name: float(value) for name, value in means([update.numbers for update in self.pending]).items()}
        last = self.pending[-1]
        self.line(
            {
                "step": state.step,
                "loss": float(losses.mean()),
                **terms,
                "candidates": last.candidates,
                "gradient_norm": float(torch.stack([update.norm for update in self.pending]).mean()),
                **last.about,
                "seconds": round(state.seconds, 3),
                **{name: round(len(losses) * amount / seconds, 1) for name, amount in self.speeds.items()},
            }
        )
        self.pending.clear()
        self.warn(self.alarm.after_log(state.step, terms.get("contrastive", 0.0), last.candidates))
        return f"loss {float(losses[-1]):.4f} · {last.candidates} candidates"

    def line(self, line: dict[str, Any]) -> None:
        """One line for the folder and the tracker."""
        if self.accelerator.is_main_process:
            self.folder.log(line)
        nested = line.get("evaluation")
        flat = line if nested is None else {f"evaluation/{name}": value for name, value in nested.items()}
        self.accelerator.log({name: value for name, value in flat.items() if name != "step"}, step=line["step"])

    def warn(self, sentences: Sequence[str]) -> None:
        for sentence in sentences if self.accelerator.is_main_process else ():
            warnings.warn(sentence, TrainingWarning, stacklevel=3)

    def restart_clock(self) -> None:
        """After work that is not training."""
        self.clock = time.perf_counter()

    def _stop(self, step: int, best_step: int) -> None:
        last = self.folder.last()
        kept = f"the last good checkpoint is {last}" if last else "no checkpoint had been written yet"
        if best_step:
            kept += f", the best weights are those of step {best_step}"
        if self.accelerator.is_main_process:
            self.folder.add_facts({STOPPED: f"the loss is not a number at step {step}"})
        raise InputError(
            f"The loss is not a number at step {step}: {kept}; resume with a lower learning_rate or max_grad_norm, "
            "or check the data and start again with another output."
        )
