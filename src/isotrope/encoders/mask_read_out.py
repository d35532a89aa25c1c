"""The read-out at a mask token: a text stands in a template, and its vector is the state of the template's [MASK].

    mask            This sentence : "[X]" means [MASK].
    mask:TEMPLATE   another one, with [X] for the text

Two stock pieces hold it, so every reader of the sentence-transformers layout gives the same vectors: the template is in
the tokenizer (tokens/template.py), and the pooling is a mean in which the mask token weighs 1 and every other token 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from isotrope.encoders.parts.token_weights import TokenWeights
from isotrope.encoders.pooling import MASKED, is_masked
from isotrope.tokens.template import MASK, TEXT, Template, templated
from isotrope.tokens.text_tokenizer import TextTokenizer

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

PLAIN = f'This sentence : "{TEXT}" means {MASK}.'
# Byte pairs make one token of a quotation mark and the word at it; blanks keep them separate.
SPACED = f"This sentence : ' {TEXT} ' means {MASK}."


def at_mask(tokenizer: Any, pooling: str) -> tuple[Any, TokenWeights]:
    """The tokenizer with the template that ``pooling`` names, and the weights that leave its mask token alone."""
    framed = templated(tokenizer, template_of(tokenizer, pooling))
    weights = torch.zeros(len(framed))
    weights[int(framed.mask_token_id)] = 1.0
    return framed, TokenWeights(weights)


def template_of(tokenizer: Any, pooling: str) -> Template:
    written = pooling.removeprefix(MASKED).removeprefix(":")
    return Template.parse(written or (SPACED if TextTokenizer(tokenizer).blanks_count else PLAIN))


def is_at_mask(encoder: Encoder) -> bool:
    """Whether an encoder is read out at the mask of a template."""
    return is_masked(encoder.pooling.name)
