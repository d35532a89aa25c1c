"""InfoWord (Kong et al. 2020): a sentence with an n-gram hidden must find that n-gram among those of the other
sentences; MLM beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus_files import text_key
from isotrope.errors import InputError
from isotrope.methods.frame.method import Batch, View
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.objectives import contrast
from isotrope.objectives.vectors import unit
from isotrope.tokens.padded import Tokens
from isotrope.views.ngrams import hide_ngrams
from isotrope.views.numbers import Numbers

SIMILARITIES = ("dot", "cosine")


@dataclass(frozen=True)
class InfoWordSettings(MLMSettings):
    mask_rate: float = 0.15  # of the copy that masked language modelling reads
    ngram_weight: float = 1.0  # λ of the contrast beside masked language modelling, which counts once
    ngram_length: float = 5.0  # mean of the n-gram's length in tokens
    ngram_spread: float = 1.0  # and its standard deviation
    longest: int = 10  # tokens of an n-gram at most
    similarity: str = "dot"  # dot, as in the paper, or cosine
    temperature: float = 1.0  # the paper has none; cosines need a smaller one, such as 0.05


class InfoWord(MaskedLanguageModel):
    """ℓ_i = −log exp(g(x̂_i)·g(y_i)/τ) / Σ_j exp(g(x̂_i)·g(y_j)/τ); L = λ · mean ℓ_i + MLM.

    y_i is an n-gram of sentence i on its own, x̂_i the sentence with it hidden, g the encoder for both. N-grams of
    other sentences with the same tokens are no candidates: they would be false negatives.
    """

    name = "infoword"
    title = "InfoWord, n-grams against their sentences"
    paper = "Kong et al. A Mutual Information Maximization Perspective of Language Representation Learning. ICLR 2020"
    year = 2020
    keeps = "best"  # unlike MLM alone, it compares the vectors that are kept
    parts = ("masked", "sentences", "ngrams", "keys")
    terms = ("contrastive", "mlm")
    Settings = InfoWordSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        for name in ("ngram_weight", "ngram_spread"):
            if not getattr(settings, name) >= 0:
                raise InputError(f"{name} must not be negative; {getattr(settings, name)} was given.")
        if settings.longest < 1:
            raise InputError(f"longest must be at least 1; {settings.longest} was given.")
        if not 1 <= settings.ngram_length <= settings.longest:
            raise InputError(
                f"ngram_length must lie between 1 and longest ({settings.longest}); {settings.ngram_length} was given."
            )
        if settings.similarity not in SIMILARITIES:
            raise InputError(f"similarity is one of {', '.join(SIMILARITIES)}; '{settings.similarity}' was given.")
        if not settings.temperature > 0:
            raise InputError(f"temperature must be above 0; {settings.temperature} was given.")

    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        chosen = self.settings
        lengths = chosen.ngram_length, chosen.ngram_spread, chosen.longest
        hidden, ngrams = hide_ngrams(tokens, self.encoder.text_tokenizer, rng, *lengths)
        keys = np.array([text_key(ngram.tobytes()) for ngram in ngrams], dtype=np.uint64)
        return {
            "masked": self.masked(tokens, rng),
            "sentences": hidden,
            "ngrams": self.frame(ngrams),
            "keys": Numbers.of(keys),
        }

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        sentences, ngrams = self.encoder.embed(batch["sentences"], batch["ngrams"])
        return {**super().represent(batch), "sentences": sentences, "ngrams": ngrams, "keys": batch["keys"].values}

    def similarities(self, representations: dict[str, Tensor]) -> Tensor:
        """Of each sentence with each n-gram; −inf for the n-grams of others that are the sentence's own."""
        sentences, ngrams, keys = (representations[name] for name in ("sentences", "ngrams", "keys"))
        if self.settings.similarity == "cosine":
            sentences, ngrams = unit(sentences), unit(ngrams)
        repeated = (keys.unsqueeze(1) == keys).fill_diagonal_(False)
        return (sentences @ ngrams.T / self.settings.temperature).masked_fill(repeated, -torch.inf)

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        scores = self.similarities(representations)
        own = torch.arange(len(scores), device=scores.device)
        return {"contrastive": contrast(scores, own), **super().loss(representations, batch)}

    def weights(self) -> dict[str, float]:
        return {"contrastive": self.settings.ngram_weight}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["ngrams"])

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Perplexity of the masked tokens, and how often a sentence finds its n-gram."""
        scores = self.similarities(representations)
        found = scores.argmax(1) == torch.arange(len(scores), device=scores.device)
        perplexity = representations["token_losses"].mean().exp()
        return {"perplexity": perplexity, "ngram_found": found.float().mean(), **super().measures(representations)}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """As ``measures``; the candidates are the n-grams of all records that were kept aside."""
        return {**super().on_held_out(representations), "ngram_found": self.measures(representations)["ngram_found"]}
