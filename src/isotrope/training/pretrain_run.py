"""Pre-train a small encoder from scratch, or go on with one: masked language modelling, a sentence task, or both.

Masked language modelling alone reads packed rows (``PackedFeed``); a sentence task draws pairs of segments of
documents. Both run on the loop that ``train`` has.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from isotrope.allocator import returning_memory
from isotrope.data.sources import read_sentences
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.fresh import fresh_encoder
from isotrope.encoders.language_head import MissingHeadError, NewHeadWarning
from isotrope.encoders.loading import load
from isotrope.encoders.modes import evaluating, set_dropout
from isotrope.errors import InputError
from isotrope.files import discard, file_digest
from isotrope.progress import say
from isotrope.training.loop import Job, make_accelerator, train_loop
from isotrope.training.partners import check_alike, together
from isotrope.training.plan import check_machine
from isotrope.training.pretrain_settings import PretrainSettings
from isotrope.training.pretrain_tasks import Task, open_task
from isotrope.training.run_circumstances import surroundings
from isotrope.training.run_folder import RunFolder
from isotrope.training.state import Finished, Interrupted, Judge, Judgement, TrainingWarning
from isotrope.training.step import callers_random_state
from isotrope.training.tactics.weight_average import WeightAverage, WeightAverageSettings

if TYPE_CHECKING:
    from accelerate import Accelerator

Measure = Callable[[Encoder], dict[str, float]]


@dataclass(frozen=True)
class Pretrained:
    """A pre-training run. ``finished`` is False where the minutes given ran out first; resume goes on from there."""

    encoder: Encoder
    history: list[dict[str, Any]]
    folder: Path
    finished: bool

    def to_dict(self) -> dict[str, Any]:
        return {"folder": str(self.folder), "finished": self.finished, "measures": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """The measurements on held-out text."""
        return [{"step": line["step"], **line["evaluation"]} for line in self.history if "evaluation" in line]


def run_pretrain(
    sources: Sequence[str | Path],
    output: str | Path,
    settings: PretrainSettings,
    measure: Measure | None = None,
    resume: bool = False,
    tokenizer: Any = None,
    measured: Sequence[str | Path] = (),
    given: Encoder | None = None,
) -> Pretrained:
    """Train an encoder on text files, with a vocabulary of their own or that of ``tokenizer``; or go on with ``given``.

    ``measured`` are the files that ``measure`` reads.
    """
    began = None if given is None else given.fingerprint()
    deadline = None if settings.minutes is None else time.perf_counter() + 60 * settings.minutes
    folder, loop = RunFolder(Path(output)), settings.loop()
    check_machine(loop)
    accelerator = make_accelerator(loop, folder)
    alone = folder.alone(resume, accelerator.is_main_process)
    with returning_memory(), callers_random_state(), alone, together(accelerator):
        encoder = _start(sources, folder, settings, resume, tokenizer, given, accelerator)
        task = open_task(sources, encoder, settings, accelerator)
        facts = _facts(sources, encoder, settings, task, accelerator)
        facts["eval_content"] = [file_digest(file) for file in measured]
        if began is not None:
            facts["model"]["start"] = began
        return _run(folder, encoder, settings, task, facts, measure, resume, deadline, accelerator)


def _run(
    folder: RunFolder,
    encoder: Encoder,
    settings: PretrainSettings,
    task: Task,
    facts: dict[str, Any],
    measure: Measure | None,
    resume: bool,
    deadline: float | None,
    accelerator: Accelerator,
) -> Pretrained:
    check_alike(facts, accelerator)
    if accelerator.is_main_process:
        folder.begin(facts, resume)
        if not (folder.folder / "start").is_dir():
            encoder.save(folder.folder / "start")  # the vocabulary, for a run that goes on later
        for sentence in task.combined.method.prepared.remarks:
            warnings.warn(sentence, TrainingWarning, stacklevel=3)
    accelerator.wait_for_everyone()
    set_dropout(encoder.backbone, settings.dropout)
    job = Job(
        task.combined,
        task.feed,
        settings.steps,
        settings.loop(),
        folder,
        accelerator,
        _judge(task, measure),
        _tactics(task, settings),
        speeds={"tokens_per_second": settings.batch_size * settings.length},
        deadline=deadline,
        label="pre-training",
    )
    try:
        finished = train_loop(job, resume)
    except Interrupted as stop:
        _keep(encoder, facts, stop.finished, folder, accelerator)
        raise KeyboardInterrupt(f"{stop}; the model so far is in {folder.model}") from stop
    _keep(encoder, facts, finished, folder, accelerator)
    return Pretrained(encoder, finished.history, folder.folder, finished.complete)


def _keep(
    encoder: Encoder, facts: dict[str, Any], finished: Finished, folder: RunFolder, accelerator: Accelerator
) -> None:
    """Save the encoder, also where the run is not done: what it has learned until then can be used."""
    encoder.facts = {**{name: facts[name] for name in ("method", "settings", "data")}, "selected_step": finished.steps}
    if accelerator.is_main_process:
        encoder.eval().save(folder.model)
    accelerator.wait_for_everyone()


def _start(
    sources: Sequence[str | Path],
    folder: RunFolder,
    settings: PretrainSettings,
    resume: bool,
    tokenizer: Any,
    given: Encoder | None,
    accelerator: Accelerator,
) -> Encoder:
    """A fresh encoder, the one that was given, or the one a resumed run began with."""
    found = _continued(folder, settings) if resume else None
    if found is None:
        found = given
    if found is not None:
        return found.to(accelerator.device)
    encoder = fresh_encoder(
        (record.texts[0] for record in read_sentences(sources)),
        settings.vocabulary,
        settings.layers,
        settings.width,
        settings.heads,
        max_length=max(settings.length, 128),
        seed=settings.seed,
        tokenizer=tokenizer,
    )
    pieces = encoder.text_tokenizer.vocabulary
    if tokenizer is None and pieces < settings.vocabulary:
        raise InputError(
            f"The text gives a vocabulary of {pieces:,} pieces, and {settings.vocabulary:,} were asked for; "
            "lower vocabulary or bring more text."
        )
    return encoder.to(accelerator.device)


def _continued(folder: RunFolder, settings: PretrainSettings) -> Encoder | None:
    """What the run began with; None where it was stopped before that was written, or where it is damaged."""
    start = folder.folder / "start"
    if not start.is_dir():
        return None
    try:
        encoder = load(start, device="cpu", language_head=True)
    except InputError as error:
        say(f"{start} is damaged and made again: {error}")
        discard(start)
        return None
    config = encoder.backbone.config
    found = {"layers": config.num_hidden_layers, "width": config.hidden_size, "heads": config.num_attention_heads}
    for name, value in found.items():
        if value != getattr(settings, name):
            raise InputError(f"{folder.folder}: cannot resume, {name} was {value} and is {getattr(settings, name)}.")
    return encoder


def open_given(model: str | PathLike[str]) -> Encoder:
    """A masked language model to go on with: its head must be its own, and nothing may stand behind its pooling."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", NewHeadWarning)
            encoder = load(model, device="cpu", language_head=True)
    except (NewHeadWarning, MissingHeadError) as missing:
        raise InputError(
            f"{model} holds no masked-language head, so pre-training cannot go on with it; take a language model such "
            "as builtin-base."
        ) from missing
    if encoder.parts:
        raise InputError(f"{model} has parts behind its pooling; take the language model itself.")
    return encoder


