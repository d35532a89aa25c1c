"""The choice of a checkpoint: evaluations, the best of them, and the patience that ends a run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from isotrope.encoders.cut_texts import counting_cut
from isotrope.methods.frame.learner import Learner
from isotrope.progress import say
from isotrope.training.metrics_log import MetricsLog
from isotrope.training.run_folder import RunFolder
from isotrope.training.state import Judge, Judgement, TrainingState

if TYPE_CHECKING:
    from accelerate import Accelerator


class Selection:
    """Judges the encoder and keeps the weights of the best evaluation, or of the last where the method says so.

    With ``keep_start`` the start is a candidate: a run that is never better ends with the encoder it began with.
    """

    def __init__(
        self,
        combined: Learner,
        judge: Judge,
        folder: RunFolder,
        log: MetricsLog,
        patience: int | None,
        keep_start: bool = False,
    ) -> None:
        self.combined, self.judge, self.folder, self.log, self.patience = combined, judge, folder, log, patience
        self.keep_start = keep_start and combined.keeps == "best"

    def evaluate(self, state: TrainingState, accelerator: Accelerator, contrastive: bool) -> float:
        """Judge in the first process, and give the score; the others wait for its verdict."""
        score = self._judge(state, contrastive) if accelerator.is_main_process else math.nan
        verdict = torch.tensor(
            [state.best, state.best_step, state.stale, score], dtype=torch.float64, device=accelerator.device
        )
        if accelerator.num_processes > 1:
            torch.distributed.broadcast(verdict, 0)
        state.best, state.best_step, state.stale = float(verdict[0]), int(verdict[1]), int(verdict[2])
        self.combined.train()
        self.log.restart_clock()
        return float(verdict[3])

    def judge_kept(self, accelerator: Accelerator) -> Judgement:
        """The weights as they stand at the end, in the first process; the others get its score."""
        found = Judgement({"score": math.nan}, "score")
        if accelerator.is_main_process:
            with counting_cut():
                found = self.judge(self.combined.export())
        if accelerator.num_processes == 1:
            return found
        score = torch.tensor(found.score, dtype=torch.float64, device=accelerator.device)
        torch.distributed.broadcast(score, 0)
        return found if accelerator.is_main_process else Judgement({"score": float(score)}, "score")

    def exhausted(self, state: TrainingState) -> bool:
        return self.patience is not None and state.stale >= self.patience

    def _judge(self, state: TrainingState, contrastive: bool) -> float:
        combined, step = self.combined, state.step
        with counting_cut():  # how many records are cut was said when training began
            judgement = self.judge(combined.export() if step else combined.encoder)  # at first as it was given
        none_yet = state.best_step == 0 and not has_start(state)
        better = none_yet or math.isnan(state.best) or judgement.score > state.best
        if step == 0 and self.keep_start and not math.isnan(judgement.score):
            state.best = judgement.score
            self.folder.save_best(0, combined)
        elif step > 0 and (better or combined.keeps == "last"):
            state.best, state.best_step, state.stale = judgement.score, step, 0
            self.folder.save_best(step, combined)
        elif step > 0:
            state.stale += 1
        measures = judgement.measures
        if math.isnan(judgement.score):
            self.log.warn([f"{judgement.chosen_by} is not a number at step {step}: it chooses no checkpoint there."])
        self._show(state, judgement)
        self.log.line(
            {"step": step, "evaluation": measures, "chosen_by": judgement.chosen_by, "score": judgement.score}
        )
        for source, found in judgement.sources.items():
            self.log.line({"step": step, "source": source, "held_out": found})
        self.log.warn(self.log.alarm.after_evaluation(step, measures) if contrastive else [])
        return judgement.score

    def _show(self, state: TrainingState, judgement: Judgement) -> None:
        """One line for the person who watches."""
        if state.step == 0:
            mark = "" if self.keep_start else ", which is not among those to choose from"
        else:
            mark = ", the best so far" if state.step == state.best_step else f", no better than step {state.best_step}"
        where = "the start" if state.step == 0 else f"step {state.step}"
        say(f"{where}: {judgement.said}{mark if self.combined.keeps == 'best' else ''}")


def has_start(state: TrainingState) -> bool:
    """Whether the start is the best so far, and kept."""
    return state.best_step == 0 and math.isfinite(state.best)
