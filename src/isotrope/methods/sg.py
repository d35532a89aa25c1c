"""SG and SG-OPT (Kim, Yoo, Lee 2021): a frozen copy of the encoder guides it, each layer a view of the sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.pooling import pool
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import OneOf, Settings, TemperatureSetting, Weight, at_least
from isotrope.objectives import self_guided
from isotrope.towers.keeping import Frozen, Tower, Trained

VARIANTS = OneOf("base", "opt1", "opt2", "opt3")
VARIANT_MEANING = "Form of the contrast; base, opt1, opt2: one layer is drawn for each sentence; opt3: every layer"


@dataclass(frozen=True)
class SelfGuidedSettings(Settings):
    """The released code pools layers by their mean."""

    temperature: TemperatureSetting = 0.01
    distance_weight: Annotated[Weight, "Weight λ of the squared distance between tuned and frozen parameters"] = 0.1
    variant: Annotated[str, VARIANTS, VARIANT_MEANING] = "base"
    layer_pooling: Annotated[str, OneOf("max", "mean", "cls"), "How a layer of the frozen copy becomes one vector"] = (
        "max"
    )
    projection: Annotated[int, at_least(0, most=65_536), "Width of the train-only head; 0: no head"] = 4096


G = TypeVar("G", bound=SelfGuidedSettings)


class FrozenGuide(Method[G]):
    """The encoder learns to agree with the layers of its own frozen copy. Its embedding layer does not learn."""

    defaults = {"adam_beta2": 0.9}
    shared_views = ("sentences",)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        width = int(encoder.backbone.config.hidden_size)
        if encoder.dimension != width:
            raise InputError(
                f"SG compares the sentence's vector ({encoder.dimension} dimensions) with layers of the model ({width})"
                "; choose a pooling, and a model without modules after it, for which they are equal."
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
        return self.encoder_of("frozen")

    def weights(self) -> dict[str, float]:
        return {"distance": self.settings.distance_weight}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        count, depth, _ = representations["layers"].shape
        counts = {"base": 2 * count - 1, "opt1": 2 * count - 1, "opt2": count, "opt3": 1 + (count - 1) * depth}
        return counts[self.settings.variant]


class SelfGuided(FrozenGuide[SelfGuidedSettings]):
    """L = NT-Xent(g(c), g(h)) + λ ‖θ − θ_F‖²; c_i the tuned vector, h_i one pooled layer of the frozen copy

    The layer is drawn for each sentence i. θ_F is the encoder as it was given, g a head that is dropped after training.
    When to use it: plain sentences and a language model whose layers hold what its pooled vector loses. What goes
    wrong: a vector that is not as wide as a layer cannot be compared with one; a small λ lets the encoder drift away
    from its guide. Siblings: ``sg-opt`` compares all layers at once, ``simcse`` needs no second tower.
    """

    card = Card(
        name="sg",
        title="Self-guided contrast, SG",
        paper="Kim, Yoo, Lee. Self-Guided Contrastive Learning for BERT Sentence Representations. ACL 2021",
        year=2021,
        needs="sentences",
        family="contrastive",
        read_out="cls",
    )
    Settings = SelfGuidedSettings


@dataclass(frozen=True)
class OptimisedSettings(SelfGuidedSettings):
    """SG's, with every layer."""

    variant: Annotated[str, VARIANTS, VARIANT_MEANING] = "opt3"


class SelfGuidedOptimised(FrozenGuide[OptimisedSettings]):
    """ℓ_ik = −log φ(c_i, h_ik) / [ φ(c_i, h_ik) + Σ_{j≠i} Σ_n φ(c_i, h_jn) ], the mean over sentences i and layers k

    φ(u, v) = exp(cos(g(u), g(v))/τ); the distance to the frozen parameters is added as in SG. When to use it: where SG
    would be, at the price of more candidates. What goes wrong: as in SG. Siblings: ``sg`` draws one layer for each
    sentence.
    """

    card = Card(
        name="sg-opt",
        title="Self-guided contrast, SG-OPT",
        paper="Kim, Yoo, Lee. Self-Guided Contrastive Learning for BERT Sentence Representations. ACL 2021",
        year=2021,
        needs="sentences",
        family="contrastive",
        read_out="cls",
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
