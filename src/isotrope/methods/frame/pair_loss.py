"""The choice of loss over pairs: who is compared is the method's, how is a setting (SimCLR, table 4).

    info-nce            −log exp(s⁺) / Σ_c exp(s_c), the one equation; the papers' own
    nce                 −log σ(Δ(s⁺)) − Σ_j log σ(−Δ(s_j)), Δ(s) = s − log(k·q)
    negative-sampling   −log σ(s⁺) − Σ_j log σ(−s_j); SimCLR calls it NT-Logistic
    triplet             max(0, D⁺ − D⁻ + margin)

s is a cosine divided by the temperature, except in the triplet loss, which has no temperature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.methods.frame.settings import Draws, OneOf, Settings, Weight
from isotrope.objectives import info_nce, mined_negatives, nce, negative_sampling, nt_xent, pooled_triplets, queue_nce
from isotrope.objectives.vectors import unit

INFO_NCE, NCE, SAMPLING, TRIPLET = "info-nce", "nce", "negative-sampling", "triplet"
ALL = "all"


@dataclass(frozen=True)
class PairLossSettings(Settings):
    """The papers' loss is info-nce; the others are for comparison with it."""

    loss: Annotated[str, OneOf(INFO_NCE, NCE, SAMPLING, TRIPLET), "Loss over an anchor and its candidates"] = INFO_NCE
    negatives: Annotated[Draws, "nce, negative-sampling: negatives that are drawn for each anchor"] = 16
    mining: Annotated[
        str,
        OneOf(ALL, "hard", "semi-hard"),
        "triplet, negative-sampling: negatives that count: all (negative-sampling: those drawn), the nearest, or the "
        "nearest that is farther than the positive by less than the margin",
    ] = ALL
    margin: Annotated[Weight, "triplet: how much farther a negative must be than the positive"] = 0.2
    distance: Annotated[
        str, OneOf("euclidean", "cosine", "dot"), "triplet and mining: what distances are; dot: −a·b"
    ] = "cosine"

    def rules(self) -> None:
        super().rules()
        if self.loss == NCE and self.mining != ALL:
            raise InputError(
                f"nce must know the noise that negatives are drawn from; mining {self.mining} chooses them. "
                f"Leave mining at {ALL}, or take negative-sampling."
            )
        if self.loss == TRIPLET and self.distance == "cosine" and self.margin >= 2:
            raise InputError(f"A cosine distance is at most 2, so margin must be below 2; {self.margin} was given.")
        if self.loss in (SAMPLING, TRIPLET) and self.mining == "semi-hard" and self.margin == 0:
            raise InputError("mining semi-hard looks for negatives within the margin, so margin must be above 0.")


