"""Settings of the loop alone. What a paper invented stands with its method, its auxiliary loss or its tactic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from isotrope.methods.frame.matryoshka import parse_widths
from isotrope.methods.frame.settings import Count, Draws, OneOf, Positive, Settings, Weight, above, at_least

PRECISIONS = ("auto", "float32", "bfloat16", "float16")
OPTIMISERS = ("adamw", "muon", "adagrad", "sgd", "lars", "rmsprop")
COMPILED = ("auto", "always", "never")
SCHEDULES = ("linear", "cosine", "constant")
TRACKERS = ("none", "tensorboard", "wandb", "mlflow")
Seed = Annotated[int, at_least(0, below=1 << 32), "Random seed of the run"]
Beta = Annotated[float, at_least(0, below=1)]


@dataclass(frozen=True)
class LoopSettings(Settings):
    """The defaults suit a small encoder and two cores; the papers' values for BERT and RoBERTa are in recipes/."""

    batch_size: Annotated[
        int, at_least(2), "Records an update compares, over all processes; fewer by default where the data are few"
    ] = 64
    learning_rate: Annotated[Positive, "Highest learning rate: it rises to it, then falls to zero"] = 1e-4
    epochs: Annotated[Positive, "Passes over the data"] = 1.0
    max_steps: Annotated[int | None, at_least(1), "Updates; wins over epochs"] = None
    max_seconds: Annotated[
        float | None, above(0), "Seconds of training, evaluations not counted; wins over max_steps and epochs"
    ] = None
    time_limit: Annotated[
        float | None, above(0), "Seconds of training at most: the run ends then where its steps are not done before"
    ] = None
    max_length: Annotated[Count, "Tokens of a text, special tokens counted"] = 64
    warmup_ratio: Annotated[float, at_least(0, below=1), "Share of the updates in which the rate rises"] = 0.05
    weight_decay: Annotated[Weight, "Decay of weight matrices; never of biases and norms"] = 0.01
    max_grad_norm: Annotated[
        float | None, above(0), "Longest gradient; longer ones are scaled down to it; none: no clipping"
    ] = 1.0
    optimiser: Annotated[
        str,
        OneOf(*OPTIMISERS),
        "Muon takes the weight matrices of layers and leaves the rest to AdamW; lars scales each tensor's step",
    ] = "adamw"
    schedule: Annotated[
        str, OneOf(*SCHEDULES), "How the learning rate falls to zero behind its warm-up; constant: it stays"
    ] = "linear"
    adam_beta1: Annotated[Beta, "Decay of AdamW's first moment"] = 0.9
    adam_beta2: Annotated[Beta, "Decay of AdamW's second moment"] = 0.999
    sgd_momentum: Annotated[Beta, "Momentum of sgd and lars; 0: plain gradient descent"] = 0.9
    gradient_accumulation_steps: Annotated[Draws, "Batches whose gradients are added up; no further negatives"] = 1
    chunk_size: Annotated[
        int | None, at_least(1), "Records in one forward: large batches in small memory, same gradient"
    ] = None
    matryoshka: Annotated[
        str | None, "Widths, as in 64,128: the objective is added at each of them, so that vectors can be cut there"
    ] = None
    logging_steps: Annotated[Count, "Updates between two lines of the log"] = 10
    eval_steps: Annotated[Count, "Updates between two evaluations, each with a checkpoint"] = 100
    first_eval: Annotated[
        int | None, at_least(1), "Updates before the first evaluation, then twice as many, until eval_steps; none: off"
    ] = None
    patience: Annotated[int | None, at_least(1), "Evaluations without a better score before stopping"] = None
    keep_start: Annotated[bool, "Keep the start where nothing is better; a raw model only with --eval-data"] = True
    held_out: Annotated[int, at_least(0), "Records hidden from training for the label-free score"] = 512
    held_out_seed: Annotated[
        int | None, at_least(0, below=1 << 32), "Random seed of what is held out; none: that of the run"
    ] = None
    seed: Seed = 42
    precision: Annotated[str, OneOf(*PRECISIONS), "auto: bfloat16 on a GPU that has it, float32 elsewhere"] = "auto"
    compiled: Annotated[
        str, OneOf(*COMPILED), "Compile the layers on a GPU; auto: where a run is long enough to win the time back"
    ] = "auto"
    report_to: Annotated[str, OneOf(*TRACKERS), "Tracker that the log goes to as well"] = "none"

    def rules(self) -> None:
        parse_widths(self.matryoshka)

    def evaluates_at(self, step: int) -> bool:
        """Every ``eval_steps``, and before the first of these at ``first_eval`` and its doubles."""
        if step % self.eval_steps == 0:
            return True
        if self.first_eval is None or step > self.eval_steps or step % self.first_eval:
            return False
        doubled = step // self.first_eval
        return doubled & (doubled - 1) == 0

    @property
    def draw_seed(self) -> int:
        """That of the held-out rows."""
        return self.seed if self.held_out_seed is None else self.held_out_seed
