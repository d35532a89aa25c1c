"""Replaced-token detection (ELECTRA; Clark et al. 2020): predict which tokens a small generator put in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.auxiliary import AddedSettings, Auxiliary
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.own_task import OwnTask
from isotrope.methods.frame.settings import OpenShare, Settings, ShareAboveZero, Weight
from isotrope.methods.frame.token_detection import detected, detection_loss, detection_measures
from isotrope.objectives.detection import sample_tokens
from isotrope.objectives.vectors import mean
from isotrope.tokens.padded import Tokens
from isotrope.towers.generator import Generator
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.masking import Masked, mask_tokens
from isotrope.views.numbers import Numbers

KEPT = 0.15  # of the tokens that the generator is asked for, left as they are; none is replaced at random


@dataclass(frozen=True)
class RTDSettings(Settings):
    """ELECTRA's. A generator wider than the encoder would leave it nothing to find."""

    mask_rate: Annotated[OpenShare, "Probability with which the generator is asked for a token"] = 0.15
    generator_size: Annotated[
        ShareAboveZero, "Width of the generator, as a share of the encoder's; its depth is the encoder's"
    ] = 1 / 3
    sample_temperature: Annotated[Weight, "Temperature of the generator's samples; 0: its most likely token"] = 1.0
    detection_weight: Annotated[Weight, "Weight λ of the detection loss"] = 50.0
    generator_weight: Annotated[Weight, "Weight of the generator's loss"] = 1.0


@dataclass(frozen=True)
class AddedRTD(AddedSettings):
    """RTD as an auxiliary loss."""

    rtd_weight: Annotated[
        Weight,
        "Weight of replaced-token detection as an auxiliary loss; 0: not added; 0.005 to 0.1 next to a contrast",
    ] = 0.0


class ReplacedTokenDetection(Auxiliary[RTDSettings], OwnTask):
    """L = L_G + λ L_D; the encoder is the detector D, a small generator G puts tokens in, both share their embeddings.

        L_G   mean over asked tokens of −log p_G(x_t | masked x)
        L_D   mean over all tokens of BCE(D_t, 1[x̃_t ≠ x_t]),   x̃: x with the asked tokens drawn from p_G

    A draw that hits the right token counts as not replaced. No gradient goes through the draw. Padding is left out,
    [CLS] and [SEP] are not. When to use it: to pre-train on little text, because every token gives a signal, or added
    to a contrast (``rtd_weight``). What goes wrong: a generator too good replaces nothing, one too weak is found
    without reading. Siblings: ``mlm`` predicts the token itself, ``cline`` detects words that a lexicon put in.
    """

    card = Card(
        name="rtd",
        title="Replaced-token detection, ELECTRA",
        paper="Clark, Luong, Le, Manning. ELECTRA: Pre-training Text Encoders as Discriminators Rather Than "
        "Generators. ICLR 2020",
        year=2020,
        needs="sentences",
        family="adversarial",
    )
    ragged = ("generator_losses",)
    parts = ("asked", "dice")
    terms = ("generator", "detection")
    keeps = "last"
    Settings = RTDSettings
    Added = AddedRTD

    @classmethod
    def added_settings(cls) -> RTDSettings:
        """One weight for both terms: it counts for the detection, and the generator keeps its fiftieth of it."""
        return RTDSettings(detection_weight=1.0, generator_weight=1 / RTDSettings.detection_weight)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if encoder.text_tokenizer.mask is None:
            raise InputError("Replaced-token detection needs a tokenizer with a [MASK] token.")
        generator = Trained(Generator(encoder, self.settings.generator_size))
        return {"generator": generator, "detector": Trained(detection_head(int(encoder.backbone.config.hidden_size)))}

    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        asked = mask_tokens(tokens, self.encoder.text_tokenizer, rng, self.settings.mask_rate, keep=KEPT, replace=0.0)
        # One number for each place that a text can have: what the generator draws depends on the record, not on the
        # batch around it.
        dice = rng.random((len(tokens), self.encoder.max_length), dtype=np.float32)
        return {"asked": asked, "dice": Numbers.of(dice)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        view: Masked = batch["asked"]
        mask, labels = view.tokens.mask, view.labels.flatten()[view.asked]
        dice = batch["dice"].values[:, : mask.shape[1]].flatten()[view.asked]
        scores = cast(Tensor, self.tower["generator"](view.tokens.ids, mask, view.asked)).float()
        drawn = sample_tokens(scores.detach(), dice, self.settings.sample_temperature)
        original = torch.where(view.labels >= 0, view.labels, view.tokens.ids)
        corrupted = original.flatten().scatter(0, view.asked, drawn).view_as(original)
        found = self.detect(replace(view.tokens, ids=corrupted), corrupted != original)
        return {"generator_losses": cross_entropy(scores, labels, reduction="none"), **found}

    def detect(self, tokens: Tokens, replaced: Tensor) -> dict[str, Tensor]:
        scores = cast(Tensor, self.tower["detector"](self.encoder.states(tokens))).squeeze(-1)
        return detected(scores, replaced, tokens.mask > 0)

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        detection = detection_loss(representations)
        return {"generator": mean(representations["generator_losses"]), "detection": detection}

    def weights(self) -> dict[str, float]:
        return {"generator": self.settings.generator_weight, "detection": self.settings.detection_weight}

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Perplexity of the generator, the share of tokens that are replaced, and F1 of finding them."""
        perplexity = mean(representations["generator_losses"]).exp()
        found = detection_measures(representations)
        return {"generator_perplexity": perplexity, **found, **super().measures(representations)}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """The same on unseen text, and F1 of a guess, which is that of taking every token for replaced."""
        tokens, replaced, taken, both = representations["detection_counts"].sum(0).float()
        return {
            "generator_perplexity": representations["generator_losses"].mean().exp(),
            **detection_measures(representations),
            "replaced_precision": both / taken.clamp(min=1),
            "replaced_recall": both / replaced.clamp(min=1),
            "replaced_guess": 2 * replaced / (replaced + tokens).clamp(min=1),
            "detection": detection_loss(representations),
        }


def detection_head(width: int) -> nn.Sequential:
    """Linear, GELU, Linear to one score; weights from N(0, 0.02²)."""
    head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))
    for layer in (head[0], head[2]):
        nn.init.normal_(cast(nn.Linear, layer).weight, std=0.02)
        nn.init.zeros_(cast(nn.Linear, layer).bias)
    return head
