"""How alike the tokens of one sentence are, layer by layer (Su et al. 2022; Ethayarajh 2019)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from isotrope.encoders.encoder import Encoder, plan
from isotrope.encoders.roles import evaluating
from isotrope.errors import InputError


def cosines_of_pairs(states: Tensor, mask: Tensor) -> tuple[float, int]:
    """The sum of cos over unordered pairs of different tokens of one sentence, and how many pairs there are.

        Σ_{i<j} cos(h_i, h_j) = (‖Σ_i u_i‖² − n) / 2        u: unit vectors

    ``states`` [rows, width, d], ``mask`` [rows, width], 1 where a token stands.
    """
    units = torch.nn.functional.normalize(states.double(), dim=-1) * mask.unsqueeze(-1)
    counts = mask.sum(1).double()
    return float((units.sum(1).square().sum(1) - counts).sum() / 2), int((counts * (counts - 1)).sum() / 2)


def self_similarity(encoder: Encoder, texts: Sequence[str], tokens_at_once: int = 4096) -> list[float]:
    """Mean cosine of two different tokens of a sentence in each layer, the first layer first, the embeddings left out.

    Every pair counts once, so long sentences count more; [CLS] and [SEP] are tokens too. This is the measure of TaCL's released code.
    """
    if not texts:
        raise InputError("self_similarity needs at least one text.")
    whole = encoder.tokenise(list(texts))
    sums, pairs = np.zeros(int(encoder.backbone.config.num_hidden_layers)), 0
    with evaluating(encoder):
        for rows in plan(whole.lengths, tokens_at_once):
            tokens = whole.rows(rows).to(encoder.device)
            found = [cosines_of_pairs(states, tokens.mask) for states in encoder.layers(tokens)[1:]]
            sums += [total for total, _ in found]
            pairs += found[0][1]
    if not pairs:
        raise InputError("self_similarity needs a text of at least two tokens.")
    return [float(value) for value in sums / pairs]
