"""The masked-language head of a Hugging Face model, applied to chosen states instead of all of them.

Scores of the whole vocabulary at every token are the largest tensor of a step; only the masked 15 % are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from isotrope.errors import InputError


class MissingHeadError(InputError):
    """The masked-language head was asked for, and the model cannot have one."""


class NewHeadWarning(UserWarning):
    """The masked-language head was asked for, and the folder holds none: it is drawn at random."""


def vocabulary_scores(model: Any) -> tuple[Callable[[Tensor], Tensor], nn.Module]:
    """(states [n, d] → scores [n, vocabulary], the head's own modules) of a model with a masked-language head."""
    for name in ("cls", "lm_head", "predictions"):  # BERT, RoBERTa, ALBERT and their kin
        head = getattr(model, name, None)
        if isinstance(head, nn.Module):
            return head, head
    if hasattr(model, "head") and hasattr(model, "decoder"):  # ModernBERT
        return lambda states: model.decoder(model.head(states)), nn.ModuleList([model.head, model.decoder])
    if hasattr(model, "vocab_transform"):  # DistilBERT
        parts = nn.ModuleList([model.vocab_transform, model.vocab_layer_norm, model.vocab_projector])
        return lambda s: model.vocab_projector(
            model.vocab_layer_norm(model.activation(model.vocab_transform(s)))
        ), parts
    raise InputError(f"A {type(model).__name__} has no masked-language head that isotrope knows.")
