"""StructBERT (Wang et al. 2020): masked tokens, shuffled words and the order of segments, predicted together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Annotated

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.masked_language import MaskedLanguage, MaskingSettings
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.sentence_pairs import Pair, SentencePairs, SentencePairSettings
from isotrope.methods.frame.settings import ShareAboveZero
from isotrope.objectives.vectors import mean
from isotrope.tokens.padded import Tokens
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.towers.keeping import Tower
from isotrope.views.masking import Masked, framing

RUN = 3
ORDERS = np.array([order for order in permutations(range(RUN)) if order != tuple(range(RUN))])  # the five wrong ones


def shuffle_trigrams(masked: Masked, tokenizer: TextTokenizer, rng: np.random.Generator, share: float = 0.05) -> Masked:
    """``share`` of the trigrams in which nothing is masked are put into a wrong order.

    Trigrams neither overlap nor reach over a special token, a prompt or a template. The labels are those of the
    shuffled positions alone.
    """
    ids = masked.tokens.ids.numpy().copy()
    free = (masked.tokens.mask.numpy() > 0) & ~np.isin(ids, list(tokenizer.specials)) & (masked.labels.numpy() < 0)
    free &= ~framing(masked.tokens, tokenizer)
    labels = np.full_like(ids, -100)
    if ids.shape[1] >= RUN:
        whole = np.lib.stride_tricks.sliding_window_view(free, RUN, axis=1).all(axis=2)
        chosen = np.argwhere(whole & (rng.random(whole.shape) < share))
        for row, start in rng.permutation(chosen):  # in random order: of two that overlap, either may stay
            place = slice(start, start + RUN)
            if (labels[row, place] < 0).all():
                labels[row, place] = ids[row, place]
                ids[row, place] = ids[row, place][ORDERS[rng.integers(len(ORDERS))]]
    tokens = Tokens(torch.from_numpy(ids), masked.tokens.mask, masked.tokens.lengths, masked.tokens.segments)
    return Masked.of(tokens, torch.from_numpy(labels))


@dataclass(frozen=True)
class StructBERTSettings(SentencePairSettings, MaskingSettings):
    """BERT's masks, and a few shuffled words."""

    shuffle_share: Annotated[ShareAboveZero, "Share of the trigrams without a masked token that are shuffled"] = 0.05


class StructBERT(SentencePairs[StructBERTSettings], MaskedLanguage[StructBERTSettings]):
    """L = MLM + words + sentences, equal weights, from one forward over text with both corruptions.

    MLM         mean over masked tokens of −log p(token | the rest)
    words       mean over shuffled positions of −log p(the token that stood there | the rest)
    sentences   3-way cross-entropy at [CLS]; 0: B follows A, 1: B precedes A, 2: B is of another document; a third each

    When to use it: to go on pre-training on documents, where the order of words and sentences should count. What goes
    wrong: texts shorter than three words have no trigram to shuffle, and single sentences no neighbour. Siblings:
    ``mlm`` is the first term, ``nsp`` and ``sop`` are two-class forms of the last.
    """

    card = Card(
        name="structbert",
        title="StructBERT: word and sentence structure",
        paper="Wang, Bi, Yan, Wu, Bao, Xia, Peng, Si. StructBERT: Incorporating Language Structures into Pre-training. "
        "ICLR 2020",
        year=2020,
        needs="documents",
        family="generative",
    )
    ragged = ("token_losses", "word_losses", "words_right")
    shared_views = ()
    classes = 3
    Settings = StructBERTSettings

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        return {**SentencePairs.towers(self, encoder), **MaskedLanguage.towers(self, encoder)}

    def pair(self, records: Records, row: int, rng: np.random.Generator) -> Pair:
        first, second, length = self.followed(records.corpus, row, rng)
        label = int(rng.integers(3))
        if label == 2:
            return *self.unrelated(records, first, length, rng), label
        earlier, later = self.related(records.corpus, first, second, rng)
        return (earlier, later, label) if label == 0 else (later, earlier, label)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        views = SentencePairs.views(self, records, rng)
        pairs = views.pop("pairs")
        assert isinstance(pairs, Tokens)
        masked = self.masked(pairs, rng)
        words = shuffle_trigrams(masked, self.encoder.text_tokenizer, rng, self.settings.shuffle_share)
        return {"masked": Masked(words.tokens, masked.labels, masked.asked), "words": words, **views}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        states = self.encoder.states(batch["masked"].tokens)
        words: Masked = batch["words"]
        scores, answers = self.scores_at(states, words.asked), words.labels.flatten()[words.asked]
        return {
            **self.classified(states[:, 0], batch),
            "token_losses": self.token_losses(states, batch["masked"]),
            "word_losses": cross_entropy(scores, answers, reduction="none"),
            "words_right": (scores.detach().argmax(dim=1) == answers).long(),
        }

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {
            "mlm": mean(representations["token_losses"]),
            "words": mean(representations["word_losses"]),  # short texts may have no trigram at all
            "sentences": cross_entropy(representations["scores"], representations["labels"]),
        }

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        right = representations["words_right"]
        return {
            **SentencePairs.on_held_out(self, representations),
            **MaskedLanguage.on_held_out(self, representations),
            "word_order_accuracy": right.float().sum() / max(len(right), 1),
        }
