"""CLINE (Wang et al. 2021): a sentence with synonyms means the same, with antonyms it does not; MLM and detection
beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.lexicon.replacements import knows_words, open_lexicon
from isotrope.lexicon.spelling import Spelling
from isotrope.lexicon.wordnet import files_of, wordnet_folder
from isotrope.methods.frame.method import Batch, View
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.objectives import synonym_antonym, synonym_antonym_released
from isotrope.objectives.vectors import mean, wide
from isotrope.tokens.text_tokenizer import Tokens, join
from isotrope.towers.heads import tanh_head
from isotrope.towers.keeping import Role, Trained
from isotrope.views.masking import label_tokens
from isotrope.views.meaning_changes import draw_antonyms, draw_synonyms
from isotrope.views.numbers import Numbers

CONTRASTS = ("dot", "released")


@dataclass(frozen=True)
class CLINESettings(MLMSettings):
    mask_rate: float = 0.15  # of the original sentence, for masked language modelling
    synonym_share: float = 0.4  # of the words of a sentence replaced by a synonym, a hypernym or another inflection
    antonym_share: float = 0.2  # of the words of a sentence replaced by an antonym
    random_words: bool = True  # fill up with random words what antonyms do not reach of their share
    senses: int | None = 1  # of a word, the most frequent first; none: all, as in the released code
    detection_weight: float = 1.0
    contrast_weight: float = 1.0
    contrast: str = "dot"  # dot: the paper's; released: the released code's


class CLINE(MaskedLanguageModel):
    """L = L_MLM + λ₂ L_RTD + λ₃ L_CTS, with x the sentence, x⁺ with synonyms and x⁻ with antonyms in it.

        L_RTD = mean over the tokens t of x⁺ and x⁻ of BCE(w·h_t, 1[t was put in])
        L_CTS = mean of softplus(h·h⁻ − h·h⁺)

    h are the encoder's vectors, as they are. MLM hides tokens of x, and the contrast sees x so. Special tokens are not
    asked for, nor sentences in which nothing was replaced; those whose x⁻ is x are no pair to contrast.
    """

    name = "cline"
    title = "CLINE, synonyms against antonyms"
    paper = "Wang, Ding, Li, Zheng. CLINE: Contrastive Learning with Semantic Negative Examples. ACL 2021"
    year = 2021
    ragged = ("token_losses", "detection_scores", "replaced")
    parts = ("masked", "synonyms", "antonyms", "changed")
    terms = ("mlm", "detection", "synonym_antonym")
    Settings = CLINESettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        for name in ("synonym_share", "antonym_share"):
            if not 0 < getattr(settings, name) <= 1:
                raise InputError(f"{name} must lie between 0 and 1; {getattr(settings, name)} was given.")
        for name in ("detection_weight", "contrast_weight"):
            if not getattr(settings, name) >= 0:
                raise InputError(f"{name} must not be negative; {getattr(settings, name)} was given.")
        if settings.senses is not None and settings.senses < 1:
            raise InputError(f"senses must be at least 1, or none for all; {settings.senses} was given.")
        if settings.contrast not in CONTRASTS:
            raise InputError(f"contrast is one of {', '.join(CONTRASTS)}; '{settings.contrast}' was given.")
        files_of(wordnet_folder())

    @classmethod
    def usable(cls, settings: Any, corpus: Corpus, rows: Rows) -> Rows:
        table = open_lexicon(wordnet_folder(), settings.senses)
        if len(rows) and not any(knows_words(table, corpus.text(row)) for row in rows[:1000].tolist()):
            raise InputError(
                "None of the first words of the text is in WordNet, which is English: cline could replace nothing."
            )
        return rows

    def roles(self, encoder: Encoder) -> dict[str, Role]:
        self.table = open_lexicon(wordnet_folder(), self.settings.senses)
        self.spelling = Spelling(self.table, encoder.text_tokenizer)
        heads: dict[str, Role] = {"detector": Trained(nn.Linear(int(encoder.backbone.config.hidden_size), 1))}
        if self.settings.contrast == "released":
            heads["pooler"] = Trained(tanh_head(encoder.dimension))
        return {**super().roles(encoder), **heads}

    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        before, behind = len(self.encoder.text_tokenizer.prefix), len(self.encoder.text_tokenizer.suffix)
        spelled = self.spelling.read(
            [row[before : end - behind] for row, end in zip(tokens.ids.numpy(), tokens.lengths, strict=True)]
        )
        slots, chosen = self.table.slots(spelled.numbers, spelled.texts), self.settings
        synonyms = draw_synonyms(self.table, slots, spelled.texts, chosen.synonym_share, rng)
        antonyms = draw_antonyms(self.table, slots, spelled.texts, chosen.antonym_share, rng, chosen.random_words)
        views = {}
        for name, drawn in (("synonyms", synonyms), ("antonyms", antonyms)):
            texts, new = self.spelling.write(spelled, drawn)
            asked = [flags.astype(np.int64) if flags.any() else np.full(len(flags), -100) for flags in new]
            views[name] = label_tokens(self.frame(texts), asked, before, behind)
        changed = Numbers.of((views["antonyms"].labels == 1).any(dim=1).long().numpy())
        return {"masked": self.masked(tokens, rng), **views, "changed": changed}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        masked, *others = (batch[name] for name in ("masked", "synonyms", "antonyms"))
        states, vectors = self.encoder.states_and_vectors(
            join([view.tokens for view in (masked, *others)], self.encoder.text_tokenizer.pad)
        )
        if "pooler" in self.role:
            vectors = self.role["pooler"](vectors)
        own, *parts = (
            part[:, : view.labels.shape[1]]
            for part, view in zip(states.split(len(masked)), (masked, *others), strict=True)
        )
        asked = torch.cat([part.flatten(0, 1)[view.asked] for part, view in zip(parts, others, strict=True)])
        names = ("original", "synonym", "antonym")
        return {
            "token_losses": self.token_losses(own, masked),
            "detection_scores": self.role["detector"](asked).squeeze(-1),
            "replaced": torch.cat([view.labels.flatten()[view.asked] for view in others]),
            **dict(zip(names, vectors.split(len(masked)), strict=True)),
            "changed": batch["changed"].values,
        }

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        detection = self.detection_loss(representations)
        original, synonym, antonym = (representations[name] for name in ("original", "synonym", "antonym"))
        contrast_of = synonym_antonym if self.settings.contrast == "dot" else synonym_antonym_released
        losses = contrast_of(original, synonym, antonym, reduction="none")
        changed = representations["changed"]
        contrast = (losses * changed).sum() / changed.sum().clamp(min=1)
        return {"mlm": mean(representations["token_losses"]), "detection": detection, "synonym_antonym": contrast}

    def detection_loss(self, representations: dict[str, Tensor]) -> Tensor:
        scores = wide(representations["detection_scores"])
        return mean(
            binary_cross_entropy_with_logits(scores, representations["replaced"].to(scores.dtype), reduction="none")
        )

    def weights(self) -> dict[str, float]:
        return {"detection": self.settings.detection_weight, "synonym_antonym": self.settings.contrast_weight}

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """F1 of finding the words that were put in, and how often the sentence with synonyms is the nearer one, by dot
        product.
        """
        replaced, taken = representations["replaced"] > 0, representations["detection_scores"] > 0
        original, synonym, antonym = (representations[name] for name in ("original", "synonym", "antonym"))
        changed = representations["changed"] > 0
        nearer = ((original * synonym).sum(-1) > (original * antonym).sum(-1)) & changed
        return {
            "replaced_f1": 2 * (replaced & taken).sum() / (replaced.sum() + taken.sum()).clamp(min=1),
            "synonym_nearer": nearer.sum() / changed.sum().clamp(min=1),
            **super().measures(representations),
        }

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        detection = {"detection_loss": self.detection_loss(representations)}
        return {**super().on_held_out(representations), **detection, **CLINE.measures(self, representations)}
