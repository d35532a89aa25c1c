"""SG and SG-OPT (Kim, Yoo, Lee 2021): a frozen copy of the encoder guides it, each layer a view of the sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.pooling import pool
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings
from isotrope.objectives import self_guided
from isotrope.towers.keeping import Frozen, Tower, Trained

VARIANTS = ("base", "opt1", "opt2", "opt3")
LAYER_POOLINGS = ("max", "mean", "cls")


@dataclass(frozen=True)
class SelfGuidedSettings(Settings):
    """``layer_pooling`` max, mean or cls:

    how a layer of the frozen copy becomes one vector; the released code takes mean.
    """

    temperature: float = 0.01
    distance_weight: float = 0.1  # λ, the weight of the squared distance between tuned and frozen parameters
    variant: str = "base"  # base, opt1, opt2: a layer drawn for each sentence; opt3: every layer
    layer_pooling: str = "max"
    projection: int = 4096  # width of the head that training alone sees; 0: no head


class SelfGuided(Method):
    """L = NT-Xent(f(c), f(h)) + λ ‖θ − θ_F‖²; c_i the tuned vector, h_i one pooled layer of the frozen copy, drawn for
    each sentence.

    θ_F is the encoder as it was given. Its embedding layer stays as it is in the tuned one too.
    """

    card = Card(
        name="sg",
        title="Self-guided contrast, SG",
        paper="Kim, Yoo, Lee. Self-Guided Contrastive Learning for BERT Sentence Representations. ACL 2021",
        year=2021,
        needs="sentences",
        family="contrastive",
    )
    betas = (0.9, 0.9)
    Settings = SelfGuidedSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        if not settings.temperature > 0:
            raise InputError(f"temperature must be above 0; {settings.temperature} was given.")
        if not settings.distance_weight >= 0:
            raise InputError(f"distance_weight must not be negative; {settings.distance_weight} was given.")
        if settings.variant not in VARIANTS:
            raise InputError(f"variant is one of {', '.join(VARIANTS)}; '{settings.variant}' was given.")
        if settings.layer_pooling not in LAYER_POOLINGS:
            raise InputError(
                f"layer_pooling is one of {', '.join(LAYER_POOLINGS)}; '{settings.layer_pooling}' was given."
            )
        if settings.projection < 0:
            raise InputError(f"projection is a width, or 0 for no head; {settings.projection} was given.")

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        width = int(encoder.backbone.config.hidden_size)
        if encoder.dimension != width:
            raise InputError(
                f"SG compares the sentence's vector ({encoder.dimension} dimensions) with layers of the model ({width}); "
                "choose a pooling, and a model without modules after it, for which they are equal."
            )
        embeddings = getattr(encoder.backbone, "embeddings", None) or encoder.backbone.get_input_embeddings()
        embeddings.requires_grad_(False)
        return {"frozen": Frozen.copy_of(encoder), "head": Trained(projection_head(width, self.settings.projection))}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {"sentences": self.frame(records.tokens())}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (tuned,) = self.encoder.embed(batch["sentences"])
        with torch.no_grad():
            layers = self.frozen.layers(batch["sentences"])
            pooled = [pool(self.settings.layer_pooling, states, batch["sentences"].mask) for states in layers]
        return {"tuned": tuned, "layers": torch.stack(pooled, dim=1)}  # [batch, d] and [batch, layers, d]

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        layers, head = representations["layers"], self.tower["head"]
        if self.settings.variant != "opt3":
            count, depth, _ = layers.shape
            drawn = torch.randint(depth, (count,), generator=generator).to(layers.device)
            layers = layers[torch.arange(count, device=layers.device), drawn].unsqueeze(1)
        contrastive = self_guided(
            head(representations["tuned"]), head(layers), self.settings.temperature, self.settings.variant
        )
        return {"contrastive": contrastive, "distance": self.distance()}

    def distance(self) -> Tensor:
        """‖θ − θ_F‖², summed over all parameters that learn."""
        pairs = zip(self.encoder.parameters(), self.frozen.parameters(), strict=True)
        return torch.stack([(tuned - frozen).square().sum() for tuned, frozen in pairs if tuned.requires_grad]).sum()

    @property
    def frozen(self) -> Encoder:
        return cast(Encoder, cast(Frozen, self.tower["frozen"]).module)

    def weights(self) -> dict[str, float]:
        return {"distance": self.settings.distance_weight}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        count, depth, _ = representations["layers"].shape
        return {"base": 2 * count - 1, "opt1": 2 * count - 1, "opt2": count, "opt3": 1 + (count - 1) * depth}[
            self.settings.variant
        ]


@dataclass(frozen=True)
class OptimisedSettings(SelfGuidedSettings):
    variant: str = "opt3"  # base, opt1, opt2: a layer drawn for each sentence; opt3: every layer


class SelfGuidedOptimised(SelfGuided):
    """ℓ_ik = −log φ(c_i, h_ik) / [ φ(c_i, h_ik) + Σ_{j≠i} Σ_n φ(c_i, h_jn) ], the mean over sentences and layers; the
    rest as in SG.
    """

    card = Card(
        name="sg-opt",
        title="Self-guided contrast, SG-OPT",
        family="contrastive",
    )
    Settings = OptimisedSettings


def projection_head(width: int, projection: int) -> nn.Module:
    """Linear, GELU, Linear, GELU, weights from N(0, 0.02²)."""
    if not projection:
        return nn.Identity()
    layers = [nn.Linear(width, projection), nn.Linear(projection, projection)]
    for layer in layers:
        nn.init.normal_(layer.weight, std=0.02)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.GELU(), layers[1], nn.GELU())
