"""Targets of a decoder: it predicts each token from those before it (teacher forcing)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.edits import Ids
from isotrope.views.masking import Masked


@dataclass(frozen=True)
class Target:
    """``wanted[t]`` is predicted after ``shown[: t + 1]``; ``place`` is the position of the first token shown."""

    shown: list[int]
    wanted: list[int]
    place: int = 0


def begin_of(tokenizer: TextTokenizer) -> int:
    """The token that a target begins with: the one that begins a text, [CLS]."""
    return (tokenizer.prefix or tokenizer.suffix or [tokenizer.pad])[0]


def whole(ids: Ids, tokenizer: TextTokenizer) -> Target:
    """A text and the token that ends it, [SEP], from its beginning on."""
    wanted = [*ids.tolist(), *tokenizer.suffix[:1]]
    return Target([begin_of(tokenizer), *wanted][: len(wanted)], wanted)


def nothing(tokenizer: TextTokenizer) -> Target:
    """The target of a row from which nothing is predicted."""
    return Target([begin_of(tokenizer)], [-100])


def frame_targets(targets: Sequence[Target], tokenizer: TextTokenizer) -> Masked:
    """What is shown as padded rows, with what is wanted as labels."""
    tokens = tokenizer.padded([target.shown for target in targets])
    labels = np.full(tuple(tokens.ids.shape), -100, dtype=np.int64)
    labels[tokens.mask.numpy() > 0] = [number for target in targets for number in target.wanted]
    return Masked.of(tokens, torch.from_numpy(labels))
