"""TaCL (Su et al. 2022): a masked token must find its clean self among the tokens of its text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.masked_language import MaskedLanguage, MaskingSettings
from isotrope.methods.frame.method import Card, Prepared
from isotrope.methods.frame.sentence_pairs import Pair, SentencePairs, SentencePairSettings
from isotrope.methods.frame.settings import TemperatureSetting, Weight
from isotrope.objectives import token_contrast
from isotrope.objectives.vectors import mean
from isotrope.tokens.padded import Tokens
from isotrope.towers.keeping import Frozen, Tower
from isotrope.views.masking import Masked
from isotrope.views.segments import has_documents

RANDOM_SHARE = 0.5  # of the second segments, as BERT draws them


@dataclass(frozen=True)
class TaCLSettings(SentencePairSettings, MaskingSettings):
    """A masked token is an anchor; the three terms have equal weights."""

    temperature: TemperatureSetting = 0.01
    contrast_weight: Annotated[Weight, "Weight of the contrast; masked language modelling counts once"] = 1.0
    next_sentence_weight: Annotated[
        Weight, "Weight of next-sentence prediction, where the text has documents; 0: rows are single sentences"
    ] = 1.0


class TaCL(SentencePairs[TaCLSettings], MaskedLanguage[TaCLSettings]):
    """ℓ_i = −log exp(cos(h̃_i, h_i)/τ) / Σ_j exp(cos(h̃_i, h_j)/τ), mean over hidden tokens i; L = ℓ + MLM + NSP

    h̃ is the student on the masked row, h the frozen teacher (the encoder as it was given) on the clean one, both the
    last layer. Candidates j are the tokens of the same row, [CLS] and [SEP] among them, padding not. A row is two
    segments of a text with documents, and half of the second ones are of another document (label 1); all three terms
    come from one forward. Where the text has no documents, a row is a sentence and the third term is left out.

    When to use it: to spread out the tokens of a text, where tokens and not sentences are compared afterwards.
    What goes wrong: a teacher initialised from scratch teaches noise; token vectors that are spread do not make
    sentence vectors so. Siblings: ``mlm`` is the second term and ``nsp`` the third, ``infoword`` contrasts n-grams with
    whole sentences.
    """

    card = Card(
        name="tacl",
        title="TaCL, token-aware contrast",
        paper="Su et al. TaCL: Improving BERT Pre-training with Token-aware Contrastive Learning. "
        "Findings of NAACL 2022",
        year=2022,
        needs="sentences",
        family="contrastive",
    )
    ragged = ("token_losses", "contrast_losses")
    shared_views = ("clean",)
    parts = ("clean", "masked")
    terms = ("token_contrast", "mlm", "next_sentence")
    task = "next_sentence"
    takes_last_sentences = True
    paired = False  # whether rows are two segments
    Settings = TaCLSettings

    def prepare(self, corpus: Corpus) -> Prepared:
        self.paired = self.settings.next_sentence_weight > 0 and has_documents(corpus)
        if self.paired:
            return super().prepare(corpus)
        said = "The text has no documents (an empty line between two), so next-sentence prediction is left out."
        return Prepared(remarks=(said,) if self.settings.next_sentence_weight else ())

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        head = SentencePairs.towers(self, encoder) if self.paired else {}
        return {**MaskedLanguage.towers(self, encoder), **head, "teacher": Frozen.copy_of(encoder.backbone)}

    def pair(self, records: Records, row: int, rng: np.random.Generator) -> Pair:
        return self.next_or_random(records, row, rng, RANDOM_SHARE)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        if not self.paired:
            return MaskedLanguage.views(self, records, rng)
        views = SentencePairs.views(self, records, rng)
        pairs = views.pop("pairs")
        assert isinstance(pairs, Tokens)
        return {**self.views_of(pairs, rng), **views}

    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        return {"clean": tokens, "masked": self.masked(tokens, rng)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        clean, view = batch["clean"], batch["masked"]
        student = self.encoder.states(view.tokens)
        segments = {} if clean.segments is None else {"token_type_ids": clean.segments}
        teacher = self.tower["teacher"](input_ids=clean.ids, attention_mask=clean.mask, **segments).last_hidden_state
        return {
            "token_losses": self.token_losses(student, view),
            "contrast_losses": self.contrast_losses(student, teacher, view),
            **(self.classified(student[:, 0], batch) if self.paired else {}),
        }

    def contrast_losses(self, student: Tensor, teacher: Tensor, view: Masked) -> Tensor:
        """Of each hidden token. The contrast stays inside a row, so it is taken before rows are gathered."""
        valid, anchors = view.tokens.mask > 0, view.labels >= 0
        losses = token_contrast(student, teacher, valid, anchors, self.settings.temperature, reduction="none")
        return losses.flatten()[view.asked]

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        following = SentencePairs.loss(self, representations, generator) if self.paired else {}
        return {
            "token_contrast": mean(representations["contrast_losses"]),
            **MaskedLanguage.loss(self, representations, generator),
            **following,
        }

    def weights(self) -> dict[str, float]:
        return {"token_contrast": self.settings.contrast_weight, "next_sentence": self.settings.next_sentence_weight}

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Perplexity of the hidden tokens, and the share of them that give their clean self most of the probability."""
        found = mean((representations["contrast_losses"] < math.log(2)).float())
        perplexity = mean(representations["token_losses"]).exp()
        return {"perplexity": perplexity, "found": found, **super().measures(representations)}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        following = SentencePairs.on_held_out(self, representations) if self.paired else {}
        return {**MaskedLanguage.on_held_out(self, representations), **following}
