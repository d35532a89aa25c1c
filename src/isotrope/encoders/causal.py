"""The causal mask over a backbone that read both sides: a token sees itself and what stands before it."""

from __future__ import annotations

import copy
from typing import Any

import torch

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import evaluating
from isotrope.errors import InputError


def make_causal(encoder: Encoder) -> None:
    """From now on the backbone reads from left to right, also after it is saved: config.json says ``is_decoder``, which
    readers obey.

    A backbone that could do so here and not in the hands of another reader is refused.
    """
    backbone = encoder.backbone
    for model in filter(None, (backbone, encoder.language_model)):
        _turn(model)
    if not (sees_only_the_past(backbone) and sees_only_the_past(_as_others_build_it(backbone))):
        raise InputError(
            f"A {type(backbone).__name__} has no causal form; take a BERT or RoBERTa, such as builtin-base."
        )


def _turn(model: Any) -> None:
    """The attention layers took their form from the config when they were built, so they are told as well."""
    model.config.is_decoder, model.config.use_cache = True, False
    for part in model.modules():
        for name in ("is_decoder", "is_causal"):
            if isinstance(getattr(part, name, None), bool):
                setattr(part, name, True)


def _as_others_build_it(backbone: Any) -> Any:
    """A new backbone of the same config, with one layer and random weights."""
    config = copy.deepcopy(backbone.config)
    config.num_hidden_layers = 1
    with torch.random.fork_rng(devices=[]):
        return type(backbone)(config).to(backbone.device)


def sees_only_the_past(backbone: Any) -> bool:
    """Tried out, with padding and without: does another last token leave the states before it as they were?"""
    vocabulary = int(backbone.config.vocab_size)
    ids = torch.full((2, 6), vocabulary - 1, device=backbone.device)  # the last of a vocabulary is no special token
    ids[1, 3] = vocabulary - 2
    for length in (4, 6):
        mask = (torch.arange(6, device=ids.device) < length).long().expand_as(ids)
        with evaluating(backbone):
            states = backbone(input_ids=ids, attention_mask=mask).last_hidden_state
        if not torch.allclose(states[0, :3], states[1, :3], atol=1e-5) or torch.allclose(
            states[0, 3], states[1, 3], atol=1e-5
        ):
            return False
    return True
