"""Replaced-token detection (Clark et al. 2020): was this token put there by the generator?"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from isotrope.objectives.vectors import check_shapes, wide


def sample_tokens(scores: Tensor, dice: Tensor, temperature: float = 1.0) -> Tensor:
    """One token a row from softmax(scores/T), by the throw that is given: the first token at which the summed
    probability passes it.

    ``scores`` [n, vocabulary], ``dice`` [n] in [0, 1). The same dice give the same tokens however the rows are cut into
    batches, which noise drawn on the spot would not. T → 0 gives the most likely token.
    """
    check_shapes(scores=(scores, "n V"), dice=(dice, "n"))
    if temperature == 0:
        return scores.argmax(dim=-1)
    summed = torch.softmax(wide(scores) / temperature, dim=-1).cumsum(dim=-1)
    thrown = dice.to(summed.dtype) * summed[:, -1]  # rounding may leave the last sum a little off 1
    return torch.searchsorted(summed, thrown.unsqueeze(1), right=True).squeeze(1).clamp(max=scores.shape[1] - 1)


def detection_losses(scores: Tensor, replaced: Tensor, valid: Tensor) -> Tensor:
    """BCE(score_t, 1[token t was replaced]) of each token [b, n]; 0 where none stands.

    The loss is their sum over the number of tokens that stand, special ones too.
    """
    check_shapes(scores=(scores, "b n"), replaced=(replaced, "b n"), valid=(valid, "b n"))
    scores = wide(scores)
    losses = binary_cross_entropy_with_logits(scores, replaced.to(scores.dtype), reduction="none")
    return losses.masked_fill(~valid, 0.0)
