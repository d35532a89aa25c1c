"""The sigmoid cousins of the one equation: each candidate is classified on its own as true partner or noise."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from isotrope.errors import InputError
from isotrope.objectives.vectors import check_shapes, check_temperature, mean, wide


def negative_sampling(anchor: Tensor, positive: Tensor, negatives: Tensor, temperature: float | Tensor = 1.0) -> Tensor:
    """word2vec's loss: the true partner is classified as true, each of the k drawn ones as noise.

        ℓ_i = −log σ(a_i·p_i/τ) − Σ_j log σ(−a_i·n_ij/τ)

    ``negatives`` [N, k, d]; their terms are summed, so the loss grows with k.

    Use it over large vocabularies, where a softmax over all candidates is too dear. Scores are raw dot products. At the
    optimum a score is PMI − log k, not a log probability: for that see ``nce``.
    """
    return _classify(_scores(anchor, positive, negatives, temperature))


def nce(
    anchor: Tensor, positive: Tensor, negatives: Tensor, log_noise: Tensor | float, temperature: float | Tensor = 1.0
) -> Tensor:
    """Noise-contrastive estimation: negative sampling with the density q of the noise taken out of each score.

        ℓ_i = −log σ(Δ(p_i)) − Σ_j log σ(−Δ(n_ij)),   Δ(x) = a_i·x/τ − log(k·q(x))

    ``log_noise`` is log q(x) without the k: [N, 1 + k], the positive's first, or anything that broadcasts to it, such
    as −log V for uniform noise over V candidates.

    Use it where scores must be log probabilities: at the optimum a score is log p(x | a). ``log_noise`` must be the q
    that the negatives were drawn from. ``negative_sampling`` leaves q out and learns PMI instead.
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
            f"log_noise must be [N, 1 + k] = {list(scores.shape)}, the positive's column first; "
            f"{list(log_noise.shape)} was given."
        ) from None
    return _classify(scores - log_noise - math.log(drawn))


def windowed_sampling(
    anchors: Tensor, partners: Tensor, noise: Tensor, pairs: Tensor, other: Tensor, negatives: int
) -> Tensor:
    """Negative sampling over all pairs of words within each text; the pairs of a text share its noise.

        ℓ_b = − Σ_ij P_bij [ log σ(a_i·p_j) + (k/K) Σ_n O_bjn log σ(−a_i·z_n) ]

    ``anchors`` and ``partners`` [texts, words, d], ``noise`` z [texts, K, d]. ``pairs`` P [texts, words, words] says
    how much a pair counts; ``other`` O [texts, words, K] is 0 where noise word n is partner j itself. Each pair counts
    ``negatives`` k noise words in the mean. The result [texts] is a sum over pairs.

    Use it to train word vectors on whole texts at once: two matrix products replace k draws for each pair. The pairs of
    a text see the same noise, so few noise words make its gradient noisier than that of ``negative_sampling``.
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


def _classify(scores: Tensor) -> Tensor:
    return mean(-logsigmoid(scores[:, 0]) - logsigmoid(-scores[:, 1:]).sum(dim=1))