@dataclass(frozen=True)
class Candidates:
    """``positive`` [A]: the number of each anchor's own candidate; ``negatives`` [A, C]: which are its negatives."""

    anchors: Tensor
    candidates: Tensor
    positive: Tensor
    negatives: Tensor

    def drawn(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Anchors that have negatives, and ``count`` of these for each [A', count]: drawn with repetition, alike in
        every process."""
        ranks = self.negatives.cumsum(dim=1, dtype=torch.int32)  # the number of a negative among the anchor's own
        last = ranks[:, -1:]
        dice = torch.rand(len(ranks), count, generator=generator).to(ranks.device)
        (having,) = (last.squeeze(1) > 0).nonzero(as_tuple=True)
        return having, torch.searchsorted(ranks, ((dice * last).to(torch.int32) + 1).minimum(last))[having]


class Pairs(Protocol):
    """Who is compared with whom."""

    def info_nce(self, temperature: float | Tensor) -> Tensor: ...
    def candidates(self) -> Candidates: ...


@dataclass(frozen=True)
class OneWay:
    """First views are anchors, all second views their candidates (SimCSE)."""

    first: Tensor
    second: Tensor

    def info_nce(self, temperature: float | Tensor) -> Tensor:
        return info_nce(self.first, self.second, temperature)

    def candidates(self) -> Candidates:
        own = torch.eye(len(self.first), dtype=torch.bool, device=self.first.device)
        return Candidates(self.first, self.second, torch.arange(len(own), device=own.device), ~own)


@dataclass(frozen=True)
class AllViews:
    """Every view is an anchor, and all others are its candidates (SimCLR)."""

    first: Tensor
    second: Tensor

    def info_nce(self, temperature: float | Tensor) -> Tensor:
        return nt_xent(self.first, self.second, temperature)

    def candidates(self) -> Candidates:
        views = torch.cat([self.first, self.second])
        itself = torch.eye(len(views), dtype=torch.bool, device=views.device)
        positive = torch.arange(len(views), device=views.device).roll(len(self.first))
        return Candidates(views, views, positive, ~itself & ~itself.roll(len(self.first), dims=1))


@dataclass(frozen=True)
class Pooled:
    """A query's own key, and a pool that all queries share (MoCo); ``left_out`` [N, K]: keys that are no candidates.

    What a pool stores has unit length, so every distance is taken at unit length.
    """

    queries: Tensor
    keys: Tensor
    pool: Tensor
    left_out: Tensor | None = None

    def info_nce(self, temperature: float | Tensor) -> Tensor:
        return queue_nce(self.queries, self.keys, self.pool, temperature, self.left_out)

    def candidates(self) -> Candidates:
        count, device = len(self.keys), self.keys.device
        others = torch.ones(count, len(self.pool), dtype=torch.bool, device=device)
        if self.left_out is not None:
            others = ~self.left_out
        negatives = torch.cat([others.new_zeros(count, count), others], dim=1)
        candidates = unit(torch.cat([self.keys, self.pool]))
        return Candidates(unit(self.queries), candidates, torch.arange(count, device=device), negatives)


def pair_loss(
    settings: PairLossSettings, pairs: Pairs, temperature: float | Tensor, generator: torch.Generator
) -> dict[str, Tensor]:
    """For ``loss``: one term, by the name "contrastive" where it is info-nce and bounds what the views share."""
    if settings.loss == INFO_NCE:
        return {"contrastive": pairs.info_nce(temperature)}
    who = pairs.candidates()
    if settings.loss == TRIPLET:
        mining = f"batch-{settings.mining}"
        parts = who.anchors, who.candidates, who.positive, who.negatives
        return {"triplet": pooled_triplets(*parts, mining, settings.margin, settings.distance)}
    if settings.loss == NCE:
        return {"nce": _nce(who, settings.negatives, temperature, generator)}
    return {"negative_sampling": _negative_sampling(settings, who, temperature, generator)}


def _nce(who: Candidates, count: int, temperature: float | Tensor, generator: torch.Generator) -> Tensor:
    """The noise is uniform over an anchor's negatives, so log q is minus the logarithm of their number."""
    anchors, candidates = unit(who.anchors), unit(who.candidates)
    a, n = who.drawn(count, generator)
    log_noise = -who.negatives.sum(dim=1, keepdim=True)[a].log()
    return nce(anchors[a], candidates[who.positive[a]], candidates[n], log_noise, temperature)


def _negative_sampling(
    settings: PairLossSettings, who: Candidates, temperature: float | Tensor, generator: torch.Generator
) -> Tensor:
    anchors, candidates = unit(who.anchors), unit(who.candidates)
    if settings.mining == ALL:
        a, n = who.drawn(settings.negatives, generator)
    else:
        mining, parts = f"batch-{settings.mining}", (who.anchors, who.candidates, who.positive, who.negatives)
        a, n = mined_negatives(*parts, mining, settings.margin, settings.distance)
        n = n.unsqueeze(1)
    return negative_sampling(anchors[a], candidates[who.positive[a]], candidates[n], temperature)


def check_temperature_is_used(settings: PairLossSettings, learned: bool) -> None:
    """For ``Settings.rules`` of a method whose temperature may be learned."""
    if learned and settings.loss == TRIPLET:
        raise InputError("The triplet loss has no temperature, so none can be learned; leave learn_temperature out.")
