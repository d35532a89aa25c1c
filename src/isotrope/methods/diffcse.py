"""DiffCSE (Chuang et al. 2022): a sentence vector must also help to find the words that were changed in its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

import numpy as np
import torch
from torch import Tensor

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.normed_pair import NormedPair, NormedPairSettings, in_turn
from isotrope.methods.frame.settings import OneOf, OpenShare, Weight
from isotrope.methods.frame.token_detection import detected, detection_loss, detection_measures
from isotrope.objectives import info_nce
from isotrope.objectives.detection import sample_tokens
from isotrope.tokens.padded import Tokens
from isotrope.towers.conditioned_detector import ConditionedDetector
from isotrope.towers.generator import MaskFiller
from isotrope.towers.keeping import Frozen, Tower, Trained
from isotrope.views.masking import Masked, mask_tokens
from isotrope.views.numbers import Numbers

AUTO, MASKED, ALL = "auto", "masked", "all"


@dataclass(frozen=True)
class DiffCSESettings(NormedPairSettings):
    """The paper's; ``sample_temperature`` 0 and ``overwritten`` all are the released code's."""

    detection_weight: Annotated[Weight, "Weight λ of the detection of replaced tokens"] = 0.005
    mask_rate: Annotated[OpenShare, "Probability with which a token is masked for the generator"] = 0.3
    generator: Annotated[
        str, "Masked-language model that fills the masks, a folder or a hub id; auto: the start with its own head"
    ] = AUTO
    sample_temperature: Annotated[Weight, "Temperature of the generator's samples; 0: its most likely token"] = 1.0
    overwritten: Annotated[
        str, OneOf(MASKED, ALL), "Tokens that the generator's take the place of: the masked ones, or all but the first"
    ] = MASKED

    def rules(self) -> None:
        if not self.generator.strip():
            raise InputError("generator is auto, a model folder or a hub id; an empty name was given.")


class DiffCSE(NormedPair[DiffCSESettings]):
    """L = −log exp(cos(h_i, h'_i)/τ) / Σ_j exp(cos(h_i, h'_j)/τ) + λ · mean_t BCE(D_t(x̃, h), 1[x̃_t ≠ x_t])

    h, h' are the text under two dropout masks, through a head with batch norm that is dropped later. x̃ is the text
    with masked tokens filled in by a frozen generator; D, a copy of the encoder that learns apart from it, reads x̃
    with h in the place of [CLS]. Its gradient reaches the encoder through h alone: the vector is to hold what tells x
    from x̃.

    When to use it: plain sentences, where vectors should change with a word. What goes wrong: a generator that is
    always right leaves nothing to detect; λ near 1 drowns the contrast. Siblings: ``simcse`` is λ = 0 with another
    head, ``rtd`` detects without a sentence vector.
    """

    card = Card(
        name="diffcse",
        title="DiffCSE, contrast and detection of changed words",
        paper="Chuang, Dangovski, Luo, Zhang, Chang, Soljačić, Li, Yih, Kim, Glass. DiffCSE: Difference-based "
        "Contrastive Learning for Sentence Embeddings. NAACL 2022",
        year=2022,
        needs="sentences",
        family="contrastive",
        read_out="cls",
    )
    Settings = DiffCSESettings
    terms = ("contrastive", "detection")  # an auxiliary loss that has one of them is refused
    language_head = True
    batch_statistics = True  # the detector needs h, which the head normalises over the batch

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if encoder.text_tokenizer.mask is None:
            raise InputError("diffcse needs a tokenizer with a [MASK] token.")
        filler = (
            MaskFiller.of(encoder)
            if self.settings.generator == AUTO
            else MaskFiller.named(self.settings.generator, encoder, min(self.max_length or 1 << 20, encoder.max_length))
        )
        towers = super().towers(encoder)
        return {**towers, "generator": Frozen(filler), "detector": Trained(ConditionedDetector(encoder))}

    def hidden(self, twice: Tokens, rng: np.random.Generator) -> dict[str, View]:
        # One number for each place that a text can have: what is drawn depends on the record, not on the batch around.
        dice = rng.random((len(twice), self.encoder.max_length), dtype=np.float32)
        return {
            "asked": mask_tokens(twice, self.encoder.text_tokenizer, rng, self.settings.mask_rate),
            "dice": Numbers.of(dice),
        }

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        first, second = self.read(*self.embed_twice(batch))
        edited, replaced = self.edit(batch["asked"], batch["dice"].values)
        scores = cast(Tensor, self.tower["detector"](edited.ids, edited.mask, in_turn(first, second)))
        found = detected(scores, replaced, edited.mask > 0)
        rows = {name: values.unflatten(0, (batch.size, 2)) for name, values in found.items()}
        return {"first": first, "second": second, **rows}

    def edit(self, view: Masked, dice: Tensor) -> tuple[Tokens, Tensor]:
        """The text as the generator filled it in, and where it differs; a lucky sample is no difference."""
        tokens = view.tokens
        original = torch.where(view.labels >= 0, view.labels, tokens.ids)
        places = view.asked
        if self.settings.overwritten == ALL:
            behind = tokens.mask.clone()
            behind[:, 0] = 0
            places = torch.nonzero(behind.flatten()).squeeze(1)
        scores = cast(Tensor, self.tower["generator"](tokens.ids, tokens.mask, places)).float()
        thrown = dice[:, : original.shape[1]].flatten()[places]
        drawn = sample_tokens(scores, thrown, self.settings.sample_temperature)
        edited = original.flatten().scatter(0, places, drawn).view_as(original)
        return Tokens(edited, tokens.mask, tokens.lengths), edited != original

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        contrast = info_nce(representations["first"], representations["second"], self.settings.temperature)
        return {"contrastive": contrast, "detection": detection_loss(representations)}

    def weights(self) -> dict[str, float]:
        return {"detection": self.settings.detection_weight}

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {**detection_measures(representations), **super().measures(representations)}
