"""The sigmoid cousins of the one equation: tell the true partner from noise, each candidate by its own yes or no."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from isotrope.errors import InputError
from isotrope.objectives.vectors import check_shapes, check_temperature, mean, wide


def negative_sampling(anchor: Tensor, positive: Tensor, negatives: Tensor, temperature: float | Tensor = 1.0) -> Tensor:
    """word2vec's loss: yes to the true partner, no to each of the k drawn ones.

        ℓ_i = −log σ(a_i·p_i/τ) − Σ_j log σ(−a_i·n_ij/τ)

    ``negatives`` [N, k, d]; their terms are summed, so the loss grows with k. Raw dot products. At the optimum a score
    is PMI − log k, not a log probability: for that see ``nce``.
    """
    return _tell_apart(_scores(anchor, positive, negatives, temperature))


def nce(
    anchor: Tensor, positive: Tensor, negatives: Tensor, log_noise: Tensor | float, temperature: float | Tensor = 1.0
) -> Tensor:
    """Noise-contrastive estimation: negative sampling with the density q of the noise taken out of each score.

        ℓ_i = −log σ(Δ(p_i)) − Σ_j log σ(−Δ(n_ij)),   Δ(x) = a_i·x/τ − log(k·q(x))

    ``log_noise`` is log q(x) without the k: [N, 1 + k], the positive's first, or anything that broadcasts to it, such
    as −log V for uniform noise over V candidates. It must be the q that the negatives were drawn from. At the optimum a
    score is log p(x | a).
    """
    scores = _scores(anchor, positive, negatives, temperature)
    drawn = negatives.shape[1]
    if drawn == 0:
        raise InputError("nce needs at least one negative a row; negatives has none.")
    log_noise = torch.as_tensor(log_noise, dtype=scores.dtype, device=scores.device)
    try:
        log_noise = log_noise.broadcast_to(scores.shape)
    except RuntimeError:
        raise InputError(
            f"log_noise must be [N, 1 + k] = {list(scores.shape)}, the positive's column first; {list(log_noise.shape)} was given."
        ) from None
    return _tell_apart(scores - log_noise - math.log(drawn))


def windowed_sampling(
    anchors: Tensor, partners: Tensor, noise: Tensor, pairs: Tensor, other: Tensor, negatives: int
) -> Tensor:
    """Negative sampling over all pairs of words within each text; the noise is drawn for the text and shared by its
    pairs.

        ℓ_b = − Σ_ij P_bij [ log σ(a_i·p_j) + (k/K) Σ_n O_bjn log σ(−a_i·z_n) ]

    ``anchors`` and ``partners`` [texts, words, d], ``noise`` z [texts, K, d]. ``pairs`` P [texts, words, words] says
    how much a pair counts; ``other`` O [texts, words, K] is 0 where noise word n is partner j itself. Each pair counts
    ``negatives`` k noise words in the mean. The result [texts] is a sum over pairs.
    """
    check_shapes(
        anchors=(anchors, "B W d"), partners=(partners, "B W d"), noise=(noise, "B K d"), pairs=(pairs, "B W W")
    )
    real = wide(wide(anchors) @ wide(partners).transpose(1, 2))  # [texts, words, words]
    drawn = wide(wide(anchors) @ wide(noise).transpose(1, 2))  # [texts, words, K]
    pairs = pairs.to(real.dtype)
    against = wide(pairs @ other.to(real.dtype)) * (negatives / noise.shape[1])
    return -((pairs * logsigmoid(real)).sum(dim=(1, 2)) + (against * logsigmoid(-drawn)).sum(dim=(1, 2)))


def _scores(anchor: Tensor, positive: Tensor, negatives: Tensor, temperature: float | Tensor) -> Tensor:
    """[N, 1 + k], the positive first."""
    check_temperature(temperature)
    check_shapes(anchor=(anchor, "N d"), positive=(positive, "N d"), negatives=(negatives, "N k d"))
    candidates = torch.cat([wide(positive).unsqueeze(1), wide(negatives)], dim=1)
    return (candidates @ wide(anchor).unsqueeze(2)).squeeze(2) / temperature


def _tell_apart(scores: Tensor) -> Tensor:
    return mean(-logsigmoid(scores[:, 0]) - logsigmoid(-scores[:, 1:]).sum(dim=1))
