"""DCLR (Zhou, Zhang, Zhao, Wen 2022): two dropout views, noise as extra negatives, and no false negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.needed_run import AUTO, NeededRun, NeedsRun, open_needed, reads_rows_of
from isotrope.methods.frame.settings import Positive, Weight, above, at_least
from isotrope.methods.frame.temperature import temperature_of
from isotrope.methods.simcse import DropoutPair, SimCSESettings
from isotrope.objectives import debiased
from isotrope.objectives.ascent import steepest
from isotrope.towers.keeping import Frozen, Tower


@dataclass(frozen=True)
class DCLRSettings(SimCSESettings):
    """SimCSE's, and those of the noise and of the complement."""

    complement: Annotated[
        str,
        "Encoder that finds false negatives: a model folder, a hub id or builtin; "
        "auto: an unsupervised SimCSE of the same start and text, trained first and kept in the cache",
    ] = AUTO
    complement_steps: Annotated[
        int | None, at_least(1), "Updates of the complement that auto trains; none: as many as the run itself has"
    ] = None
    complement_pooling: Annotated[str | None, "Pooling of the complement; none: its own"] = None
    threshold: Annotated[
        float | None,
        above(-1, most=1),
        "Cosine φ of the complement at which two sentences are not negatives; none: all are negatives",
    ] = 0.9
    noise: Annotated[Weight, "Noise vectors k for each record of the batch"] = 1.0
    noise_spread: Annotated[Positive, "Standard deviation σ of the noise"] = 1.0
    ascent_steps: Annotated[int, at_least(0, most=10_000), "Steps that the noise climbs towards the batch"] = 4
    ascent_rate: Annotated[Weight, "Length β of such a step"] = 1e-3
    positive_in_denominator: Annotated[
        bool, "Count the positive among the candidates, as released; the formula is printed without it"
    ] = True


class DCLR(DropoutPair[DCLRSettings], NeedsRun[DCLRSettings]):
    """ℓ_i = −log φ(h_i, h'_i) / [ Σ_j w_ij φ(h_i, h'_j) + Σ_n φ(h_i, n) ],   φ(u, v) = exp(cos(u, v)/τ)

    w_ij = 0 where j ≠ i and the complement's cosine of i and j is at least the threshold, 1 elsewhere. The noise
    n ~ N(0, σ²) is shared by the batch and climbs towards its vectors: n ← n + β g/‖g‖, g = ∇_n Σ_i log Σ_n φ(h_i, n).
    The paper prints the first sum without j = i (``positive_in_denominator``).

    When to use it: plain sentences among which many are near to each other, and a second encoder that knows which. What
    goes wrong: a complement that crowds its sentences calls nearly all of them false negatives (the logged ``masked``
    is their share); at a low temperature random noise is not a hard negative. Siblings: ``simcse`` without either,
    ``vascl`` chooses its negatives among neighbours.
    """

    card = Card(
        name="dclr",
        title="DCLR, debiased contrast",
        paper="Zhou, Zhang, Zhao, Wen. Debiased Contrastive Learning of Unsupervised Sentence Representations. "
        "ACL 2022",
        year=2022,
        needs="sentences",
        family="contrastive",
        read_out="cls",
    )
    Settings = DCLRSettings

    @classmethod
    def needed_run(cls, settings: DCLRSettings) -> NeededRun | None:
        if settings.complement != AUTO or settings.threshold is None:
            return None
        return NeededRun("complement", "simcse", settings.complement_steps)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        towers = super().towers(encoder)
        if self.settings.threshold is None:
            return towers
        complement = open_needed("complement", self.settings.complement, self.settings.complement_pooling, encoder)
        self.shares_rows = reads_rows_of(encoder, complement, self.max_length)
        return {**towers, "complement": Frozen(complement)}

    @property
    def complement(self) -> Encoder:
        return self.encoder_of("complement")

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        views = super().views(records, rng)
        if "complement" not in self.tower:
            return views
        other = views["first"] if self.shares_rows else self.complement.tokenize(records.texts(), self.max_length)
        return {**views, "complement": other}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        representations = super().represent(batch)
        if "complement" in self.tower:
            with torch.no_grad():
                (representations["complement"],) = self.complement.embed(batch["complement"])
        return representations

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        first, second = representations["first"], representations["second"]
        noise = self.climb(self.draw(first, generator), first)
        weights = self.instance_weights(representations)
        masked = 1 - (weights.sum() - weights.trace()) / (len(weights) * (len(weights) - 1))
        contrast = debiased(first, second, noise, weights, temperature_of(self), self.settings.positive_in_denominator)
        return {"contrastive": contrast, "masked": masked}

    def weights(self) -> dict[str, float]:
        # The share of pairs that are not negatives is logged: at 1 nothing but noise is left.
        return {"masked": 0.0}

    def instance_weights(self, representations: dict[str, Tensor]) -> Tensor:
        """[N, N]; those on the diagonal do not matter."""
        first = representations["first"]
        threshold = self.settings.threshold
        if threshold is None:
            return first.new_ones(len(first), len(first))
        other = normalize(representations["complement"], dim=-1)
        return (other @ other.T < threshold).to(first.dtype)

    def draw(self, anchors: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.randn(self._noise_count(len(anchors)), anchors.shape[1], generator=generator)
        return self.settings.noise_spread * noise.to(anchors)

    def _noise_count(self, records: int) -> int:
        return int(self.settings.noise * records)

    def climb(self, noise: Tensor, anchors: Tensor) -> Tensor:
        """Each step moves each noise vector by β, to where the batch is densest. The anchors are constants in it."""
        directions = normalize(anchors.detach(), dim=-1) / torch.as_tensor(temperature_of(self)).detach()

        def density(vectors: Tensor) -> Tensor:
            return torch.logsumexp(directions @ normalize(vectors, dim=-1).T, dim=1).sum()

        for _ in range(self.settings.ascent_steps if len(noise) else 0):
            noise = noise + self.settings.ascent_rate * steepest(density, noise)
        return noise

    def candidates(self, representations: dict[str, Tensor]) -> int:
        count = len(representations["second"])
        return count + self._noise_count(count)
