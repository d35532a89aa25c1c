"""Skip-Thought (Kiros et al. 2015): two decoders write the sentences before and after one, from its vector alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.decoding import DecoderLayers, Decoding, DecodingSettings
from isotrope.methods.frame.method import Card, Prepared
from isotrope.objectives.vectors import mean
from isotrope.towers.keeping import Tower
from isotrope.views.decoder_targets import Target, frame_targets, nothing, whole
from isotrope.views.segments import document_sizes

SIDES = {"before": -1, "after": 1}


@dataclass(frozen=True)
class SkipThoughtSettings(DecodingSettings):
    """Each of the two decoders has one layer, as in the paper."""

    decoder_layers: DecoderLayers = 1


class SkipThought(Decoding[SkipThoughtSettings]):
    """L = −mean log p(w_t of s_{i−1} | w_<t, e(s_i)) − mean log p(w_t of s_{i+1} | w_<t, e(s_i)), means over tokens.

    Each decoder has layers of its own; token table and vocabulary head are shared. When to use it: running text or
    dialogues, where neighbours have a subject in common. What goes wrong: neighbours must stand in the same document;
    at its ends there is one of them, and nothing is asked for the other, so a document of one sentence is left out.
    Siblings: ``quick-thoughts`` chooses the neighbour among others instead of writing it, ``tsdae`` writes the sentence
    itself.
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

    def prepare(self, corpus: Corpus) -> Prepared:
        sizes = document_sizes(corpus, self.card.name)
        alone = int((sizes == 1).sum())
        said = f"{alone:,} of {len(sizes):,} documents are a single sentence, which is left out."
        return Prepared(sizes[corpus.documents] > 1, (said,) if alone else ())

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        towers = super().towers(encoder)
        return {"words": towers["words"], "before": towers["decoder"], "after": self.decoder(encoder)}

    def neighbour(self, corpus: Corpus, row: int, step: int) -> Target:
        tokenizer = self.encoder.text_tokenizer
        there = row + step in corpus.document(row)
        return whole(corpus.tokens(row + step)[: self.room], tokenizer) if there else nothing(tokenizer)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        corpus, rows = records.corpus, records.rows
        sides = {side: [self.neighbour(corpus, row, step) for row in rows] for side, step in SIDES.items()}
        framed = {side: frame_targets(targets, self.encoder.text_tokenizer) for side, targets in sides.items()}
        return {"source": self.frame(records.tokens()), **framed}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        memory, mask = self.memory(batch)
        return {side: self.target_losses(side, batch[side], memory, mask) for side in SIDES}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        # A small batch may have no sentence with a neighbour on one side.
        return {side: mean(representations[side]) for side in SIDES}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        both = torch.cat([representations[side] for side in SIDES])
        return {"skip_thought_perplexity": both.mean().exp()}
