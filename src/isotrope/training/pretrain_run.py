"""Pre-train a small encoder from scratch: a vocabulary, and masked language modelling, a sentence task, or both.

Masked language modelling alone reads packed rows (``PackedFeed``); a sentence task draws pairs of segments of
documents. Both run on the loop that ``train`` has.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.data.corpus import open_documents
from isotrope.data.packing import held_documents, pack
from isotrope.data.sources import read_sentences
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.fresh import fresh_encoder
from isotrope.encoders.loading import load
from isotrope.encoders.modes import evaluating, set_dropout
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.masked_language import MaskedLanguage, MaskingSettings
from isotrope.methods.frame.masked_pairs import MaskedPairs
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.sentence_pairs import SentencePairs
from isotrope.training.checkpoints import RunFolder
from isotrope.training.feeds import CorpusFeed, Feed
from isotrope.training.held_out_task import represent_held_out
from isotrope.training.loop import Job, make_accelerator, train_loop
from isotrope.training.packed_feed import PackedFeed, PackedLanguage, PackedRows
from isotrope.training.pretrain_settings import PretrainSettings, language_task
from isotrope.training.run import surroundings
from isotrope.training.state import Judge, Judgement, TrainingWarning

if TYPE_CHECKING:
    from accelerate import Accelerator

Measure = Callable[[Encoder], dict[str, float]]
HELD_ROWS = 512  # at most, always the same


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


@dataclass(frozen=True)
class Task:
    """What is pre-trained, on what, and how held-out documents are represented: under the same masks each time."""

    combined: Combined
    feed: Feed
    facts: dict[str, Any]
    held: npt.NDArray[Any]  # rows that training never sees
    held_out: Callable[[], dict[str, Tensor]]


def run_pretrain(
    sources: Sequence[str | Path],
    output: str | Path,
    settings: PretrainSettings,
    measure: Measure | None = None,
    resume: bool = False,
    tokenizer: Any = None,
) -> Pretrained:
    """Train an encoder on text files, with a vocabulary of their own or that of ``tokenizer``."""
    deadline = None if settings.minutes is None else time.perf_counter() + 60 * settings.minutes
    folder, loop = RunFolder(Path(output)), settings.loop()
    accelerator = make_accelerator(loop, folder)
    encoder = _start(sources, folder, settings, resume, tokenizer, accelerator)
    task = _open(sources, encoder, settings, accelerator)
    facts = _facts(sources, encoder, settings, task, accelerator)
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
        loop,
        folder,
        accelerator,
        _judge(task, measure),
        speeds={"tokens_per_second": settings.batch_size * settings.length},
        deadline=deadline,
        label="pre-training",
    )
    finished = train_loop(job, resume)
    encoder.facts = {**{name: facts[name] for name in ("method", "settings", "data")}, "selected_step": finished.steps}
    if finished.complete and accelerator.is_main_process:
        encoder.eval().save(folder.model)
    accelerator.wait_for_everyone()
    return Pretrained(encoder, finished.history, folder.folder, finished.complete)


def _start(
    sources: Sequence[str | Path],
    folder: RunFolder,
    settings: PretrainSettings,
    resume: bool,
    tokenizer: Any,
    accelerator: Accelerator,
) -> Encoder:
    """A fresh encoder, or the one a resumed run began with."""
    if resume:
        return _continued(folder, settings).to(accelerator.device)
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
    found = encoder.text_tokenizer.vocabulary
    if tokenizer is None and found < settings.vocabulary:
        raise InputError(
            f"The text gives a vocabulary of {found:,} pieces, and {settings.vocabulary:,} were asked for; "
            "lower vocabulary or bring more text."
        )
    return encoder.to(accelerator.device)


def _continued(folder: RunFolder, settings: PretrainSettings) -> Encoder:
    start = folder.folder / "start"
    if not start.is_dir():
        raise InputError(f"{folder.folder}: no run to resume here.")
    encoder = load(start, device="cpu", language_head=True)
    config = encoder.backbone.config
    found = {"layers": config.num_hidden_layers, "width": config.hidden_size, "heads": config.num_attention_heads}
    for name, value in found.items():
        if value != getattr(settings, name):
            raise InputError(f"{folder.folder}: cannot resume, {name} was {value} and is {getattr(settings, name)}.")
    return encoder


def _open(
    sources: Sequence[str | Path], encoder: Encoder, settings: PretrainSettings, accelerator: Accelerator
) -> Task:
    pairs = [method for method in settings.methods() if issubclass(method, SentencePairs)]
    with accelerator.main_process_first():
        if pairs:
            return paired_task(sources, encoder, settings, pairs[0], accelerator)
        return packed_task(sources, encoder, settings, accelerator)


def packed_task(
    sources: Sequence[str | Path], encoder: Encoder, settings: PretrainSettings, accelerator: Accelerator
) -> Task:
    tokenizer, loop = encoder.text_tokenizer, settings.loop()
    text = pack(sources, tokenizer, tokenizer.prefix[0], tokenizer.suffix[0], settings.length)
    _check_rows(len(text.train), "rows", settings, accelerator)
    method = PackedLanguage(_language(encoder, settings), settings.length, accelerator.device)
    combined = Combined(method)
    facts = {
        "fingerprint": text.fingerprint,
        "rows": len(text.train),
        "documents": text.documents,
        "sentences": text.sentences,
    }

    def held_out() -> dict[str, Tensor]:
        rows = torch.from_numpy(text.held[:HELD_ROWS].astype(np.int64)).to(accelerator.device)
        torch.manual_seed(0)
        parts = [Batch({"rows": PackedRows(part)}, len(part), 0) for part in rows.split(settings.batch_size)]
        with accelerator.autocast():
            return {"token_losses": torch.cat([method.represent(part)["token_losses"] for part in parts])}

    return Task(combined, PackedFeed(text, loop, accelerator), facts, text.held[:HELD_ROWS], held_out)


def paired_task(
    sources: Sequence[str | Path],
    encoder: Encoder,
    settings: PretrainSettings,
    kind: type[SentencePairs[Any]],
    accelerator: Accelerator,
) -> Task:
    """Pairs of segments of documents, drawn anew for every step. The method is the one that ``train`` has."""
    corpus, loop = open_documents(sources, encoder.text_tokenizer), settings.loop()
    masks = issubclass(kind, MaskedLanguage)
    shares = {name: getattr(settings, name) for name in ("mask_rate", "keep", "replace")} if masks else {}
    torch.manual_seed(settings.seed)  # the head is drawn
    task = kind(kind.Settings(**shares), encoder, settings.length, corpus)
    rows = task.prepared.select(np.arange(len(corpus)))
    aside = held_documents(corpus.documents[rows], corpus.counts.documents)
    train, held = rows[~aside], rows[aside][:HELD_ROWS]
    _check_rows(len(train), "pairs", settings, accelerator)
    both = language_task() in settings.methods() and not masks
    method: Method[Any] = MaskedPairs(task, _language(encoder, settings)) if both else task
    combined = Combined(method)
    counts = corpus.counts
    facts = {
        "fingerprint": corpus.fingerprint,
        "rows": len(train),
        "documents": counts.documents,
        "sentences": counts.records,
    }

    def held_out() -> dict[str, Tensor]:
        size = min(settings.batch_size, len(held))
        return represent_held_out(combined, corpus, held, size, settings.seed)

    return Task(combined, CorpusFeed(combined, corpus, train, loop, accelerator), facts, held, held_out)


def _language(encoder: Encoder, settings: PretrainSettings) -> MaskedLanguage[Any]:
    kind = language_task()
    chosen = kind.Settings(mask_rate=settings.mask_rate, keep=settings.keep, replace=settings.replace)  # type: ignore[call-arg]
    assert isinstance(chosen, MaskingSettings)
    return kind(chosen, encoder, settings.length)


def _check_rows(found: int, what: str, settings: PretrainSettings, accelerator: Accelerator) -> None:
    if found < settings.batch_size:
        raise InputError(
            f"The text gives {found:,} {what}, fewer than batch_size ({settings.batch_size}); bring more text."
        )
    if settings.batch_size % accelerator.num_processes:
        raise InputError(f"batch_size {settings.batch_size} cannot be shared by {accelerator.num_processes} processes.")


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
        **surroundings(str(accelerator.device)),
    }
