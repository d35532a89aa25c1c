"""What methods with a decoder share: a text is corrupted, a decoder writes the target, the encoder is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.settings import Settings
from isotrope.towers.decoder import Decoder, Vocabulary
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.decoder_targets import Target, frame_targets
from isotrope.views.edits import Ids
from isotrope.views.masking import Masked
from isotrope.views.numbers import Numbers
from isotrope.views.segments import run_from

UNITS = ("run", "sentence")


@dataclass(frozen=True)
class GenerationSettings(Settings):
    decoder_layers: int | None = 2  # none: as many as the encoder has
    decoder_rate: float = (
        10.0  # multiple of the learning rate for the decoder's own weights, which must catch up with a trained encoder
    )


class Generation(Method):
    """L = mean over the target's tokens of −log p(y_t | y_<t, memory), the token that ends a target included.

    ``example`` makes a source and a target of a text. The memory is what the decoder sees of the source: the encoder's
    last states, or the sentence's vector alone. The decoder is dropped.
    """

    ragged: tuple[str, ...] = ("target_losses",)
    shared_views = ("texts",)  # a task beside it reads the text as it was
    keeps = "last"
    language_head = True
    extra_tokens: ClassVar[int] = 0  # that only training knows
    from_vector: ClassVar[bool] = False  # the decoder sees the sentence's vector alone

    @classmethod
    def check(cls, settings: Any) -> None:
        layers = settings.decoder_layers
        if layers is not None and layers < 1:
            raise InputError(f"decoder_layers must be at least 1; {layers} was given.")
        if not settings.decoder_rate > 0:
            raise InputError(f"decoder_rate must be above 0; {settings.decoder_rate} was given.")

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        frame = len(encoder.text_tokenizer.prefix) + len(encoder.text_tokenizer.suffix)
        self.room = min(self.max_length or encoder.max_length, encoder.max_length) - frame
        if self.room < 1:
            raise InputError(f"max_length must be at least {frame + 1}: {frame} special tokens and one of the text.")
        return {"words": Trained(Vocabulary(encoder, self.extra_tokens)), "decoder": self.decoder(encoder)}

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

    def text(self, corpus: Corpus, row: int) -> list[Ids]:
        """The sentences of a record's text, cut to fit."""
        return [corpus.tokens(row)[: self.longest()]]

    def example(self, text: Sequence[Ids], rng: np.random.Generator) -> tuple[Ids, Target]:
        raise NotImplementedError

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        texts = [self.text(records.corpus, row) for row in records.rows]
        sources, targets = zip(*(self.example(text, rng) for text in texts), strict=True)
        return {
            "texts": self.frame([np.concatenate(text) for text in texts]),
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
        return {
            "target_losses": self.target_losses("decoder", batch["target"], *self.memory(batch), batch["places"].values)
        }

    def target_losses(
        self, decoder: str, target: Masked, memory: Tensor, mask: Tensor | None, places: Tensor | None = None
    ) -> Tensor:
        """−log p of each token that is asked for; the vocabulary is scored nowhere else."""
        words = self.tower["words"].module
        states = self.tower[decoder](words, target, memory, mask, places)
        return cross_entropy(
            self.tower["words"](states).float(), target.labels.flatten()[target.asked], reduction="none"
        )

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {self.card.name: representations["target_losses"].mean()}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {f"{self.card.name.replace('-', '_')}_perplexity": representations["target_losses"].mean().exp()}


@dataclass(frozen=True)
class TextSettings(GenerationSettings):
    unit: str = "run"  # a text is a run of sentences that fills a row, or each sentence by itself


class TextGeneration(Generation):
    """Over runs of sentences, or over single ones.

    Sentences of a file without documents do not belong together, and stay by themselves.
    """

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        if settings.unit not in UNITS:
            raise InputError(f"unit is one of {', '.join(UNITS)}; '{settings.unit}' was given.")

    @classmethod
    def record_types(cls, settings: Any) -> tuple[str, ...]:
        return ("documents",) if settings.unit == "run" else ("sentences",)

    def remarks(self) -> list[str]:
        if self.settings.unit == "sentence" or self.corpus is None or len(self.corpus.starts) > 1:
            return []
        return ["The text has no empty line between documents, so each sentence is a text by itself."]

    def text(self, corpus: Corpus, row: int) -> list[Ids]:
        if self.settings.unit == "sentence" or len(corpus.starts) < 2:
            return super().text(corpus, row)
        sentences = [corpus.tokens(each) for each in run_from(corpus, row, self.longest())]
        sentences[-1] = sentences[-1][: self.longest() - sum(map(len, sentences[:-1]))]
        return sentences
