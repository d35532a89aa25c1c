"""InfoCSE (Wu et al. 2022): a sentence vector must also help a small network to restore hidden words of its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.normed_pair import NormedPair, NormedPairSettings, in_turn
from isotrope.methods.frame.settings import Layers, OpenShare, Weight, at_least
from isotrope.objectives import info_nce
from isotrope.objectives.vectors import mean
from isotrope.tokens.padded import Tokens
from isotrope.towers.keeping import Frozen, Tower, Trained
from isotrope.towers.reconstructor import LowerLayers, Reconstructor
from isotrope.views.masking import Masked, mask_tokens


@dataclass(frozen=True)
class InfoCSESettings(NormedPairSettings):
    """The paper's for base models; large ones have a mask rate of 0.3."""

    reconstruction_weight: Annotated[Weight, "Weight λ of the restored tokens"] = 1e-5
    mask_rate: Annotated[OpenShare, "Probability with which a token is hidden"] = 0.4
    lower_layers: Annotated[
        int | None,
        at_least(1, most=1_000),
        "Layer whose states of the masked text are taken; none: the middle one",
    ] = None
    auxiliary_layers: Annotated[Layers, "Layers of the network that restores the tokens"] = 2


class InfoCSE(NormedPair[InfoCSESettings]):
    """L = −log exp(cos(h_i, h'_i)/τ) / Σ_j exp(cos(h_i, h'_j)/τ) − λ · mean over hidden t of log p(x_t | e, M(x̃))

    e is the vector of the clean text, h = head(e) with batch norm, h' the other dropout view. x̃ is the text with
    hidden tokens, M the lower half of the encoder as it was given, frozen; p are two fresh layers over [e, M(x̃)] and
    a masked-language head. The gradient of the second term reaches the encoder through e alone, so that e holds what
    x̃ lacks.

    When to use it: plain sentences, best from a start that was pre-trained for it (Condenser). What goes wrong: from
    another start the fresh layers teach little while they learn themselves. Siblings: ``simcse`` is λ = 0 with another
    head, ``retromae`` restores the text from its vector without a contrast, ``diffcse`` detects changed words instead.
    """

    card = Card(
        name="infocse",
        title="InfoCSE, contrast and restored words",
        paper="Wu, Gao, Lin, Han, Wang, Hu. InfoCSE: Information-aggregated Contrastive Learning of Sentence "
        "Embeddings. Findings of EMNLP 2022",
        year=2022,
        needs="sentences",
        family="contrastive",
        read_out="cls",
    )
    Settings = InfoCSESettings
    language_head = True
    ragged = ("restored_losses",)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        layers = int(encoder.backbone.config.num_hidden_layers)
        lower = self.settings.lower_layers or max(layers // 2, 1)
        if lower > layers:
            raise InputError(f"lower_layers is {lower}, and the encoder has {layers} layers.")
        return {
            **super().towers(encoder),
            "lower": Frozen(LowerLayers(encoder, lower)),
            "reconstructor": Trained(Reconstructor(encoder, self.settings.auxiliary_layers)),
        }

    def hidden(self, twice: Tokens, rng: np.random.Generator) -> dict[str, View]:
        return {"hidden": mask_tokens(twice, self.encoder.text_tokenizer, rng, self.settings.mask_rate)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        first, second = self.embed_twice(batch)
        view: Masked = batch["hidden"]
        ids, mask = view.tokens.ids, view.tokens.mask
        states = self.tower["lower"](ids, mask)
        scores = self.tower["reconstructor"](in_turn(first, second), states, mask, view.asked).float()
        losses = cross_entropy(scores, view.labels.flatten()[view.asked], reduction="none")
        return {"first": first, "second": second, "restored_losses": losses}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        # The head stands here, where the batch is whole: its statistics know nothing of chunks.
        pair = self.read(representations["first"], representations["second"])
        contrast = info_nce(*pair, self.settings.temperature)
        return {"contrastive": contrast, "restored": mean(representations["restored_losses"])}

    def weights(self) -> dict[str, float]:
        return {"restored": self.settings.reconstruction_weight}

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        perplexity = mean(representations["restored_losses"]).exp()
        return {"restored_perplexity": perplexity, **super().measures(representations)}
