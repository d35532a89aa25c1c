"""Paraphrases where there are no real ones: a masked-language model replaces some words of a text.

    w_t ← one of the ten likeliest others under p(· | text), drawn by their probabilities

Use them as pairs for methods that need pairs. They keep the word order and may change the meaning (names and numbers
are replaced too), so real paraphrases are better wherever there are some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.language_head import vocabulary_scores
from isotrope.encoders.modes import evaluating
from isotrope.encoders.vector_groups import TOKEN_BUDGET, plan
from isotrope.errors import InputError

BLOCK = 2048  # texts whose order is changed for the sake of equal lengths
CHOICES = 10  # the likeliest words, of which one is drawn


@dataclass(frozen=True)
class Place:
    """A word to replace: the number of its token, and where its letters begin and end in the text."""

    token: int
    start: int
    end: int


@dataclass(frozen=True)
class Draft:
    """A text being rewritten: its ids, the places chosen, and its random generator."""

    text: str
    ids: npt.NDArray[np.int64]
    places: list[Place]
    rng: np.random.Generator


class Paraphraser:
    """Replaces each word that is one token with probability ``share``, at least one word of a text.

    The model reads the text unmasked: it then prefers words close to the original, where a [MASK] would let it predict
    anything that fits. The draws depend on ``seed`` and the number of the text alone, so the batch does not matter.
    """

    def __init__(self, encoder: Encoder, share: float = 0.15, seed: int = 42) -> None:
        if not 0 < share <= 1:
            raise InputError(f"share must lie above 0 and be at most 1; {share} was given.")
        if encoder.language_model is None:
            raise InputError("Paraphrases need a model with a masked-language head, such as builtin-base.")
        self.backend: Any = getattr(encoder.tokenizer, "backend_tokenizer", None)
        if self.backend is None:
            raise InputError("Paraphrases need a fast tokenizer, which knows where in the text its tokens stand.")
        self.backend.no_truncation()
        self.backend.no_padding()
        self.encoder, self.share, self.seed = encoder, share, seed
        self.scores, head = vocabulary_scores(encoder.language_model)
        head.to(encoder.device)
        self.specials = list(encoder.text_tokenizer.specials)
        vocabulary = range(encoder.text_tokenizer.vocabulary)
        self.spelled = [piece.strip() for piece in encoder.tokenizer.batch_decode([[number] for number in vocabulary])]
        fit = [
            is_word(word) and encoder.text_tokenizer.words.starts[number] == 1
            for number, word in enumerate(self.spelled)
        ]
        number_of = {word: place for place, word in enumerate(dict.fromkeys(word.lower() for word in self.spelled))}
        self.unfit = ~torch.tensor(fit)
        self.form = torch.tensor([number_of[word.lower()] for word in self.spelled])  # "Dog" and "dog" are one word
        if len(self.form[~self.unfit].unique()) < 2:
            raise InputError(
                "Paraphrases need a vocabulary of words; the pieces of this one are parts of words or single letters."
            )

    def pairs(self, texts: Iterable[str]) -> Iterator[tuple[str, str | None]]:
        """Each text and its paraphrase, in order; None where no word can be replaced."""
        numbered = iter(enumerate(texts))
        while block := list(islice(numbered, BLOCK)):
            encodings = self.backend.encode_batch([text for _, text in block], add_special_tokens=False)
            drafts = [
                self._draft(text, number, encoding) for (number, text), encoding in zip(block, encodings, strict=True)
            ]
            asked = [draft for draft in drafts if draft.places]
            lengths = np.array([len(draft.ids) for draft in asked], dtype=np.int64)
            found: dict[int, str] = {}
            for group in plan(lengths, TOKEN_BUDGET.get(self.encoder.device.type, TOKEN_BUDGET["cuda"])):
                members = [asked[place] for place in group]
                found.update(zip(map(id, members), self._rewrite(members), strict=True))
            yield from ((draft.text, found.get(id(draft))) for draft in drafts)

    def _draft(self, text: str, number: int, encoding: Any) -> Draft:
        tokenizer = self.encoder.text_tokenizer
        ids = np.array(encoding.ids, dtype=np.int64)
        room = self.encoder.max_length - len(tokenizer.prefix) - len(tokenizer.suffix)
        starts, words = tokenizer.words.split(ids)
        lengths = np.diff(starts, append=ids.size)
        single = starts[words[lengths[words] == 1]]
        single = single[(single < room) & ~np.isin(ids[single], self.specials)]  # what is unknown stays
        known = [
            place for token in single.tolist() if (place := _place(text, token, *encoding.offsets[token])) is not None
        ]
        rng = np.random.default_rng([self.seed, number])
        dice = rng.random(len(known))
        chosen = dice <= max(self.share, dice.min(initial=1.0))
        return Draft(text, ids[:room], [place for place, fell in zip(known, chosen, strict=True) if fell], rng)

    def _rewrite(self, drafts: list[Draft]) -> list[str]:
        before = len(self.encoder.text_tokenizer.prefix)
        rows = [row for row, draft in enumerate(drafts) for _ in draft.places]
        columns = [place.token for draft in drafts for place in draft.places]
        originals = torch.tensor([int(drafts[row].ids[column]) for row, column in zip(rows, columns, strict=True)])
        tokens = self.encoder.frame([draft.ids for draft in drafts]).to(self.encoder.device)
        with evaluating(self.encoder):
            states = self.encoder.states(tokens)
            scores = (
                self.scores(states[rows, [before + column for column in columns]]).float().cpu()[:, : len(self.spelled)]
            )
        scores = scores.masked_fill(self.unfit | (self.form == self.form[originals].unsqueeze(1)), -torch.inf)
        best = scores.topk(min(CHOICES, scores.shape[1]))
        cumulative = best.values.double().softmax(dim=1).cumsum(dim=1).numpy()
        results, question = [], 0
        for draft in drafts:
            text, done = [], 0
            for place in draft.places:
                drawn = np.searchsorted(cumulative[question], draft.rng.random() * cumulative[question, -1])
                word = self.spelled[int(best.indices[question, drawn])]
                text += [draft.text[done : place.start], shaped(word, draft.text[place.start : place.end])]
                done, question = place.end, question + 1
            results.append("".join([*text, draft.text[done:]]))
        return results


def is_word(text: str) -> bool:
    """Whether a text is letters only, and more than one of them where the alphabet is Latin."""
    return text.isalpha() and (len(text) > 1 or not text.isascii())


def shaped(word: str, like: str) -> str:
    """``word`` with the capitals of the word it replaces."""
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


def _place(text: str, token: int, start: int, end: int) -> Place | None:
    """The place of a word; None for other tokens, and for the end of a word, such as "ll" in "we'll"."""
    start += len(text[start:end]) - len(text[start:end].lstrip())  # some vocabularies count the blank before a word in
    return (
        Place(token, start, end)
        if is_word(text[start:end]) and text[max(start - 1, 0) : start] not in ("'", "’")
        else None
    )