def shaped_by(encoder: Encoder, settings: PretrainSettings, named: Collection[str]) -> PretrainSettings:
    """The settings with the encoder's own shape; a shape that was ``named`` and is another is refused."""
    config = encoder.backbone.config
    own = {
        "vocabulary": encoder.text_tokenizer.vocabulary,
        "layers": config.num_hidden_layers,
        "width": config.hidden_size,
        "heads": config.num_attention_heads,
    }
    for name, value in own.items():
        if name in named and getattr(settings, name) != value:
            raise InputError(
                f"{name} is {value:,} in the model that is given; {getattr(settings, name):,} was asked for."
            )
    if settings.length > encoder.max_length:
        raise InputError(f"The model reads {encoder.max_length} tokens; length {settings.length} was given.")
    return replace(settings, **own)


def _tactics(task: Task, settings: PretrainSettings) -> list[WeightAverage]:
    chosen = WeightAverageSettings(settings.average_decay)
    return [WeightAverage(chosen, task.combined, settings.loop(), settings.steps)] if chosen.active else []


def _judge(task: Task, measure: Measure | None) -> Judge:
    """Loss and figures of each task on held-out documents; the last weights are kept whatever it says."""

    def judge(encoder: Encoder) -> Judgement:
        with evaluating(task.combined):
            found = {
                name: tensor.float() if tensor.is_floating_point() else tensor
                for name, tensor in task.held_out().items()
            }
            loss = float(task.combined.total(task.combined.loss(found, torch.Generator())))
            figures = {name: float(value) for name, value in task.combined.on_held_out(found).items()}
        measured = {} if measure is None else measure(encoder)
        return Judgement({"held_out_loss": loss, **figures, **measured}, "held_out_loss", lower_is_better=True)

    return judge


def _facts(
    sources: Sequence[str | Path], encoder: Encoder, settings: PretrainSettings, task: Task, accelerator: Accelerator
) -> dict[str, Any]:
    free = ("minutes", "logging_steps", "save_steps", "report_to")  # a resumed run may change these
    return {
        "method": "pretrain",
        "data": task.facts,
        "model": {"vocabulary": encoder.text_tokenizer.fingerprint()},
        "settings": {name: value for name, value in asdict(settings).items() if name not in free},
        "sources": [str(source) for source in sources],
        "processes": accelerator.num_processes,
        **surroundings(str(accelerator.device)),
    }
