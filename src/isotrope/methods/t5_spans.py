"""T5's span corruption (Raffel et al. 2020): sentinels replace spans, and the decoder writes each with its span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, cast

import numpy as np
from torch import Tensor

from isotrope.data.corpus import Sentence, running_text
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.decoding import TextDecoding, TextDecodingSettings
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import OpenShare, at_least
from isotrope.towers.decoder import Vocabulary
from isotrope.towers.keeping import Trained
from isotrope.views.decoder_targets import Target, whole
from isotrope.views.edits import Ids
from isotrope.views.hidden_spans import draw_spans, raw_length, with_sentinels

SENTINELS = 100


@dataclass(frozen=True)
class T5SpansSettings(TextDecodingSettings):
    """Without ``roll`` the first token always stays and the last one is always hidden, as in the paper."""

    density: Annotated[OpenShare, "Share of the tokens that are hidden"] = 0.15
    span_length: Annotated[float, at_least(1), "Mean length of a hidden span in tokens"] = 3.0
    roll: Annotated[bool, "Let the pattern begin anywhere, so that the first token may be hidden"] = False


class T5Spans(TextDecoding[T5SpansSettings]):
    """L = −(1/T) Σ_t log p(y_t | y_<t, x̃).   x: a b c d e f g,   x̃: a b ⟨1⟩ e f ⟨2⟩,   y: ⟨1⟩ c d ⟨2⟩ g.

    Sentinels count down from the top of a vocabulary that is longer by them than the encoder's; they are dropped with
    the decoder. When to use it: long texts, because targets are short and training is cheap. What goes wrong: a text of
    a few tokens has room for one span only; the pooled vector is not trained. Siblings: ``bart`` writes the whole text,
    ``mass`` one long fragment.
    """

    card = Card(
        name="t5-spans",
        title="T5, span corruption",
        paper="Raffel et al. Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer. "
        "JMLR 2020",
        year=2020,
        needs="documents",
        family="generative",
        read_out="mean",
    )
    extra_tokens = SENTINELS
    Settings = T5SpansSettings

    @property
    def noise(self) -> tuple[float, float, int]:
        # One sentinel is left for a span that is rolled over the end.
        return self.settings.density, self.settings.span_length, SENTINELS - 1

    def longest(self) -> int:
        # A span that is rolled over the end becomes two.
        return raw_length(max(self.room - self.settings.roll, 1), *self.noise)

    def example(self, text: Sequence[Sentence], rng: np.random.Generator) -> tuple[Ids, Target]:
        ids = running_text(text)
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
        given = {"inputs_embeds": self.words.embed(source.ids), "attention_mask": source.mask}
        states: Tensor = self.encoder.backbone(**given).last_hidden_state
        return states, source.mask
