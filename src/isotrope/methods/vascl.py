"""VaSCL (Zhang et al. 2022): a dropout pair, and a virtual copy of a vector that is most like its neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Count, OneOf, Positive, Settings, TemperatureSetting, Weight, Width
from isotrope.objectives import contrast_with_neighbours, nearest_rows, nt_xent, virtual_contrast
from isotrope.objectives.ascent import steepest
from isotrope.towers.keeping import Tower, Trained


@dataclass(frozen=True)
class VaSCLSettings(Settings):
    """Those of the released code, which the published numbers come from. The radius is that of the base models."""

    temperature: TemperatureSetting = 0.05
    neighbours: Annotated[Count, "Neighbours K of a vector in the batch; fewer than batch_size"] = 16
    radius: Annotated[Weight, "Length Δ of the perturbation; 0: no neighbourhood term"] = 15.0
    projection: Annotated[Width, "Width of the vectors that are compared"] = 128
    head_learning_rate: Annotated[
        Positive, "Highest learning rate of the head, whatever learning_rate is; it rises and falls with it"
    ] = 5e-4
    neighbourhood_gradient: Annotated[
        str, OneOf("head", "full"), "What the neighbourhood term trains: the head alone, or encoder and head"
    ] = "head"

    def check_batch(self, batch_size: int) -> None:
        if self.radius and self.neighbours >= batch_size:
            raise InputError(
                f"neighbours must be fewer than the records of a batch; {self.neighbours} and {batch_size} were given. "
                "Lower neighbours or raise batch_size."
            )


class VaSCL(Method[VaSCLSettings]):
    """L = NT-Xent(z, z') + ½ (ℓ(z) + ℓ(z*)),   z = g(e),  z* = g(e + δ*),  φ(u, v) = exp(cos(u, v)/τ)

        ℓ(a) = −log φ(z_i, z*_i) / [ φ(z_i, z*_i) + Σ_{n∈N(i)} ( φ(a_i, z_n) + φ(a_i, z*_n) ) ]
        δ*_i = argmax_{‖δ‖≤Δ} −log φ(z^δ_i, z_i) / [ φ(z^δ_i, z_i) + Σ_{n∈N(i)} φ(z^δ_i, z_n) ]

    N(i) are the K others of the batch with the largest e_i·e_n, before the head g. δ* is one step of steepest ascent
    from a random direction, at full length.

    By default e and z_i are constants in ℓ, as in the released code: the neighbourhood trains the head alone, which the
    contrast shares. With ``neighbourhood_gradient`` "full" it trains the encoder too, as the formula is printed.

    When to use it: plain sentences of a narrow domain, where the neighbours of a sentence are its hard negatives. What
    goes wrong: the radius is a length in the encoder's own space, and one that suits BERT leads far out of a smaller
    model's cloud; with the full gradient it then pulls against the contrast. Siblings: ``simcse`` without the
    neighbourhood, ``dclr`` lets noise climb instead of vectors, ``simclr`` edits words.
    """

    card = Card(
        name="vascl",
        title="VaSCL, virtual augmentation",
        paper="Zhang, Xiao, Zhu, Ma, Arnold. Virtual Augmentation Supported Contrastive Learning of Sentence "
        "Representations. Findings of ACL 2022",
        year=2022,
        needs="sentences",
        family="contrastive",
        read_out="mean",
    )
    Settings = VaSCLSettings
    shared_views = ("sentences",)
    defaults: ClassVar[Mapping[str, Any]] = {"max_grad_norm": None}  # the released code does not clip

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        width = encoder.dimension
        head = nn.Sequential(
            nn.Linear(width, width, bias=False), nn.ReLU(), nn.Linear(width, self.settings.projection, bias=False)
        )
        return {"head": Trained(head, learning_rate=self.settings.head_learning_rate)}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {"sentences": self.frame(records.tokens())}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        # The same rows twice in one forward: each row draws its own dropout mask.
        first, second = self.encoder.embed(batch["sentences"], batch["sentences"])
        return {"first": first, "second": second}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        # The head is applied here and not in ``represent``: it must see the perturbed vectors too, which depend on the
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

    def remarks(self, representations: dict[str, Tensor]) -> Sequence[str]:
        radius, length = self.settings.radius, float(representations["first"].norm(dim=-1).mean())
        if radius <= length:
            return ()
        return (
            f"radius {radius:g} is longer than the vectors, whose mean length is {length:.2f}: the perturbed copies "
            "lie outside their cloud; set radius well below the distance of neighbours.",
        )

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return 2 * len(representations["first"]) - 1
