"""MASS (Song et al. 2019): one fragment of a sentence is hidden, and the decoder writes exactly that fragment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from isotrope.data.corpus import Sentence, running_text
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.decoding import TextDecoding, TextDecodingSettings, Unit
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import ShareAboveZero, at_least
from isotrope.towers.keeping import Tower
from isotrope.views.decoder_targets import Target, begin_of
from isotrope.views.edits import Ids
from isotrope.views.hidden_spans import draw_fragment, hide_fragment


@dataclass(frozen=True)
class MASSSettings(TextDecodingSettings):
    """One hidden token is close to masked language modelling, all of them is a language model."""

    unit: Unit = "sentence"
    fragment_share: Annotated[ShareAboveZero, "Share of the tokens that are the hidden fragment"] = 0.5
    edge_share: Annotated[
        float,
        at_least(0, most=0.5),
        "Share of the fragments that begin the text, and again of those that end it; the released code has 0.2",
    ] = 0.0


class MASS(TextDecoding[MASSSettings]):
    """L = −(1/k) Σ_{t=u..v} log p(x_t | x_u … x_{t−1}, x without u..v),   k = v − u + 1.

    The decoder sees the fragment's tokens at their places in the text; of what the encoder sees it gets one token as
    input, the one before the fragment. When to use it: to train an encoder together with a generator of text. What goes
    wrong: the encoder's states are trained, its pooled vector is not, so sentence similarity gains little. Siblings:
    ``bart`` writes the whole text, ``t5-spans`` many short spans, ``tsdae`` from the vector alone.
    """

    card = Card(
        name="mass",
        title="MASS, masked fragments",
        paper="Song, Tan, Qin, Lu, Liu. MASS: Masked Sequence to Sequence Pre-training for Language Generation. "
        "ICML 2019",
        year=2019,
        needs="sentences",
        family="generative",
        read_out="mean",
    )
    Settings = MASSSettings

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if encoder.text_tokenizer.mask is None:
            raise InputError("MASS needs a tokenizer with a [MASK] token.")
        return super().towers(encoder)

    def example(self, text: Sequence[Sentence], rng: np.random.Generator) -> tuple[Ids, Target]:
        ids, tokenizer = running_text(text), self.encoder.text_tokenizer
        fragment = draw_fragment(ids.size, self.settings.fragment_share, self.settings.edge_share, rng)
        before = [begin_of(tokenizer), *ids.tolist()][fragment]
        place = max(len(tokenizer.prefix) + fragment.start - 1, 0)
        return hide_fragment(ids, fragment, tokenizer, rng), Target(before, ids[fragment].tolist(), place)
