"""What a run leaves: the model folder that inference takes, and in words how its step was selected."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isotrope.encoders.classifier import Classifier
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.encoder_uses import PROMPTS
from isotrope.encoders.model_card import COMMAND, EVALUATION
from isotrope.encoders.saving import check_target
from isotrope.files import written_folder
from isotrope.methods.frame.learner import Learner
from isotrope.training.history_lines import KEPT
from isotrope.training.run_circumstances import card_command
from isotrope.training.run_folder import RunFolder
from isotrope.training.state import Finished, TrainingWarning

if TYPE_CHECKING:
    from accelerate import Accelerator


def keep(
    learner: Learner,
    folder: RunFolder,
    facts: dict[str, Any],
    finished: Finished,
    accelerator: Accelerator,
    classify: Callable[[Encoder], Classifier | None] | None = None,
) -> tuple[Encoder, str]:
    """Save what inference keeps, with ``facts`` of it; gives it, and in words how its step was selected.

    ``classify`` makes the classifier that is saved with it.
    """
    chosen = learner.encoder if finished.start_kept else learner.export()
    encoder = chosen.eval().requires_grad_()  # what a method kept still may learn in the next run
    encoder.facts = {**_known_of(encoder, finished), **facts}
    if not finished.start_kept:
        encoder.classifier = None  # that of the start was learned from other vectors
    if accelerator.is_main_process:
        if classify is not None and not finished.start_kept:
            encoder.classifier = classify(encoder)
        check_target(folder.model)
        with written_folder(folder.model) as whole:
            encoder.save(whole)
            for name, other in learner.further().items():
                other.facts, other.classifier = encoder.facts, None
                other.eval().save(whole / name)
        if learner.keeps == "best":
            _say_if_no_better(finished)
    accelerator.wait_for_everyone()
    chosen_by = next((line["chosen_by"] for line in finished.history if "chosen_by" in line), "the score")
    return encoder, _selected_by(learner, finished, chosen_by)


def _known_of(encoder: Encoder, finished: Finished) -> dict[str, Any]:
    """For the model's card: its prompts, the command, and the scores of the step that was kept."""
    judged = [line.get(KEPT) or line.get("evaluation") for line in _until(finished)]
    last = [measures for measures in judged if measures]
    found = {
        PROMPTS: encoder.facts.get(PROMPTS),
        COMMAND: card_command(),
        EVALUATION: dict(last[-1]) if last else None,
    }
    return {name: value for name, value in found.items() if value}


def _until(finished: Finished) -> list[dict[str, Any]]:
    return [line for line in finished.history if line["step"] <= finished.selected_step]


def _selected_by(learner: Learner, finished: Finished, chosen_by: str) -> str:
    if finished.start_kept:
        return f"the start, since no evaluation was better by {chosen_by}"
    if not finished.judged:
        return "the last, since the run was stopped before its first evaluation"
    shares = [line["kept_share"] for line in finished.history if "kept_share" in line]
    back = f", {shares[-1]:g} of its change" if shares else ""
    return (f"the best by {chosen_by}" if learner.keeps == "best" else "the last") + back


def _say_if_no_better(finished: Finished) -> None:
    history: Sequence[Mapping[str, Any]] = finished.history
    fate = "the start is kept; " if finished.start_kept else ""
    scores = {line["step"]: line["score"] for line in history if "score" in line}
    later = [score for step, score in scores.items() if step]
    if 0 in scores and later and max(later) <= scores[0]:
        by = next(line["chosen_by"] for line in history if "chosen_by" in line)
        warnings.warn(
            f"Training did not improve {by}: {scores[0]:.4f} before, at best {max(later):.4f} after; "
            f"{fate}try a lower learning rate, fewer steps, or other text.",
            TrainingWarning,
            stacklevel=6,
        )
