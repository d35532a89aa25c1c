"""Replaced-token detection (ELECTRA; Clark et al. 2020): tell which tokens a small generator put in. Alone, or beside
any other method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.auxiliary import Auxiliary
from isotrope.methods.frame.method import Batch, Settings, View
from isotrope.objectives.detection import detection_losses, sample_tokens
from isotrope.tokens.padded import Tokens
from isotrope.towers.generator import Generator
from isotrope.towers.keeping import Role, Trained
from isotrope.views.masking import Masked, mask_tokens
from isotrope.views.numbers import Numbers

KEPT = 0.15  # of the tokens that the generator is asked for, left as they are; none is replaced at random


@dataclass(frozen=True)
class RTDSettings(Settings):
    mask_rate: float = 0.15  # probability with which the generator is asked for a token
    generator_size: float = 1 / 3  # width of the generator, as a share of the encoder's; its depth is the encoder's
    sample_temperature: float = 1.0  # of the generator when it is sampled from; 0: its most likely token
    detection_weight: float = 50.0  # λ
    generator_weight: float = 1.0


def beside_a_contrast() -> RTDSettings:
    """One weight for both terms:

    what is asked for counts for the detection, and the generator keeps its fiftieth of it.
    """
    return RTDSettings(detection_weight=1.0, generator_weight=1 / RTDSettings.detection_weight)


class ReplacedTokenDetection(Auxiliary):
    """L = L_G + λ L_D.  L_G: mean over asked tokens of −log p_G(x_t | masked x).  L_D: mean over all tokens of BCE(D_t,
    1[x̃_t ≠ x_t]).

    x̃ is x with the asked tokens drawn from p_G; a draw that hits the right token counts as not replaced. No gradient
    goes through the draw. The encoder is D; both read one table of embeddings. Padding is left out, [CLS] and [SEP] are
    not.
    """

    name = "rtd"
    title = "Replaced-token detection, ELECTRA"
    paper = "Clark, Luong, Le, Manning. ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators. ICLR 2020"
    year = 2020
    needs = "sentences"
    ragged = ("generator_losses",)
    parts = ("asked", "dice")
    terms = ("generator", "detection")
    keeps = "last"
    judges_itself = True
    Settings = RTDSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        if not 0 < settings.mask_rate < 1:
            raise InputError(f"mask_rate must lie between 0 and 1; {settings.mask_rate} was given.")
        if not 0 < settings.generator_size <= 1:
            wider = (
                " A generator wider than the encoder leaves it nothing to find." if settings.generator_size > 1 else ""
            )
            raise InputError(
                f"generator_size is a share of the encoder's width, above 0 and at most 1; {settings.generator_size} was given.{wider}"
            )
        if not settings.sample_temperature >= 0:
            raise InputError(f"sample_temperature must not be negative; {settings.sample_temperature} was given.")
        for name in ("detection_weight", "generator_weight"):
            if not getattr(settings, name) >= 0:
                raise InputError(f"{name} must not be negative; {getattr(settings, name)} was given.")

    def roles(self, encoder: Encoder) -> dict[str, Role]:
        if encoder.text_tokenizer.mask is None:
            raise InputError("Replaced-token detection needs a tokenizer with a [MASK] token.")
        generator = Trained(Generator(encoder, self.settings.generator_size))
        return {"generator": generator, "detector": Trained(detection_head(int(encoder.backbone.config.hidden_size)))}

    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        asked = mask_tokens(tokens, self.encoder.text_tokenizer, rng, self.settings.mask_rate, keep=KEPT, replace=0.0)
        # One throw for each place that a text can have: what the generator draws belongs to the record, not to the
        # batch it stands in.
        return {
            "asked": asked,
            "dice": Numbers.of(rng.random((len(tokens), self.encoder.max_length), dtype=np.float32)),
        }

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        view: Masked = batch["asked"]
        mask, labels = view.tokens.mask, view.labels.flatten()[view.asked]
        dice = batch["dice"].values[:, : mask.shape[1]].flatten()[view.asked]
        scores = cast(Tensor, self.role["generator"](view.tokens.ids, mask, view.asked)).float()
        drawn = sample_tokens(scores.detach(), dice, self.settings.sample_temperature)
        original = torch.where(view.labels >= 0, view.labels, view.tokens.ids)
        corrupted = original.flatten().scatter(0, view.asked, drawn).view_as(original)
        found = self.detect(Tokens(corrupted, mask, view.tokens.lengths), corrupted != original)
        return {"generator_losses": cross_entropy(scores, labels, reduction="none"), **found}

    def detect(self, tokens: Tokens, replaced: Tensor) -> dict[str, Tensor]:
        """Of each row:

        the sum of its tokens' losses, and how many stand, are replaced, are taken for replaced, and both.
        """
        valid = tokens.mask > 0
        states = self.encoder.states(tokens)
        scores = cast(Tensor, self.role["detector"](states)).squeeze(-1)
        taken = (scores > 0) & valid
        counts = [valid, replaced & valid, taken, taken & replaced]
        return {
            "detection_losses": detection_losses(scores, replaced, valid).sum(1),
            "detection_counts": torch.stack([count.sum(1) for count in counts], dim=1),
        }

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        tokens = representations["detection_counts"][:, 0].sum()
        detection = representations["detection_losses"].sum() / tokens.clamp(min=1)
        return {"generator": representations["generator_losses"].mean(), "detection": detection}

    def weights(self) -> dict[str, float]:
        return {"generator": self.settings.generator_weight, "detection": self.settings.detection_weight}

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Perplexity of the generator, the share of tokens that are replaced, and F1 of finding them."""
        tokens, replaced, taken, both = representations["detection_counts"].sum(0).float()
        return {
            "generator_perplexity": representations["generator_losses"].mean().exp(),
            "replaced": replaced / tokens.clamp(min=1),
            "replaced_f1": 2 * both / (replaced + taken).clamp(min=1),
            **super().measures(representations),
        }

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """The same of text it never saw; beside them F1 of a guess, which is that of taking every token for replaced."""
        tokens, replaced, taken, both = representations["detection_counts"].sum(0).float()
        return {
            "generator_perplexity": representations["generator_losses"].mean().exp(),
            "replaced": replaced / tokens.clamp(min=1),
            "replaced_precision": both / taken.clamp(min=1),
            "replaced_recall": both / replaced.clamp(min=1),
            "replaced_f1": 2 * both / (replaced + taken).clamp(min=1),
            "replaced_guess": 2 * replaced / (replaced + tokens).clamp(min=1),
            "detection": self.loss(representations, Batch({}, 0, 0))["detection"],
        }


def detection_head(width: int) -> nn.Sequential:
    """Linear, GELU, Linear to one score; weights from N(0, 0.02²)."""
    head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))
    for layer in (head[0], head[2]):
        nn.init.normal_(cast(nn.Linear, layer).weight, std=0.02)
        nn.init.zeros_(cast(nn.Linear, layer).bias)
    return head
