"""AnglE (Li and Li 2024): scored pairs are ranked by cosine and by an angle score that does not saturate with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from isotrope.data.corpus import Corpus, Records
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method, Prepared
from isotrope.methods.frame.settings import Positive, Settings, TemperatureSetting, Weight, at_least
from isotrope.objectives import cosent, supervised_contrast
from isotrope.objectives.vectors import check_shapes, unit
from isotrope.views.numbers import Numbers


def angle_score(first: Tensor, second: Tensor) -> Tensor:
    """The similarity of the released code: 1 for a vector and itself, between 0 and √2 otherwise.

        angle(x, y) = | Σ(ac + bd) + Σ(bc − ad) | / (‖x‖ ‖y‖) = | cos(x, y) + cos(x, Jy) |
        x = [a; b],  y = [c; d],  Jy = [−d; c]

    ``first`` and ``second`` [N, d] → [N], in float32 at least. The halves are the real and the imaginary parts of
    complex numbers. It is a similarity, not an angle, and not symmetric: angle(y, x) = | cos(x, y) − cos(x, Jy) |.
    Opposite vectors score 1 as well: rank by the cosine too.
    """
    check_shapes(first=(first, "N d"), second=(second, "N d"))
    if first.shape[-1] % 2:
        raise InputError(f"The angle score halves its vectors; they have {first.shape[-1]} dimensions, an odd number.")
    first, second = unit(first), unit(second)
    real, imaginary = second.chunk(2, dim=-1)
    turned = torch.cat([-imaginary, real], dim=-1)  # Jy
    return (first * (second + turned)).sum(dim=-1).abs()


@dataclass(frozen=True)
class AnglESettings(Settings):
    """The paper's weights, as the author names them; scales and temperature of the released library."""

    cosine_weight: Annotated[Weight, "Weight w₁ of the ranking by cosine"] = 1.0
    in_batch_weight: Annotated[Weight, "Weight w₂ of the in-batch contrast of positive pairs"] = 1.0
    angle_weight: Annotated[Weight, "Weight w₃ of the ranking by angle score"] = 1.0
    cosine_scale: Annotated[Positive, "What cosines are multiplied by in their ranking: 1/τ"] = 20.0
    angle_scale: Annotated[Positive, "What angle scores are multiplied by in their ranking: 1/τ"] = 20.0
    temperature: Annotated[TemperatureSetting, "Temperature of the in-batch contrast"] = 0.05
    positive_above: Annotated[
        float,
        at_least(0, below=1),
        "Pairs that score above this share of the way from the lowest score to the highest are in-batch positives",
    ] = 0.5

    def rules(self) -> None:
        if self.cosine_weight == self.in_batch_weight == self.angle_weight == 0:
            raise InputError(
                "cosine_weight, in_batch_weight and angle_weight are all 0, so nothing would be trained; set one of "
                "them above 0."
            )


class AnglE(Method[AnglESettings]):
    """L = w₁ · R(cos) + w₂ · ℓ + w₃ · R(angle);   R(s) = log(1 + Σ_{y_i < y_j} exp(scale · (s_i − s_j)))

    ℓ = −mean_{t∈P} log [ exp(cos(t, t⁺)/τ) / Σ_{k≠t} exp(cos(t, k)/τ) ],  P: the texts of positive pairs, t⁺: the
    partner of t, k: all texts of the batch. A pair is positive where y_i > (1 − m) · min y + m · max y, over the whole
    corpus; m is ``positive_above``. Texts of other pairs are candidates only.

    When to use it: scored pairs, some of them paraphrases. What goes wrong: ties are not compared; the angle score is
    not symmetric, so the order of the columns counts; a low ``positive_above`` makes positives of loosely related
    texts. Siblings: ``cosent`` is R(cos) alone, ``sbert`` fits the cosine to the score itself.
    """

    card = Card(
        name="angle",
        title="AnglE",
        paper="Li, Li. AnglE-optimized Text Embeddings. ACL 2024 (arXiv 2023)",
        year=2023,
        needs="scored-pairs",
        family="supervised",
        read_out="cls",
    )
    Settings = AnglESettings
    shared_views = ("first", "second")
    threshold: float  # score above which a pair is positive

    def prepare(self, corpus: Corpus) -> Prepared:
        if self.encoder.dimension % 2:
            raise InputError(
                f"The angle score halves its vectors, and the model's have {self.encoder.dimension} dimensions, an odd "
                "number; take a model of even width."
            )
        scores = [float(name) for name in corpus.names]
        if min(scores) == max(scores):
            raise InputError(f"Every pair has the same score, {corpus.names[0]}; there is nothing to put in order.")
        share = self.settings.positive_above
        self.threshold = (1 - share) * min(scores) + share * max(scores)
        return Prepared()

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        first, second = (self.frame(records.tokens(field)) for field in records.fields)
        scores = records.scores()
        positive = (scores > self.threshold).astype(np.int64)
        return {"first": first, "second": second, "scores": Numbers.of(scores), "positive": Numbers.of(positive)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        first, second = self.encoder.embed(batch["first"], batch["second"])
        numbers = {name: batch[name].values for name in ("scores", "positive")}
        return {"first": first, "second": second, **numbers}

    def nested_vectors(self) -> tuple[str, ...]:
        return "first", "second"

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        first, second, scores = (representations[name] for name in ("first", "second", "scores"))
        pair = torch.arange(len(scores), device=scores.device)
        # The second text of a positive pair has the label of the first; any other text is alone with its own.
        partner = torch.where(representations["positive"] > 0, pair, pair + len(pair))
        texts, labels = torch.cat([first, second]), torch.cat([pair, partner])
        return {
            "cosine_ranking": cosent(cosine_similarity(first, second), scores, self.settings.cosine_scale),
            "angle_ranking": cosent(angle_score(first, second), scores, self.settings.angle_scale),
            "contrastive": supervised_contrast(texts, labels, self.settings.temperature),
        }

    def weights(self) -> dict[str, float]:
        return {
            "cosine_ranking": self.settings.cosine_weight,
            "angle_ranking": self.settings.angle_weight,
            "contrastive": self.settings.in_batch_weight,
        }

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return 2 * len(representations["first"]) - 1
