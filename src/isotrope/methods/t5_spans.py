"""T5's span corruption (Raffel et al. 2020): spans give way to sentinels, and the decoder writes each sentinel and what
stood there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from torch import Tensor

from isotrope.errors import InputError
from isotrope.methods.frame.decoding import TextGeneration, TextSettings
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.method import Card
from isotrope.towers.decoder import Vocabulary
from isotrope.towers.keeping import Trained
from isotrope.views.decoder_targets import Target, whole
from isotrope.views.edits import Ids
from isotrope.views.hidden_spans import draw_spans, raw_length, with_sentinels

SENTINELS = 100


@dataclass(frozen=True)
class T5SpansSettings(TextSettings):
    density: float = 0.15  # share of the tokens that are hidden
    span_length: float = 3.0  # mean of a span's tokens
    roll: bool = False  # the pattern begins anywhere, so that the first token may be hidden and the last may stay


class T5Spans(TextGeneration):
    """L = −(1/T) Σ_t log p(y_t | y_<t, x̃).   x: a b c d e f g,   x̃: a b ⟨1⟩ e f ⟨2⟩,   y: ⟨1⟩ c d ⟨2⟩ g.

    Sentinels count down from the top of a vocabulary that is longer by them than the encoder's; they are dropped with
    the decoder.
    """

    card = Card(
        name="t5-spans",
        title="T5, span corruption",
        paper="Raffel et al. Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer. JMLR 2020",
        year=2020,
        needs="documents",
        family="generative",
    )
    extra_tokens = SENTINELS
    Settings = T5SpansSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        if not 0 < settings.density < 1:
            raise InputError(f"density must lie between 0 and 1; {settings.density} was given.")
        if not settings.span_length >= 1:
            raise InputError(f"span_length must be at least 1; {settings.span_length} was given.")

    @property
    def noise(self) -> tuple[float, float, int]:
        return (
            self.settings.density,
            self.settings.span_length,
            SENTINELS - 1,
        )  # one is left for a span that is rolled over the end

    def longest(self) -> int:
        return raw_length(
            max(self.room - self.settings.roll, 1), *self.noise
        )  # a span that is rolled over the end is two

    def example(self, text: Sequence[Ids], rng: np.random.Generator) -> tuple[Ids, Target]:
        ids = np.concatenate(text)
        hidden = draw_spans(ids.size, *self.noise, rng)
        if self.settings.roll:
            hidden = np.roll(hidden, int(rng.integers(ids.size)))
        top = self.words.table.num_embeddings + SENTINELS - 1
        source, target = with_sentinels(ids, hidden, top)
        return source, whole(target, self.encoder.text_tokenizer)

    @property
    def words(self) -> Vocabulary:
        return cast(Vocabulary, cast(Trained, self.tower["words"]).module)

    def memory(self, batch: Batch) -> tuple[Tensor, Tensor]:
        source = batch["source"]
        states: Tensor = self.encoder.backbone(
            inputs_embeds=self.words.embed(source.ids), attention_mask=source.mask
        ).last_hidden_state
        return states, source.mask
