"""Decoding as a capability: a text is corrupted, a decoder writes the target, the encoder is kept.

    L = mean over the target's tokens of −log p(y_t | y_<t, memory), the token that ends a target included

The papers differ in how source and target are made of a text, and in what the decoder sees of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isotrope.data.corpus import Corpus, Records, Sentence, running_text
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Method, Prepared
from isotrope.methods.frame.own_task import OwnTask
from isotrope.methods.frame.settings import OneOf, Positive, Settings, at_least
from isotrope.objectives.vectors import mean
from isotrope.towers.decoder import Decoder, Vocabulary
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.decoder_targets import Target, frame_targets
from isotrope.views.edits import Ids
from isotrope.views.masking import Masked
from isotrope.views.numbers import Numbers
from isotrope.views.segments import run_from

DecoderLayers = Annotated[int | None, at_least(1, most=1_000), "Layers of a decoder; none: as many as the encoder has"]
Unit = Annotated[
    str, OneOf("run", "sentence"), "What a text is: a run of sentences that fills a row, or each sentence by itself"
]


@dataclass(frozen=True)
class DecodingSettings(Settings):
    """The decoder's own weights must catch up with an encoder that is trained already, hence their higher rate."""

    decoder_layers: DecoderLayers = 2
    decoder_rate: Annotated[Positive, "Multiple of the learning rate for the decoder's own weights"] = 10.0


D = TypeVar("D", bound=DecodingSettings)


class Decoding(Method[D], OwnTask):
    """``example`` makes a source and a target of a text; the decoder is dropped afterwards.

    The memory is what the decoder sees of the source: the encoder's last states, or the sentence's vector alone.
    """

    ragged: tuple[str, ...] = ("target_losses",)
    shared_views: tuple[str, ...] = ("texts",)  # an auxiliary loss reads the text as it was
    keeps: str = "last"
    language_head: ClassVar[bool] = True
    extra_tokens: ClassVar[int] = 0  # that only training knows
    from_vector: ClassVar[bool] = False  # the decoder sees the sentence's vector alone

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        self.room = self._room(encoder)
        return {"words": Trained(Vocabulary(encoder, self.extra_tokens)), "decoder": self.decoder(encoder)}

    def _room(self, encoder: Encoder) -> int:
        """Tokens of a text, at most, without the special ones."""
        frame = len(encoder.text_tokenizer.prefix) + len(encoder.text_tokenizer.suffix)
        room = min(self.max_length or encoder.max_length, encoder.max_length) - frame
        if room < 1:
            raise InputError(f"max_length must be at least {frame + 1}: {frame} special tokens and one of the text.")
        return room

    def decoder(self, encoder: Encoder) -> Trained:
        width = encoder.dimension if self.from_vector else int(encoder.backbone.config.hidden_size)
        return Trained(Decoder(encoder, self.settings.decoder_layers, width, self.tied), self.settings.decoder_rate)

    @property
    def tied(self) -> bool:
        """Whether the decoder's layers are the encoder's own."""
        return False

    def longest(self) -> int:
        """Tokens of a text at most."""
        return self.room

    def text(self, corpus: Corpus, row: int) -> list[Sentence]:
        """The sentences of a record's text, cut to fit."""
        return [corpus.sentence(row).cut(self.longest())]

    def example(self, text: Sequence[Sentence], rng: np.random.Generator) -> tuple[Ids, Target]:
        raise NotImplementedError

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        texts = [self.text(records.corpus, row) for row in records.rows]
        sources, targets = zip(*(self.example(text, rng) for text in texts), strict=True)
        return {
            "texts": self.frame([running_text(text) for text in texts]),
            "source": self.frame(sources),
            "target": frame_targets(targets, self.encoder.text_tokenizer),
            "places": Numbers.of([target.place for target in targets]),
        }

    def memory(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """What the decoder sees of the source, [rows, length, width], and its mask."""
        if self.from_vector:
            (vectors,) = self.encoder.embed(batch["source"])
            return vectors.unsqueeze(1), None
        return self.encoder.states(batch["source"]), batch["source"].mask

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        losses = self.target_losses("decoder", batch["target"], *self.memory(batch), batch["places"].values)
        return {"target_losses": losses}

    def target_losses(
        self, decoder: str, target: Masked, memory: Tensor, mask: Tensor | None, places: Tensor | None = None
    ) -> Tensor:
        """−log p of each token that is asked for; the vocabulary is scored nowhere else."""
        words = self.tower["words"]
        states = self.tower[decoder](words.module, target, memory, mask, places)
        return cross_entropy(words(states).float(), target.labels.flatten()[target.asked], reduction="none")

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {self.card.name: mean(representations["target_losses"])}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {f"{self.card.name.replace('-', '_')}_perplexity": representations["target_losses"].mean().exp()}


@dataclass(frozen=True)
class TextDecodingSettings(DecodingSettings):
    """What the encoder reads at a time."""

    unit: Unit = "run"


T = TypeVar("T", bound=TextDecodingSettings)


class TextDecoding(Decoding[T]):
    """Over runs of sentences, or over single ones.

    Sentences of a file without documents do not belong together, and stay by themselves.
    """

    @classmethod
    def record_types(cls, settings: T) -> tuple[str, ...]:
        return ("documents",) if settings.unit == "run" else ("sentences",)

    def prepare(self, corpus: Corpus) -> Prepared:
        if self.settings.unit == "sentence" or len(corpus.starts) > 1:
            return Prepared()
        remark = "The text has no empty line between documents, so each sentence is a text by itself."
        return Prepared(remarks=(remark,))

    def text(self, corpus: Corpus, row: int) -> list[Sentence]:
        if self.settings.unit == "sentence" or len(corpus.starts) < 2:
            return super().text(corpus, row)
        *whole, last = [corpus.sentence(each) for each in run_from(corpus, row, self.longest())]
        taken = len(running_text(whole)) if whole else 0
        return [*whole, last.cut(self.longest() - taken)]
