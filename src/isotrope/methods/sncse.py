"""SNCSE (Wang et al. 2022): the negation of a sentence is a soft negative, near it but not as near as its positive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Corpus, Records
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Prepared
from isotrope.methods.frame.prompted import PromptedContrast, PromptSettings
from isotrope.methods.frame.settings import Weight, at_least
from isotrope.methods.frame.temperature import temperature_of
from isotrope.objectives import bidirectional_margin, info_nce
from isotrope.views.negation import negation

LOOKED_AT = 2_000  # texts whose negations are counted at the start


@dataclass(frozen=True)
class SNCSESettings(PromptSettings):
    """The band in which a negation is kept, and what that weighs."""

    least_margin: Annotated[float, at_least(0, most=2), "α: a negation's cosine is below the positive's by this"] = 0.1
    most_margin: Annotated[float, at_least(0, most=2), "β: a negation's cosine is below the positive's by no more"] = (
        0.3
    )
    margin_weight: Annotated[Weight, "λ: weight of the margin; the paper has 0.0005 for RoBERTa"] = 1e-3

    def rules(self) -> None:
        super().rules()
        if self.least_margin > self.most_margin:
            raise InputError(
                f"least_margin must be at most most_margin; {self.least_margin} and {self.most_margin} were given."
            )


class SNCSE(PromptedContrast[SNCSESettings]):
    """L = mean_i −log exp(cos(h_i, h'_i)/τ) / Σ_j exp(cos(h_i, h'_j)/τ) + λ mean_i [max(0, Δ_i + α) + max(0, −Δ_i − β)]

    Δ_i = cos(h_i, n_i) − cos(h_i, h'_i); h, h' the sentence in two templates and n its negation in the second one, read
    off at [MASK], through a head that is dropped after training. Negations are no candidates of the first term.
    When to use it: plain English sentences and a raw masked language model. What goes wrong: the negation is made by
    rule, and a text in which no rule finds a verb gets "Not" in front. Siblings: ``promptbert`` has the templates
    without negations; ``cline`` has antonyms as hard negatives.
    """

    card = Card(
        name="sncse",
        title="SNCSE, soft negatives by negation",
        paper="Wang, Li, Huang, Dou, Kong, Shao. SNCSE: Contrastive Learning for Unsupervised Sentence Embedding with "
        "Soft Negative Samples. 2022",
        year=2022,
        needs="sentences",
        family="contrastive",
        read_out="mask",
    )
    Settings = SNCSESettings
    plain_template = 'This sentence of "[X]" means [MASK].'
    spaced_template = "This sentence of ' [X] ' means [MASK]."

    def prepare(self, corpus: Corpus) -> Prepared:
        texts = Records(corpus, list(range(min(len(corpus), LOOKED_AT)))).texts()
        share = np.mean([by_rule for _, by_rule in map(negation, texts)])
        said = (
            f"By rule, {share:.0%} of the first {len(texts):,} texts are negated at a verb; the others get "
            '"Not" in front. The rules are English.'
        )
        return Prepared(remarks=(*super().prepare(corpus).remarks, said))

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        sequences = records.tokens()
        flat, lengths = self.encoder.text_tokenizer.opening([negation(text)[0] for text in records.texts()])
        negated = np.split(flat, np.cumsum(lengths)[:-1])
        return {
            "first": self.frame(sequences),
            "second": self.second_frame(sequences),
            "negated": self.second_frame(negated),
        }

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        names = ("first", "second", "negated")
        vectors = self.encoder.embed(*(batch[name] for name in names))
        return dict(zip(names, map(self.read, vectors), strict=True))

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        first, second, negated = (representations[name] for name in ("first", "second", "negated"))
        band = self.settings.least_margin, self.settings.most_margin
        return {
            "contrastive": info_nce(first, second, temperature_of(self)),
            "margin": bidirectional_margin(first, second, negated, *band),
        }

    def weights(self) -> dict[str, float]:
        return {"margin": self.settings.margin_weight}

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Δ, the mean of it: what the margin holds in its band."""
        cosine = torch.nn.functional.cosine_similarity
        first = representations["first"]
        gap = cosine(first, representations["negated"]) - cosine(first, representations["second"])
        return {**super().measures(representations), "negation_gap": gap.mean()}
