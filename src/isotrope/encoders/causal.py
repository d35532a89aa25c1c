"""A causal mask for a backbone trained without one: a token sees itself and the tokens before it.

    h_t = f(x_1 … x_t)

Use it to train a bidirectional encoder as a causal language model. Its vectors change at once, so train it afterwards;
mean and lasttoken suit it, cls does not (the first token sees nothing else).
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch

from isotrope.encoders.modes import evaluating
from isotrope.errors import InputError

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder


def make_causal(encoder: Encoder) -> None:
    """Make the backbone causal from now on, also after it is saved: config.json then says ``is_decoder``.

    A backbone that would be causal here, but not for another reader of its folder, is refused.
    """
    backbone = encoder.backbone
    for model in filter(None, (backbone, encoder.language_model)):
        _turn(model)
    if not (sees_only_the_past(backbone) and sees_only_the_past(_as_others_build_it(backbone))):
        raise InputError(
            f"A {type(backbone).__name__} has no causal form; take a BERT or RoBERTa, such as builtin-base."
        )


def _turn(model: Any) -> None:
    """Set the config and the attention layers, which copied their form from the config when they were built."""
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
    """Whether another last token leaves the states before it unchanged; tried with padding and without."""
    vocabulary = int(backbone.config.vocab_size)
    ids = torch.full((2, 6), vocabulary - 1, device=backbone.device)  # the end of a vocabulary holds ordinary tokens
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
