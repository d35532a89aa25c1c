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

NESTED = ("evaluation", "training", "held_out")  # lines whose numbers stand one level down


class MetricsLog:
    """Collects updates, writes a line for the folder, the tracker and the bar, and listens for a collapse."""

    def __init__(
        self, folder: RunFolder, accelerator: Accelerator, speeds: Mapping[str, float], sources: Sequence[str] = ()
    ) -> None:
        """``speeds``: the name of a rate in the log, and how much of it an update has. ``sources``: where a run has
        several, each has lines of its own, and the line of the whole has no terms, since they differ."""
        self.folder, self.accelerator, self.speeds, self.sources = folder, accelerator, speeds, sources
        self.alarm = CollapseAlarm()
        self.alarms = [CollapseAlarm() for _ in sources] or [self.alarm]  # of losses
        self.contrastive = False  # whether a batch had candidates
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
        last = self.pending[-1]
        terms = self._by_source(state)
        self.line(
            {
                "step": state.step,
                "loss": float(losses.mean()),
                **terms,
                "gradient_norm": float(torch.stack([update.norm for update in self.pending]).mean()),
                **last.about,
                "seconds": round(state.seconds, 3),
                **{name: round(len(losses) * amount / seconds, 1) for name, amount in self.speeds.items()},
            }
        )
        self.pending.clear()
        candidates = last.batches[-1].candidates
        return f"loss {float(losses[-1]):.4f}" + (f" · {candidates} candidates" if candidates else "")

    def _by_source(self, state: TrainingState) -> dict[str, float]:
        """Terms, measures and candidates for the line of the whole; those of several sources have their own lines."""
        batches = [batch for update in self.pending for batch in update.batches]
        for source, alarm in enumerate(self.alarms):
            own = [batch for batch in batches if batch.source == source]
            if not own:
                continue
            terms = {name: float(value) for name, value in means([batch.numbers for batch in own]).items()}
            candidates = own[-1].candidates
            self.contrastive |= candidates > 0
            alarmed = alarm.after_log(state.step, terms.get("contrastive", 0.0), candidates)
            if not self.sources:
                self.warn(alarmed)
                return {**terms, "candidates": candidates}
            name, loss = self.sources[source], float(torch.stack([batch.loss for batch in own]).mean())
            found = {"batches": len(own), "loss": loss, **terms, "candidates": candidates}
            self.line({"step": state.step, "source": name, "training": found})
            self.warn([f"Source '{name}': {sentence}" for sentence in alarmed])
        return {}

    def line(self, line: dict[str, Any]) -> None:
        """One line for the folder and the tracker."""
        if self.accelerator.is_main_process:
            self.folder.log(line)
        part = next((part for part in NESTED if part in line), None)
        place = "/".join(name for name in (line.get("source"), part) if name)
        flat = line if part is None else {f"{place}/{name}": value for name, value in line[part].items()}
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
