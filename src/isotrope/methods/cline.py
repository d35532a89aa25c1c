"""CLINE (Wang et al. 2021): a sentence with synonyms means the same, with antonyms it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from isotrope.data.corpus import Corpus
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.lexicon.replacements import knows_words, open_lexicon
from isotrope.lexicon.spelling import Spelling
from isotrope.lexicon.wordnet import files_of, wordnet_folder
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.masked_language import MaskedLanguage, MaskingSettings
from isotrope.methods.frame.method import Card, Prepared
from isotrope.methods.frame.settings import OneOf, ShareAboveZero, Weight, at_least
from isotrope.objectives import synonym_antonym, synonym_antonym_released
from isotrope.objectives.vectors import mean, wide
from isotrope.tokens.padded import Tokens, join
from isotrope.towers.heads import tanh_head
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.masking import label_tokens
from isotrope.views.meaning_changes import draw_antonyms, draw_synonyms
from isotrope.views.numbers import Numbers

PROBED = 1000  # texts in which a known word is looked for


@dataclass(frozen=True)
class CLINESettings(MaskingSettings):
    """Masks are those of the original sentence. The released code takes all senses of a word."""

    synonym_share: Annotated[
        ShareAboveZero, "Share of the words replaced by a synonym, a hypernym or another inflection"
    ] = 0.4
    antonym_share: Annotated[ShareAboveZero, "Share of the words replaced by an antonym"] = 0.2
    random_words: Annotated[bool, "Fill up with random words what antonyms do not reach of their share"] = True
    senses: Annotated[int | None, at_least(1), "Senses of a word, the most frequent first; none: all"] = 1
    detection_weight: Annotated[Weight, "Weight λ₂ of the detection of replaced words"] = 1.0
    contrast_weight: Annotated[Weight, "Weight λ₃ of the contrast"] = 1.0
    contrast: Annotated[str, OneOf("dot", "released"), "Contrast of the paper (dot) or of the released code"] = "dot"

    def rules(self) -> None:
        super().rules()
        files_of(wordnet_folder())


class CLINE(MaskedLanguage[CLINESettings]):
    """L = L_MLM + λ₂ L_RTD + λ₃ L_CTS, with x the sentence, x⁺ with synonyms and x⁻ with antonyms in it.

        L_RTD = mean over the tokens t of x⁺ and x⁻ of BCE(w·h_t, 1[t was put in])
        L_CTS = mean of softplus(h·h⁻ − h·h⁺)

    h are the encoder's vectors, as they are. MLM hides tokens of x, and the contrast sees x so. When to use it: English
    text, where a single word that turns the meaning should count. What goes wrong: special tokens are not asked for,
    nor sentences in which nothing was replaced; those whose x⁻ is x cannot be contrasted, so a text with few known
    words trains little but MLM. Siblings: ``rtd`` replaces tokens by those of a generator, ``mlm`` is the first term.
    """

    card = Card(
        name="cline",
        title="CLINE, synonyms against antonyms",
        paper="Wang, Ding, Li, Zheng. CLINE: Contrastive Learning with Semantic Negative Examples. ACL 2021",
        year=2021,
        needs="sentences",
        family="contrastive",
        read_out="cls",
    )
    ragged = ("token_losses", "detection_scores", "replaced")
    parts = ("masked", "synonyms", "antonyms", "changed")
    terms = ("mlm", "detection", "synonym_antonym")
    Settings = CLINESettings

    def prepare(self, corpus: Corpus) -> Prepared:
        table = open_lexicon(wordnet_folder(), self.settings.senses)
        probed = range(min(len(corpus), PROBED))
        if probed and not any(knows_words(table, corpus.text(row)) for row in probed):
            raise InputError(
                "None of the first words of the text is in WordNet, which is English: cline could replace nothing."
            )
        return Prepared()

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        self.table = open_lexicon(wordnet_folder(), self.settings.senses)
        self.spelling = Spelling(self.table, encoder.text_tokenizer)
        heads: dict[str, Tower] = {"detector": Trained(nn.Linear(int(encoder.backbone.config.hidden_size), 1))}
        if self.settings.contrast == "released":
            heads["pooler"] = Trained(tanh_head(encoder.dimension))
        return {**super().towers(encoder), **heads}

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
        joined = join([view.tokens for view in (masked, *others)], self.encoder.text_tokenizer.pad)
        states, vectors = self.encoder.states_and_vectors(joined)
        if "pooler" in self.tower:
            vectors = self.tower["pooler"](vectors)
        own, *parts = (
            part[:, : view.labels.shape[1]]
            for part, view in zip(states.split(len(masked)), (masked, *others), strict=True)
        )
        asked = torch.cat([part.flatten(0, 1)[view.asked] for part, view in zip(parts, others, strict=True)])
        names = ("original", "synonym", "antonym")
        return {
            "token_losses": self.token_losses(own, masked),
            "detection_scores": self.tower["detector"](asked).squeeze(-1),
            "replaced": torch.cat([view.labels.flatten()[view.asked] for view in others]),
            **dict(zip(names, vectors.split(len(masked)), strict=True)),
            "changed": batch["changed"].values,
        }

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        detection = self.detection_loss(representations)
        original, synonym, antonym = (representations[name] for name in ("original", "synonym", "antonym"))
        contrast_of = synonym_antonym if self.settings.contrast == "dot" else synonym_antonym_released
        losses = contrast_of(original, synonym, antonym, reduction="none")
        changed = representations["changed"]
        contrast = (losses * changed).sum() / changed.sum().clamp(min=1)
        return {"mlm": mean(representations["token_losses"]), "detection": detection, "synonym_antonym": contrast}

    def detection_loss(self, representations: dict[str, Tensor]) -> Tensor:
        scores = wide(representations["detection_scores"])
        replaced = representations["replaced"].to(scores.dtype)
        return mean(binary_cross_entropy_with_logits(scores, replaced, reduction="none"))

    def weights(self) -> dict[str, float]:
        return {"detection": self.settings.detection_weight, "synonym_antonym": self.settings.contrast_weight}

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """F1 of finding the words that were put in, and how often the sentence with synonyms has the larger dot
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
