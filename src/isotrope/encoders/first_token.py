"""Whether a model has a first token that stands for the text, which cls pooling reads.

BERT's [CLS] and RoBERTa's <s> are such tokens: special, in front of every text, and they see all of it. GPT-2 and T5
put nothing in front, so their first token is a word. A decoder's first token sees nothing but itself, so every text
would get one vector. Both are refused here; mean and lasttoken suit such models.
"""

from __future__ import annotations

from typing import Any

from isotrope.encoders.causal import sees_only_the_past
from isotrope.encoders.pooling import Pooling
from isotrope.errors import InputError
from isotrope.tokens.text_tokenizer import TextTokenizer


def check_first_token(pooling: Pooling, backbone: Any, tokenizer: TextTokenizer) -> None:
    """Refuse a pooling that reads the first token where that says nothing about the text."""
    reason = lacks_first_token(backbone, tokenizer) if "cls" in pooling.modes else ""
    if reason:
        raise InputError(
            f"The pooling '{pooling.name}' reads a special first token such as [CLS], and {reason}; take mean, or "
            "lasttoken where the model reads from left to right."
        )


def lacks_first_token(backbone: Any, tokenizer: TextTokenizer) -> str:
    """Why the first token does not stand for the text; empty where it does."""
    if not tokenizer.prefix:
        return "this model's tokenizer puts none before a text"
    if _causal(backbone, tokenizer):
        return "this model's sees no other token, so every text would get the same vector"
    return ""


def _causal(backbone: Any, tokenizer: TextTokenizer) -> bool:
    """By the config, or, where the tokenizer names no [CLS] (Llama's <s> only opens a text), by trying it."""
    if getattr(backbone.config, "is_decoder", False):
        return True
    return tokenizer.tokenizer.cls_token_id is None and sees_only_the_past(backbone)
