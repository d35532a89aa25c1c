"""BART (Lewis et al. 2020): a text is corrupted in any way, and the decoder reconstructs the whole of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from isotrope.data.corpus import Sentence, running_text
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.decoding import TextDecoding, TextDecodingSettings
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import Positive
from isotrope.towers.keeping import Tower
from isotrope.views.corruption import parse_noise
from isotrope.views.decoder_targets import Target, whole
from isotrope.views.edits import Ids


@dataclass(frozen=True)
class BARTSettings(TextDecodingSettings):
    """The paper's best mixture: sentences in another order, and three words in ten infilled."""

    noise: Annotated[str, 'Corruptions with their shares: permute, mask, delete, infill, rotate; a comma is "then"'] = (
        "permute:1,infill:0.3"
    )
    infill_length: Annotated[Positive, "Mean length of an infilled span in words (Poisson)"] = 3.0

    def rules(self) -> None:
        parse_noise(self.noise, self.infill_length)


class BART(TextDecoding[BARTSettings]):
    """L = −(1/T) Σ_t log p(x_t | x_<t, noise(x)): every token of the clean text is predicted, whatever the noise did.

    When to use it: to adapt an encoder to a domain with noise of one's own choice. What goes wrong: a decoder that
    attends to every state leaves little for the pooled vector to say. Siblings: ``tsdae`` decodes from the vector
    alone, ``mass`` and ``t5-spans`` write only what was hidden.
    """

    card = Card(
        name="bart",
        title="BART, denoising of texts",
        paper="Lewis et al. BART: Denoising Sequence-to-Sequence Pre-training. ACL 2020",
        year=2020,
        needs="documents",
        family="generative",
        read_out="mean",
    )
    Settings = BARTSettings

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        self.corruptor = parse_noise(self.settings.noise, self.settings.infill_length)(encoder.text_tokenizer)
        return super().towers(encoder)

    def example(self, text: Sequence[Sentence], rng: np.random.Generator) -> tuple[Ids, Target]:
        return self.corruptor(text, rng), whole(running_text(text), self.encoder.text_tokenizer)
