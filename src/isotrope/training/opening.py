"""Open what a plan names: the encoder that training starts from, the corpus in its tokens; whether max_length fits."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from isotrope.data.corpus import Corpus, open_corpus
from isotrope.data.image_sources import is_image_source
from isotrope.data.random_streams import keyed_seed
from isotrope.data.sources import find_records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.language_head import MissingHeadError, NewHeadWarning
from isotrope.encoders.loading import load
from isotrope.encoders.onnx_encoder import OnnxEncoder
from isotrope.encoders.read_out import ReadOut, with_read_out
from isotrope.errors import InputError
from isotrope.methods.frame.from_scratch import FromScratch
from isotrope.training.image_opening import check_reads_text, open_image_plan
from isotrope.training.plan import DEFAULT_MODEL, Plan

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True)
class Opened:
    """``read_out`` says how the encoder is pooled, and why."""

    encoder: Encoder
    corpus: Corpus
    read_out: ReadOut


def open_plan(plan: Plan, accelerator: Accelerator) -> Opened:
    """The first process tokenizes, or decodes; the others find the cache."""
    if is_image_source(plan.data):
        return Opened(*open_image_plan(plan, accelerator, DEFAULT_MODEL))
    encoder, read_out = open_encoder(plan, accelerator)
    with accelerator.main_process_first():
        corpus = open_like(plan, plan.data, plan.method.record_types(plan.settings), encoder)
    return Opened(encoder, corpus, read_out)


def open_encoder(plan: Plan, accelerator: Accelerator) -> tuple[Encoder, ReadOut]:
    """The encoder that training starts from, under the read-out that it is trained with."""
    start, card = open_start(plan, accelerator), plan.method.card
    check_reads_text(start)
    if isinstance(start, OnnxEncoder):
        raise InputError(f"{plan.model} is an export and cannot be trained; train the model that it was made of.")
    if plan.from_scratch:
        return start, ReadOut(start.pooling.name, "the encoder is made from the data")
    return with_read_out(start, plan.pooling, card.read_out, card.name)


def open_like(plan: Plan, data: Any, record_types: Sequence[str], encoder: Encoder) -> Corpus:
    """A file read as the training data are."""
    return open_corpus(data, record_types, encoder.text_tokenizer, plan.columns, plan.split)


def open_start(plan: Plan, accelerator: Accelerator) -> Encoder:
    """The encoder that training starts from, as it was; a head that it lacks is drawn by the run's seed."""
    if issubclass(plan.method, FromScratch):
        record_types = plan.method.record_types(plan.settings)
        records = find_records(plan.data, record_types, plan.columns, plan.split).records
        return plan.method.initialise(plan.settings, records, plan.loop.seed).to(accelerator.device)
    if isinstance(plan.model, Encoder):
        return copy.deepcopy(plan.model).to(accelerator.device)  # the caller's encoder stays as it is
    torch.manual_seed(keyed_seed("missing head", plan.loop.seed))
    return _with_head(plan, accelerator) if plan.unasked_head else _loaded(plan, accelerator)


def _loaded(plan: Plan, accelerator: Accelerator) -> Encoder:
    assert not isinstance(plan.model, Encoder)
    return load(plan.model, plan.pooling, accelerator.device, plan.language_head)


def _with_head(plan: Plan, accelerator: Accelerator) -> Encoder:
    """Where only the method's defaults want the head, a model without one is refused: a random head would spoil it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", NewHeadWarning)
            return _loaded(plan, accelerator)
    except (NewHeadWarning, MissingHeadError) as missing:
        names = " and ".join(plan.unasked_head)
        raise InputError(
            f"{plan.name} has masked language modelling among its terms ({names}), and {plan.model} holds no "
            f"masked-language head; start from a model that has one, such as builtin-base, or set {names} 0."
        ) from missing


def check_length(encoder: Encoder, max_length: int) -> None:
    """Refuse a length that special tokens and prompt fill alone: every text would be the same."""
    frame = _frame(encoder)
    if max_length <= frame:
        raise InputError(
            f"max_length must be at least {frame + 1}: the model frames a text with {frame} tokens, and one of its own "
            f"must fit; {max_length} was given."
        )


def length_remarks(encoder: Encoder, corpus: Corpus, max_length: int) -> list[str]:
    """Sentences on a length beyond the model's positions, and on the texts that are cut."""
    found, reads = [], min(max_length, encoder.max_length)
    if max_length > reads:
        found.append(f"max_length {max_length:,} is more than the model reads; texts are cut at {reads:,} tokens.")
    longer, texts = corpus.count_longer(reads - _frame(encoder))
    if longer:
        found.append(
            f"{longer:,} of {texts:,} texts ({longer / texts:.1%}) are longer than {reads:,} tokens "
            "and are cut; raise max_length, or split them into sentences."
        )
    return found


def _frame(encoder: Encoder) -> int:
    """Tokens of a row that are not the text's."""
    tokenizer = encoder.text_tokenizer
    return len(tokenizer.start) + len(tokenizer.prompt_ids) + len(tokenizer.suffix)
