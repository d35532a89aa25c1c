"""The language head of a Hugging Face model, masked or causal, applied to chosen states instead of all of them.

Scores of the whole vocabulary at every token are the largest tensor of a step; only the masked 15 % are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from isotrope.encoders.speed import speed_now
from isotrope.errors import InputError

NEW_HEAD = "head_is_new"  # attribute of a model whose head was drawn at random when it was loaded


class MissingHeadError(InputError):
    """The masked-language head was asked for, and the model cannot have one."""


class NewHeadWarning(UserWarning):
    """The masked-language head was asked for, and the folder holds none: it is drawn at random."""


def vocabulary_scores(model: Any) -> tuple[Callable[[Tensor], Tensor], nn.Module]:
    """(states [n, d] → scores [n, vocabulary], the head's own modules) of a model with a language head."""
    for name in ("cls", "lm_head", "predictions"):  # BERT, RoBERTa and GPT-2, ALBERT, and their kin
        head = getattr(model, name, None)
        if isinstance(head, nn.Module):
            return head, head
    if hasattr(model, "generator_predictions"):  # ELECTRA
        parts = nn.ModuleList([model.generator_predictions, model.generator_lm_head])
        return lambda states: model.generator_lm_head(model.generator_predictions(states)), parts
    if hasattr(model, "lm_predictions"):  # DeBERTa-v2 and v3, as they were pre-trained
        head, table = model.lm_predictions.lm_head, model.get_input_embeddings()
        return lambda states: head(states, table), head
    if hasattr(model, "head") and hasattr(model, "decoder"):  # ModernBERT
        return lambda states: model.decoder(model.head(states)), nn.ModuleList([model.head, model.decoder])
    if hasattr(model, "vocab_transform"):  # DistilBERT
        parts = nn.ModuleList([model.vocab_transform, model.vocab_layer_norm, model.vocab_projector])
        return lambda s: model.vocab_projector(
            model.vocab_layer_norm(model.activation(model.vocab_transform(s)))
        ), parts
    raise InputError(f"A {type(model).__name__} has no language head that isotrope knows.")


def answer_losses(scores: Callable[[Tensor], Tensor], states: Tensor, answers: Tensor) -> Tensor:
    """−log p of each answer, from the states [n, d] in front of the head.

    Where a run is compiled, this is one graph for any n: the scores stay in half precision, and no other tensor has
    their size but their gradient.
    """
    if not (speed_now().compiled and states.is_cuda and torch.is_grad_enabled()):
        return _answer_losses(scores, states, answers)
    for tensor in (states, answers):
        torch._dynamo.maybe_mark_dynamic(tensor, 0)
    return _compiled_losses()(scores, states, answers)


def _answer_losses(scores: Callable[[Tensor], Tensor], states: Tensor, answers: Tensor) -> Tensor:
    return cross_entropy(scores(states).float(), answers, reduction="none")


@cache
def _compiled_losses() -> Callable[..., Tensor]:
    return torch.compile(_answer_losses, dynamic=False)
