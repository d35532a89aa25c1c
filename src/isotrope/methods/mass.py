"""MASS (Song et al. 2019): one fragment of a sentence is hidden, and the decoder writes exactly that fragment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.decoding import TextGeneration, TextSettings
from isotrope.towers.keeping import Tower
from isotrope.views.decoder_targets import Target, begin_of
from isotrope.views.edits import Ids
from isotrope.views.hidden_spans import draw_fragment, hide_fragment


@dataclass(frozen=True)
class MASSSettings(TextSettings):
    unit: str = "sentence"  # a text is each sentence by itself, or a run of them that fills a row
    fragment_share: float = (
        0.5  # of the tokens; one token is close to masked language modelling, all of them is a language model
    )
    edge_share: float = 0.0  # of the fragments begin the text, and as many end it; the released code has 0.2


class MASS(TextGeneration):
    """L = −(1/k) Σ_{t=u..v} log p(x_t | x_u … x_{t−1}, x without u..v),   k = v − u + 1.

    The decoder sees the fragment's tokens at their places in the text, and no token that the encoder sees but the one
    before it.
    """

    card = Card(
        name="mass",
        title="MASS, masked fragments",
        paper="Song, Tan, Qin, Lu, Liu. MASS: Masked Sequence to Sequence Pre-training for Language Generation. ICML 2019",
        year=2019,
        needs="sentences",
        family="generative",
    )
    Settings = MASSSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        if not 0 < settings.fragment_share <= 1:
            raise InputError(f"fragment_share must be above 0 and at most 1; {settings.fragment_share} was given.")
        if not 0 <= settings.edge_share <= 0.5:
            raise InputError(
                f"edge_share counts twice, for the start and the end, and lies between 0 and 0.5; {settings.edge_share} was given."
            )

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if encoder.text_tokenizer.mask is None:
            raise InputError("MASS needs a tokenizer with a [MASK] token.")
        return super().towers(encoder)

    def example(self, text: Sequence[Ids], rng: np.random.Generator) -> tuple[Ids, Target]:
        ids, tokenizer = np.concatenate(text), self.encoder.text_tokenizer
        fragment = draw_fragment(ids.size, self.settings.fragment_share, self.settings.edge_share, rng)
        before = [begin_of(tokenizer), *ids.tolist()][fragment]
        place = max(len(tokenizer.prefix) + fragment.start - 1, 0)
        return hide_fragment(ids, fragment, tokenizer, rng), Target(before, ids[fragment].tolist(), place)
