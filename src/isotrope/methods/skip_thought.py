"""Skip-Thought (Kiros et al. 2015): from a sentence's vector alone, two decoders write the sentence before it and the
one behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.decoding import Generation, GenerationSettings
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card
from isotrope.towers.keeping import Tower
from isotrope.views.decoder_targets import Target, frame_targets, nothing, whole
from isotrope.views.segments import document_sizes

SIDES = {"before": -1, "after": 1}


@dataclass(frozen=True)
class SkipThoughtSettings(GenerationSettings):
    decoder_layers: int | None = 1  # of each decoder; none: as many as the encoder has


class SkipThought(Generation):
    """L = −mean log p(w_t of s_{i−1} | w_<t, e(s_i)) − mean log p(w_t of s_{i+1} | w_<t, e(s_i)), means over tokens.

    Each decoder has layers of its own; token table and vocabulary head are shared. Neighbours stand in the same
    document: at its ends there is one of them, and nothing is asked for the other.
    """

    card = Card(
        name="skip-thought",
        title="Skip-Thought",
        paper="Kiros et al. Skip-Thought Vectors. NeurIPS 2015",
        year=2015,
        needs="documents",
        accepts=("dialogues",),
        family="generative",
    )
    ragged = tuple(SIDES)
    shared_views = ("source",)
    from_vector = True
    keeps = "best"  # it trains the vector that is kept
    Settings = SkipThoughtSettings

    @classmethod
    def usable(cls, settings: Any, corpus: Corpus, rows: Rows) -> Rows:
        sizes = document_sizes(corpus, cls.card.name)
        return rows[sizes[corpus.documents[rows]] > 1]

    def remarks(self) -> list[str]:
        sizes = np.empty(0) if self.corpus is None else np.diff(self.corpus.starts, append=len(self.corpus))
        alone = int((sizes == 1).sum())
        return [f"{alone:,} of {len(sizes):,} documents are a single sentence, which is left out."] if alone else []

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        roles = super().towers(encoder)
        return {"words": roles["words"], "before": roles["decoder"], "after": self.decoder(encoder)}

    def neighbour(self, corpus: Corpus, row: int, step: int) -> Target:
        tokenizer = self.encoder.text_tokenizer
        there = row + step in corpus.document(row)
        return whole(corpus.tokens(row + step)[: self.room], tokenizer) if there else nothing(tokenizer)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        sides = {
            side: [self.neighbour(records.corpus, row, step) for row in records.rows] for side, step in SIDES.items()
        }
        framed = {side: frame_targets(targets, self.encoder.text_tokenizer) for side, targets in sides.items()}
        return {"source": self.frame(records.tokens()), **framed}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        memory, mask = self.memory(batch)
        return {side: self.target_losses(side, batch[side], memory, mask) for side in SIDES}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        # A small batch may have no sentence with a neighbour on one side.
        return {side: representations[side].sum() / max(len(representations[side]), 1) for side in SIDES}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        both = torch.cat([representations[side] for side in SIDES])
        return {"skip_thought_perplexity": both.mean().exp()}
