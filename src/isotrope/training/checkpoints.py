"""What resume needs, kept and given back: weights, moments, schedule, scaler, alarms, states of tactics and run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from torch import nn

from isotrope.training.collapse import CollapseAlarm
from isotrope.training.run_folder import RunFolder
from isotrope.training.selection import has_start
from isotrope.training.state import TrainingState

if TYPE_CHECKING:
    from accelerate import Accelerator

    from isotrope.training.updates import Updater


class Checkpoints:
    """Saves a run as it stands, and puts it back."""

    def __init__(
        self,
        folder: RunFolder,
        module: nn.Module,
        updater: Updater,
        accelerator: Accelerator,
        alarms: Sequence[CollapseAlarm],
    ) -> None:
        self.folder, self.module, self.updater = folder, module, updater
        self.optimiser, self.schedule, self.tactics = updater.optimiser, updater.schedule, updater.tactics
        self.accelerator, self.alarms = accelerator, alarms

    def begin(self, resume: bool) -> TrainingState | None:
        """The state to go on from, or None for a run from its first step; log lines that will be written again go."""
        if resume and self.accelerator.is_main_process:
            self.folder.set_damaged_aside()
        self.accelerator.wait_for_everyone()
        kept = self.folder.load_last(self.module, self.optimiser) if resume else None
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            self.folder.forget_after(-1 if kept is None else kept["step"])
        if kept is None:
            return None
        rates = list(self.schedule.base_lrs)
        self.schedule.load_state_dict(kept["schedule"])
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(kept["scaler"])
        for alarm, remembered in zip(self.alarms, kept["alarms"], strict=True):
            alarm.restore(remembered)
        for tactic in self.tactics:
            tactic.restore(kept["tactics"].get(tactic.card.name, {}))
        self.schedule.base_lrs = rates  # a run whose loss was no number goes on with a lower rate
        self.updater.set_rates(kept["step"])  # and one that was made longer or shorter with that of its new length
        return TrainingState(**{field.name: kept[field.name] for field in fields(TrainingState) if field.name in kept})

    def save(self, state: TrainingState) -> None:
        if self.accelerator.is_main_process:
            kept = {**asdict(state), "schedule": self.schedule.state_dict()}
            if self.accelerator.scaler is not None:
                kept["scaler"] = self.accelerator.scaler.state_dict()
            kept["alarms"] = [alarm.state() for alarm in self.alarms]
            remembered = {tactic.card.name: found for tactic in self.tactics if (found := tactic.state())}
            self.folder.save(state.step, self.module, self.optimiser, kept, remembered)
        self.accelerator.wait_for_everyone()

    def put_best(self, state: TrainingState) -> None:
        """The weights of the best evaluation, in every process."""
        self.accelerator.wait_for_everyone()
        if state.best_step or has_start(state):
            self.folder.load_best(state.best_step, self.module)
        self.module.eval()
