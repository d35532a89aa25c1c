"""Replaced-token detection (ELECTRA; Clark et al. 2020): did the generator put this token there?"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from isotrope.objectives.vectors import check_shapes, wide


def sample_tokens(scores: Tensor, dice: Tensor, temperature: float = 1.0) -> Tensor:
    """One token for each row from softmax(scores/T): the first at which the cumulative probability passes the row's
    number in ``dice``.

    ``scores`` [n, vocabulary], ``dice`` [n] in [0, 1). The same dice give the same tokens however the rows are cut into
    batches, which noise drawn on the spot would not. T = 0 gives the most likely token.
    """
    check_shapes(scores=(scores, "n V"), dice=(dice, "n"))
    if temperature == 0:
        return scores.argmax(dim=-1)
    summed = torch.softmax(wide(scores) / temperature, dim=-1).cumsum(dim=-1)
    thrown = dice.to(summed.dtype) * summed[:, -1]  # rounding may leave the last sum a little off 1
    return torch.searchsorted(summed, thrown.unsqueeze(1), right=True).squeeze(1).clamp(max=scores.shape[1] - 1)


def detection_losses(scores: Tensor, replaced: Tensor, valid: Tensor) -> Tensor:
    """The binary cross-entropy of each token [b, n]; 0 at padding.

        ℓ_t = BCE(score_t, 1[token t was replaced])

    Use it as a token-level auxiliary loss: every position gives a signal, not only the masked ones of MLM. The loss is
    the sum over the number of tokens, special ones too. A generator that is too good leaves nothing to detect: then all
    labels are 0.
    """
    check_shapes(scores=(scores, "b n"), replaced=(replaced, "b n"), valid=(valid, "b n"))
    scores = wide(scores)
    losses = binary_cross_entropy_with_logits(scores, replaced.to(scores.dtype), reduction="none")
    return losses.masked_fill(~valid, 0.0)
