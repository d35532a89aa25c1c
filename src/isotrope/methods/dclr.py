"""DCLR (Zhou, Zhang, Zhao, Wen 2022):

SimCSE with noise as extra negatives and without the negatives that are no negatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.methods.frame.method import Batch, View
from isotrope.methods.frame.temperature import temperature_of
from isotrope.methods.simcse import SimCSE, SimCSESettings
from isotrope.objectives import debiased
from isotrope.objectives.ascent import steepest
from isotrope.towers.keeping import Frozen, Role


@dataclass(frozen=True)
class DCLRSettings(SimCSESettings):
    """``complement`` is a model folder, a hub id or builtin. ``head`` and ``dropout`` are SimCSE's."""

    complement: str = "builtin"
    complement_pooling: str | None = None  # the complement's own where none is given
    threshold: float | None = (
        0.9  # φ: sentences that the complement finds as similar as this are no negatives; none: all are
    )
    noise: float = 1.0  # k: noise vectors for each record of the batch
    noise_spread: float = 1.0  # σ of the noise
    ascent_steps: int = 4
    ascent_rate: float = 1e-3  # β, the length of a step


class DCLR(SimCSE):
    """ℓ_i = −log φ(h_i, h'_i) / [ Σ_j w_ij φ(h_i, h'_j) + Σ_n φ(h_i, n) ],   φ(u, v) = exp(cos(u, v)/τ)

    w_ij = 0 where j ≠ i and the complement's cosine of i and j is at least the threshold, 1 elsewhere. The noise n ~
    N(0, σ²) is shared by the batch and climbs towards its vectors:  n ← n + β g/‖g‖,  g = ∇_n Σ_i log Σ_n φ(h_i, n).
    """

    name = "dclr"
    title = "DCLR, debiased contrast"
    paper = "Zhou, Zhang, Zhao, Wen. Debiased Contrastive Learning of Unsupervised Sentence Representations. ACL 2022"
    year = 2022
    Settings = DCLRSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        if settings.threshold is not None and not -1 < settings.threshold <= 1:
            raise InputError(
                f"threshold is a cosine above -1 and at most 1, or none to weigh nothing; {settings.threshold} was given."
            )
        if not 0 <= settings.noise < float("inf"):
            raise InputError(
                f"noise counts vectors for each record and must not be negative; {settings.noise} was given."
            )
        if not settings.noise_spread > 0:
            raise InputError(f"noise_spread must be above 0; {settings.noise_spread} was given.")
        if settings.ascent_steps < 0 or not settings.ascent_rate >= 0:
            raise InputError(
                f"ascent_steps and ascent_rate must not be negative; {settings.ascent_steps} and {settings.ascent_rate} were given."
            )

    def roles(self, encoder: Encoder) -> dict[str, Role]:
        towers = super().roles(encoder)
        if self.settings.threshold is None:
            return towers
        complement = load(self.settings.complement, self.settings.complement_pooling, encoder.device)
        self.shares_tokens = (
            complement.text_tokenizer.fingerprint() == encoder.text_tokenizer.fingerprint() and not complement.prompt
        )
        return {**towers, "complement": Frozen(complement)}

    @property
    def complement(self) -> Encoder:
        return cast(Encoder, cast(Frozen, self.role["complement"]).module)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        views = super().views(records, rng)
        if "complement" not in self.role:
            return views
        other = views["first"] if self.shares_tokens else self.complement.tokenize(records.texts(), self.max_length)
        return {**views, "complement": other}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        representations = super().represent(batch)
        if "complement" in self.role:
            with torch.no_grad():
                (representations["complement"],) = self.complement.embed(batch["complement"])
        return representations

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        first, second = representations["first"], representations["second"]
        noise = self.climb(self.draw(first, batch), first)
        weights = self.instance_weights(representations)
        masked = 1 - (weights.sum() - weights.trace()) / (len(weights) * (len(weights) - 1))
        return {"contrastive": debiased(first, second, noise, weights, temperature_of(self)), "masked": masked}

    def weights(self) -> dict[str, float]:
        return {
            "masked": 0.0
        }  # the share of pairs that are no negatives is there to be seen: at 1 nothing but noise is left

    def instance_weights(self, representations: dict[str, Tensor]) -> Tensor:
        """[N, N]; those on the diagonal do not matter."""
        first = representations["first"]
        if "complement" not in representations:
            return first.new_ones(len(first), len(first))
        other = normalize(representations["complement"], dim=-1)
        return (other @ other.T < self.settings.threshold).to(first.dtype)

    def draw(self, anchors: Tensor, batch: Batch) -> Tensor:
        noise = torch.randn(self._noise_count(len(anchors)), anchors.shape[1], generator=batch.generator)
        return self.settings.noise_spread * noise.to(anchors)

    def _noise_count(self, records: int) -> int:
        return int(self.settings.noise * records)

    def climb(self, noise: Tensor, anchors: Tensor) -> Tensor:
        """Each step moves each noise vector by β, to where the batch is densest.

        How anchors and positives lie is constant in it.
        """
        directions = normalize(anchors.detach(), dim=-1) / torch.as_tensor(temperature_of(self)).detach()

        def density(vectors: Tensor) -> Tensor:
            return torch.logsumexp(directions @ normalize(vectors, dim=-1).T, dim=1).sum()

        for _ in range(self.settings.ascent_steps if len(noise) else 0):
            noise = noise + self.settings.ascent_rate * steepest(density, noise)
        return noise

    def candidates(self, representations: dict[str, Tensor]) -> int:
        count = len(representations["second"])
        return count + self._noise_count(count)
