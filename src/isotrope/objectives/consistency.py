"""Two distributions over the same candidates must agree."""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import logsigmoid

from isotrope.objectives.vectors import check_shapes, check_temperature, mean, unit, wide


def jensen_shannon(first: Tensor, second: Tensor) -> Tensor:
    """The divergence of Jensen and Shannon between two softmaxes, in nats: 0 where they are equal, at most log 2.

        JS(P‖Q) = ½ KL(P‖M) + ½ KL(Q‖M),   M = ½(P + Q),   P = softmax(first),   Q = softmax(second)

    ``first`` and ``second`` [N, L]: scores of N rows, divided by their temperature. It is symmetric, and no logarithm
    is cut off: P/M = 2/(1 + Q/P) needs the ratio of P and Q alone.
    """
    check_shapes(first=(first, "N L"), second=(second, "N L"))
    log_p, log_q = wide(first).log_softmax(dim=-1), wide(second).log_softmax(dim=-1)
    p_to_mixture = math.log(2) + logsigmoid(log_p - log_q)
    q_to_mixture = math.log(2) + logsigmoid(log_q - log_p)
    return mean((log_p.exp() * p_to_mixture + log_q.exp() * q_to_mixture).sum(dim=-1) / 2)


def ranking_consistency(first: Tensor, second: Tensor, temperature: float | Tensor = 0.05) -> Tensor:
    """Two views of a text must rank the batch alike.

        ℓ_i = JS(P_i‖Q_i),   P_i = softmax_j(cos(h_i, h'_j)/τ),   Q_i = softmax_j(cos(h'_i, h_j)/τ)

    ``first`` h and ``second`` h' [N, d]. Use it next to ``info_nce``, whose −log P_ii it does not replace: where all
    vectors are equal it is 0. The lower the temperature, the more it says about the nearest candidates alone.
    """
    check_temperature(temperature)
    check_shapes(first=(first, "N d"), second=(second, "N d"))
    scores = unit(first) @ unit(second).T / temperature
    return jensen_shannon(scores, scores.T)
