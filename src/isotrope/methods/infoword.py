"""InfoWord (Kong et al. 2020): a sentence must find the n-gram that was hidden in it among those of others."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.data.corpus_files import text_key
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.masked_language import MaskedLanguage, MaskingSettings
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import Count, OneOf, Weight, above, at_least
from isotrope.objectives import contrast
from isotrope.objectives.vectors import mean, unit
from isotrope.tokens.padded import Tokens
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.numbers import Numbers

COSINE_TEMPERATURE = 0.05


def hide_ngrams(
    tokens: Tokens,
    tokenizer: TextTokenizer,
    rng: np.random.Generator,
    length: float = 5.0,
    spread: float = 1.0,
    longest: int = 10,
) -> tuple[Tokens, list[npt.NDArray[np.int64]]]:
    """(the rows with one n-gram masked in each, the n-grams).

    n ~ N(length, spread²), rounded, between 1 and ``longest``; one token stays visible where a text has more than one.
    The n-gram lies between the special tokens that frame the text, so what was cut off is never chosen.
    """
    hidden = tokens.ids.numpy().copy()
    first, behind = len(tokenizer.prefix), len(tokenizer.suffix)
    ngrams = []
    for row, whole in zip(hidden, tokens.lengths.tolist(), strict=True):
        room = max(whole - first - behind, 0)
        drawn = int(np.clip(np.rint(rng.normal(length, spread)), 1, longest))
        size = min(drawn, max(room - 1, min(room, 1)))
        start = first + int(rng.integers(room - size + 1))
        ngrams.append(row[start : start + size].copy())
        row[start : start + size] = tokenizer.mask
    return replace(tokens, ids=torch.from_numpy(hidden)), ngrams


@dataclass(frozen=True)
class InfoWordSettings(MaskingSettings):
    """Masks are those of the copy that MLM reads. The paper has no temperature, and trains its encoder from scratch."""

    ngram_weight: Annotated[Weight, "Weight λ of the contrast; masked language modelling counts once"] = 1.0
    ngram_length: Annotated[float, at_least(1), "Mean length of the hidden n-gram in tokens"] = 5.0
    ngram_spread: Annotated[Weight, "Standard deviation of the n-gram's length"] = 1.0
    longest: Annotated[Count, "Tokens of an n-gram at most"] = 10
    similarity: Annotated[str, OneOf("dot", "cosine"), "Similarity of sentence and n-gram; the paper's is dot"] = "dot"
    temperature: Annotated[
        float | None, above(0), "Temperature; none: √dimension for dot products, as in attention, and 0.05 for cosines"
    ] = None

    def rules(self) -> None:
        super().rules()
        if self.ngram_length > self.longest:
            raise InputError(
                f"ngram_length must lie between 1 and longest ({self.longest}); {self.ngram_length} was given."
            )


class InfoWord(MaskedLanguage[InfoWordSettings]):
    """ℓ_i = −log exp(g(x̂_i)·g(y_i)/τ) / Σ_j exp(g(x̂_i)·g(y_j)/τ); L = λ · mean ℓ_i + MLM.

    y_i is an n-gram of sentence i on its own, x̂_i the sentence with it hidden, g the encoder for both; τ = √d, for the
    vectors of a trained encoder have a length of about √d. When to use it: plain sentences, where a phrase and the
    sentence around it should be near. What goes wrong: with τ = 1 scores are tens apart before anything is learned, and
    the vectors fall together to mend that; n-grams of other sentences with the same tokens would be false negatives, so
    they are not candidates; frequent phrases fit many sentences all the same. Siblings: ``tacl`` contrasts
    tokens inside a sentence, ``declutr`` spans of a document.
    """

    card = Card(
        name="infoword",
        title="InfoWord, n-grams against their sentences",
        paper="Kong et al. A Mutual Information Maximization Perspective of Language Representation Learning. "
        "ICLR 2020",
        year=2020,
        needs="sentences",
        family="contrastive",
        read_out="cls",
    )
    keeps = "best"  # unlike MLM alone, it compares the vectors that are kept
    shared_views = ("sentences", "ngrams")
    parts = ("masked", "sentences", "ngrams", "keys")
    terms = ("contrastive", "mlm")
    Settings = InfoWordSettings

    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        chosen = self.settings
        lengths = chosen.ngram_length, chosen.ngram_spread, chosen.longest
        hidden, ngrams = hide_ngrams(tokens, self.encoder.text_tokenizer, rng, *lengths)
        keys = np.array([text_key(ngram.tobytes()) for ngram in ngrams], dtype=np.uint64)
        masked = self.masked(tokens, rng)
        return {"masked": masked, "sentences": hidden, "ngrams": self.frame(ngrams), "keys": Numbers.of(keys)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        sentences, ngrams = self.encoder.embed(batch["sentences"], batch["ngrams"])
        return {**super().represent(batch), "sentences": sentences, "ngrams": ngrams, "keys": batch["keys"].values}

    @property
    def temperature(self) -> float:
        if self.settings.temperature is not None:
            return self.settings.temperature
        return COSINE_TEMPERATURE if self.settings.similarity == "cosine" else math.sqrt(self.encoder.dimension)

    def similarities(self, representations: dict[str, Tensor]) -> Tensor:
        """Of each sentence with each n-gram; −inf for the n-grams of others that are the sentence's own."""
        sentences, ngrams, keys = (representations[name] for name in ("sentences", "ngrams", "keys"))
        if self.settings.similarity == "cosine":
            sentences, ngrams = unit(sentences), unit(ngrams)
        repeated = (keys.unsqueeze(1) == keys).fill_diagonal_(False)
        return (sentences @ ngrams.T / self.temperature).masked_fill(repeated, -torch.inf)

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        scores = self.similarities(representations)
        own = torch.arange(len(scores), device=scores.device)
        return {"contrastive": contrast(scores, own), **super().loss(representations, generator)}

    def weights(self) -> dict[str, float]:
        return {"contrastive": self.settings.ngram_weight}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["ngrams"])

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Perplexity of the masked tokens, and how often a sentence finds its n-gram."""
        scores = self.similarities(representations)
        found = scores.argmax(1) == torch.arange(len(scores), device=scores.device)
        perplexity = mean(representations["token_losses"]).exp()
        return {"perplexity": perplexity, "ngram_found": found.float().mean(), **super().measures(representations)}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """As ``measures``; the candidates are the n-grams of all held-out records.

        ``ngram_information`` = log N − ℓ bounds the mutual information of sentence and n-gram from below, in nats: 0 is
        what a uniform prediction among the N candidates reaches.
        """
        scores = self.similarities(representations)
        loss = contrast(scores, torch.arange(len(scores), device=scores.device))
        return {
            **super().on_held_out(representations),
            "ngram_found": self.measures(representations)["ngram_found"],
            "ngram_information": math.log(len(scores)) - loss,
        }
