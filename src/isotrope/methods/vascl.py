"""VaSCL (Zhang et al. 2022): beside the dropout pair, a vector and the nearby point that is most like its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings
from isotrope.objectives import contrast_with_neighbours, nearest_rows, nt_xent, virtual_contrast
from isotrope.objectives.ascent import steepest
from isotrope.towers.keeping import Tower, Trained

GRADIENTS = ("full", "head")


@dataclass(frozen=True)
class VaSCLSettings(Settings):
    """``neighbourhood_gradient`` full, or head as in the released code:

    there the neighbourhood trains the head alone.
    """

    temperature: float = 0.05
    neighbours: int = 16  # K, in the batch; fewer than batch_size
    radius: float = 15.0  # Δ, the length of the perturbation; 0: no neighbourhood term
    projection: int = 128  # width of the vectors that are compared
    head_rate: float = 100.0  # the head learns at so many times the learning rate
    neighbourhood_gradient: str = "full"


class VaSCL(Method):
    """L = NT-Xent(z, z') + ½ (ℓ(z) + ℓ(z*)),   z = g(e),  z* = g(e + δ*),  φ(u, v) = exp(cos(u, v)/τ)

        ℓ(a) = −log φ(z_i, z*_i) / [ φ(z_i, z*_i) + Σ_{n∈N(i)} ( φ(a_i, z_n) + φ(a_i, z*_n) ) ]
        δ*_i = argmax_{‖δ‖≤Δ} −log φ(z^δ_i, z_i) / [ φ(z^δ_i, z_i) + Σ_{n∈N(i)} φ(z^δ_i, z_n) ]

    N(i) are the K others of the batch with the largest e_i·e_n, before the head g. δ* is one step of steepest ascent
    from a random direction, at full length.
    """

    card = Card(
        name="vascl",
        title="VaSCL, virtual augmentation",
        paper="Zhang, Xiao, Zhu, Ma, Arnold. Virtual Augmentation Supported Contrastive Learning of Sentence Representations. "
        "Findings of ACL 2022",
        year=2022,
        needs="sentences",
        family="contrastive",
    )
    Settings = VaSCLSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        if not settings.temperature > 0:
            raise InputError(f"temperature must be above 0; {settings.temperature} was given.")
        for name in ("neighbours", "projection"):
            if getattr(settings, name) < 1:
                raise InputError(f"{name} must be at least 1; {getattr(settings, name)} was given.")
        if not 0 <= settings.radius < float("inf"):
            raise InputError(f"radius must not be negative; {settings.radius} was given.")
        if not settings.head_rate > 0:
            raise InputError(f"head_rate must be above 0; {settings.head_rate} was given.")
        if settings.neighbourhood_gradient not in GRADIENTS:
            raise InputError(
                f"neighbourhood_gradient is one of {', '.join(GRADIENTS)}; '{settings.neighbourhood_gradient}' was given."
            )

    @classmethod
    def check_batch(cls, settings: Any, batch_size: int, corpus: Corpus | None = None) -> None:
        if settings.radius and settings.neighbours >= batch_size:
            raise InputError(
                f"neighbours must be fewer than the records of a batch; {settings.neighbours} and {batch_size} were given. "
                "Lower --neighbours or raise --batch-size."
            )

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        width = encoder.dimension
        head = nn.Sequential(
            nn.Linear(width, width, bias=False), nn.ReLU(), nn.Linear(width, self.settings.projection, bias=False)
        )
        return {"head": Trained(head, self.settings.head_rate)}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {"sentences": self.frame(records.tokens())}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        first, second = self.encoder.embed(
            batch["sentences"], batch["sentences"]
        )  # each row draws its own dropout mask
        return {"first": first, "second": second}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        # The head is applied here and not in ``represent``: it must see the perturbed vectors too, which hang on the
        # whole batch.
        vectors, head, temperature = representations["first"], self.tower["head"], self.settings.temperature
        compared = head(vectors)
        terms = {"contrastive": nt_xent(compared, head(representations["second"]), temperature)}
        if not self.settings.radius:
            return terms
        neighbours = nearest_rows(vectors, self.settings.neighbours)
        if self.settings.neighbourhood_gradient == "head":
            vectors, compared = vectors.detach(), compared.detach()
        virtual = head(vectors + self.perturbation(vectors, neighbours, generator))
        return {**terms, "neighbourhood": contrast_with_neighbours(compared, virtual, neighbours, temperature)}

    def perturbation(self, vectors: Tensor, neighbours: Tensor, generator: torch.Generator) -> Tensor:
        """δ* [batch, d], each row of length Δ."""
        head, radius = self.tower["head"], self.settings.radius
        start = nn.functional.normalize(torch.randn(vectors.shape, generator=generator), dim=-1).to(vectors)
        with torch.no_grad():
            vectors, compared = vectors.detach(), head(vectors)

        def confusion(direction: Tensor) -> Tensor:
            moved = head(vectors + radius * direction)
            return virtual_contrast(moved, compared, neighbours, self.settings.temperature)

        return radius * steepest(confusion, start)

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return 2 * len(representations["first"]) - 1
