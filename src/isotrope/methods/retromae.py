"""RetroMAE (Xiao et al. 2022): a weak decoder restores a text from its vector; the encoder read it with few masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.masked_language import MaskedLanguage, MaskingSettings
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import OpenShare, Positive
from isotrope.objectives.vectors import mean
from isotrope.tokens.padded import Tokens
from isotrope.towers.decoder import HEAD_WIDTH, SPREAD
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.masking import Masked


@dataclass(frozen=True)
class RetroMAESettings(MaskingSettings):
    """The paper's: the encoder sees most of the text, the decoder half of it."""

    mask_rate: Annotated[OpenShare, "Probability with which a token is masked for the encoder"] = 0.3
    decoder_mask: Annotated[
        OpenShare, "Share of the other tokens that the decoder does not see, drawn for each one"
    ] = 0.5
    decoder_rate: Annotated[Positive, "Multiple of the learning rate for the decoder's own weights"] = 10.0


class OneLayer(nn.Module):
    """The decoder: one layer of attention and feed-forward, each with its norm behind it, and positions of its own.

    What asks and what is looked at are apart, so that each place can have a context of its own (H1 and H2 of the
    paper).
    """

    def __init__(self, width: int, encoder: Encoder, table_width: int) -> None:
        super().__init__()
        self.heads = max(width // HEAD_WIDTH, 1)
        self.memory, self.token = (
            nn.Identity() if size == width else nn.Linear(size, width) for size in (encoder.dimension, table_width)
        )
        self.positions = nn.Embedding(encoder.max_length, width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.enter, self.between, self.behind = (nn.LayerNorm(width) for _ in range(3))
        nn.init.normal_(self.positions.weight, std=SPREAD)

    def forward(self, vectors: Tensor, embedded: Tensor, visible: Tensor) -> Tensor:
        """States [rows, n, width] of vectors [rows, d] and token embeddings [rows, n, e].

        ``visible`` [rows, n, n + 1] says what each place looks at; its first column is the vector.
        """
        places = self.positions.weight[: embedded.shape[1]]
        memory = self.memory(vectors).unsqueeze(1)
        asking = self.enter(memory + places)  # H1: the vector at each place
        seen = torch.cat([self.enter(memory), self.enter(self.token(embedded) + places)], dim=1)  # H2: vector, tokens
        query, key, value = (self._split(part) for part in (self.query(asking), self.key(seen), self.value(seen)))
        found = scaled_dot_product_attention(query, key, value, visible.unsqueeze(1))
        states = self.between(asking + self.out(found.transpose(1, 2).flatten(2)))
        restored: Tensor = self.behind(states + self.feed(states))
        return restored

    def _split(self, states: Tensor) -> Tensor:
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class RetroMAE(MaskedLanguage[RetroMAESettings]):
    """L = MLM(x̃) − mean over the text's tokens of log p(x_i | e(x̃), s(x without x_i))

    x̃ is the masked text that the encoder reads, e its vector, s a random half of the other tokens, drawn for each
    i: every token is restored, each from its own context. The decoder is one layer, so what it lacks must be in e.
    When to use it: plain passages before a contrastive method, for search above all. What goes wrong: the cosines of
    the vectors are not trained, so the encoder alone is no search encoder; with little hidden from the decoder it does
    without the vector. Siblings: ``tsdae`` writes the text word by word, ``mlm`` has no vector.
    """

    card = Card(
        name="retromae",
        title="RetroMAE, masked auto-encoding through the vector",
        paper="Xiao, Liu, Shao, Cao. RetroMAE: Pre-Training Retrieval-oriented Language Models Via Masked "
        "Auto-Encoder. EMNLP 2022",
        year=2022,
        needs="sentences",
        family="generative",
        read_out="cls",
    )
    Settings = RetroMAESettings
    ragged = ("token_losses", "restored_losses")
    parts = ("masked", "whole")
    terms = (*MaskedLanguage.terms, "restored")

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        self.table = encoder.backbone.get_input_embeddings()
        layer = OneLayer(int(encoder.backbone.config.hidden_size), encoder, self.table.weight.shape[1])
        return {**super().towers(encoder), "decoder": Trained(layer, self.settings.decoder_rate)}

    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        special = torch.from_numpy(np.isin(tokens.ids.numpy(), list(self.encoder.text_tokenizer.specials)))
        labels = tokens.ids.masked_fill(special | (tokens.mask == 0), -100)
        return {"masked": self.masked(tokens, rng), "whole": Masked.of(tokens, labels)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        masked, whole = batch["masked"], batch["whole"]
        states, vectors = self.encoder.states_and_vectors(masked.tokens)
        restored = self.tower["decoder"](vectors, self.table(whole.tokens.ids), self.visible(whole.tokens.mask))
        return {
            "token_losses": self.token_losses(states, masked),
            "restored_losses": self.token_losses(restored, whole),
        }

    def visible(self, mask: Tensor) -> Tensor:
        """[rows, n, n + 1]: the vector always, never the place itself; the other tokens by a draw for each place."""
        rows, width = mask.shape
        drawn = torch.rand(rows, width, width, device=mask.device) >= self.settings.decoder_mask
        drawn &= (mask > 0).unsqueeze(1)
        drawn &= ~torch.eye(width, dtype=torch.bool, device=mask.device)
        return torch.nn.functional.pad(drawn, (1, 0), value=True)

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {**super().loss(representations, generator), "restored": mean(representations["restored_losses"])}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        restored = representations["restored_losses"].mean().exp()
        return {**super().on_held_out(representations), "restored_perplexity": restored}
