"""The tasks of pre-training over a text: packed rows for masked language modelling alone, else pairs of segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, open_documents
from isotrope.data.packing import files_of_documents, held_documents, pack, sample_rows
from isotrope.data.random_streams import keyed_seed
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.masked_language import MaskedLanguage, MaskingSettings
from isotrope.methods.frame.masked_pairs import MaskedPairs
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.sentence_pairs import SentencePairs
from isotrope.training.feeds import CorpusFeed, Feed
from isotrope.training.held_out_task import represent_held_out
from isotrope.training.packed_feed import PackedFeed, PackedLanguage, PackedRows
from isotrope.training.pretrain_settings import PretrainSettings, language_task

if TYPE_CHECKING:
    from accelerate import Accelerator

HELD_ROWS = 512  # at most, drawn from all files, always the same


@dataclass(frozen=True)
class Task:
    """What is pre-trained, on what, and how held-out documents are represented: under the same masks each time."""

    combined: Combined
    feed: Feed
    facts: dict[str, Any]
    held: npt.NDArray[Any]  # rows that training never sees
    held_out: Callable[[], dict[str, Tensor]]


def open_task(
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
    held = text.held[sample_rows(len(text.held), HELD_ROWS)]
    method = PackedLanguage(_language(encoder, settings), settings.length, accelerator.device)
    combined = Combined(method)
    facts = {
        "fingerprint": text.fingerprint,
        "rows": len(text.train),
        "documents": text.documents,
        "sentences": text.sentences,
    }

    def held_out() -> dict[str, Tensor]:
        rows = torch.from_numpy(held.astype(np.int64)).to(accelerator.device)
        torch.manual_seed(0)
        parts = [Batch({"rows": PackedRows(part)}, len(part), 0) for part in rows.split(settings.batch_size)]
        with accelerator.autocast():
            return {"token_losses": torch.cat([method.represent(part)["token_losses"] for part in parts])}

    return Task(combined, PackedFeed(text, loop, accelerator), facts, held, held_out)


def paired_task(
    sources: Sequence[str | Path],
    encoder: Encoder,
    settings: PretrainSettings,
    method_class: type[SentencePairs[Any]],
    accelerator: Accelerator,
) -> Task:
    """Pairs of segments of documents, drawn at random for every step. The method is the one that ``train`` has."""
    corpus, loop = open_documents(sources, encoder.text_tokenizer), settings.loop()
    masks = issubclass(method_class, MaskedLanguage)
    shares = {name: getattr(settings, name) for name in ("mask_rate", "keep", "replace")} if masks else {}
    torch.manual_seed(keyed_seed("heads", settings.seed))  # the head is drawn
    task = method_class(method_class.Settings(**shares), encoder, settings.length, corpus)
    rows = task.prepared.select(np.arange(len(corpus)))
    train, held = _apart(corpus, rows, files_of_documents(sources))
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
        size = min(settings.batch_size, len(np.unique(corpus.keys[held])))  # a batch holds no sentence twice
        return represent_held_out(combined, corpus, held, size, settings.seed)

    return Task(combined, CorpusFeed(combined, corpus, train, loop, accelerator), facts, held, held_out)


def _apart(corpus: Corpus, rows: Rows, files: npt.NDArray[np.int64]) -> tuple[Rows, Rows]:
    """(rows to train on, held-out rows): whole documents of every file; only those with a usable row are drawn."""
    usable, of_row = np.unique(corpus.documents[rows], return_inverse=True)
    aside = held_documents(files[usable])[of_row]
    held = rows[aside]
    return rows[~aside], held[sample_rows(len(held), HELD_ROWS)]


def _language(encoder: Encoder, settings: PretrainSettings) -> MaskedLanguage[Any]:
    method = language_task()
    chosen = method.Settings(mask_rate=settings.mask_rate, keep=settings.keep, replace=settings.replace)  # type: ignore[call-arg]
    assert isinstance(chosen, MaskingSettings)
    return method(chosen, encoder, settings.length)


def _check_rows(found: int, what: str, settings: PretrainSettings, accelerator: Accelerator) -> None:
    if found < settings.batch_size:
        raise InputError(
            f"The text gives {found:,} {what}, fewer than batch_size ({settings.batch_size}); bring more text."
        )
    if settings.batch_size % accelerator.num_processes:
        raise InputError(f"batch_size {settings.batch_size} cannot be shared by {accelerator.num_processes} processes.")
