"""The tokenizer as we use it: texts to ids once, ids to framed and padded rows at each batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from isotrope.files import digest
from isotrope.tokens.known_words import WORTH_IT, KnownWords, rules_of
from isotrope.tokens.padded import Lengths, Tokens
from isotrope.tokens.plain_tokenizer import PlainTokenizer
from isotrope.tokens.word_pieces import Words

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Flat = tuple[npt.NDArray[np.int32], Lengths]
BLOCK = 4_096  # texts tokenized in one call; more is no quicker
PROBES = ("a", "The", "2")  # texts that begin differently


class TextTokenizer:
    """A Hugging Face tokenizer seen as two steps: text → ids (done once), ids → framed and padded rows (each batch).

    The special tokens that frame a text are found by asking the tokenizer, so any family works. Truncation and padding
    that somebody else set in the tokenizer have no effect here. ``prompt`` stands before every text of a row; its ids
    belong to the frame, so no view edits them.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt: str = "") -> None:
        self.tokenizer, self.prompt = tokenizer, prompt
        bare, framed = self._ids(["a"])[0], list(tokenizer("a")["input_ids"])
        start = self._begins(bare, framed)
        self.start: list[int] = framed[:start]
        self.prompt_ids: list[int] = self._prompt_ids() if prompt else []
        self.prefix: list[int] = [*self.start, *self.prompt_ids]
        self.suffix: list[int] = framed[start + len(bare) :]
        self.pad: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        self.mask: int | None = tokenizer.mask_token_id
        self._words: tuple[Any, Any, KnownWords | None] = (None, None, None)

    def __getstate__(self) -> dict[str, Any]:
        """A copy, or another process, meets its words itself."""
        return {**self.__dict__, "_words": (None, None, None)}

    def _begins(self, text: list[int], row: list[int]) -> int:
        """Where a text begins in its row. Other probes decide where the text also stands in a template."""
        places = _places(text, row)
        if len(places) > 1:
            for ids, probe in zip(self._ids(list(PROBES)), PROBES, strict=True):
                places &= _places(ids, list(self.tokenizer(probe)["input_ids"]))
        return min(places, default=0)

    @property
    def vocabulary(self) -> int:
        return len(self.tokenizer)

    @property
    def specials(self) -> frozenset[int]:
        return frozenset(self.tokenizer.all_special_ids)

    @cached_property
    def words(self) -> Words:
        known = self.tokenizer
        frame = {known.bos_token_id, known.eos_token_id, known.cls_token_id, known.sep_token_id, self.pad}
        stand_ins = {known.unk_token_id, self.mask} - frame
        return Words.of(known.get_vocab(), self.specials, self.specials - stand_ins, self.mask)

    def fingerprint(self) -> str:
        """A short name that is equal for tokenizers which give every text the same ids."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        if backend is None:
            known = self.tokenizer
            facts = [type(known).__name__, sorted(known.get_vocab().items()), getattr(known, "init_kwargs", {})]
            return digest(json.dumps(facts, default=str, sort_keys=True), self.prompt)
        _uncut(backend)
        further = ("special tokens are letters",) if self._splits_specials else ()  # which to_str does not say
        return digest(backend.to_str(), *((self.prompt,) if self.prompt or further else ()), *further)

    def flat(self, texts: list[str]) -> Flat:
        """All ids one after another, without special tokens, and the length of each text."""
        # In blocks: what the tokenizer gives for a text takes many times the memory of its ids.
        words = self._known_words() if len(texts) >= WORTH_IT else None
        blocks = (texts[start : start + BLOCK] for start in range(0, max(len(texts), 1), BLOCK))
        parts = [(words.flat(block) if words else None) or _flat(self._ids(block)) for block in blocks]
        ids, lengths = (np.concatenate(some) for some in zip(*parts, strict=True)) if len(parts) > 1 else parts[0]
        return ids, lengths

    def _known_words(self) -> KnownWords | None:
        """The words of this tokenizer as it is now; None where it is not of BERT's kind."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        rules = None if backend is None else rules_of(backend)
        if rules is None:
            return None
        known, known_rules, words = self._words
        if words is None or known is not backend or known_rules != rules:
            words = KnownWords(self._ids, rules)
            self._words = backend, rules, words
        return words

    def opening(self, texts: list[str]) -> Flat:
        """As ``flat``, of texts that begin a row: as they stand behind the prompt, without its ids."""
        if not self.prompt:
            return self.flat(texts)
        prompt = self.prompt_ids
        found = self._ids([self.prompt + text for text in texts])
        for place, ids in enumerate(found):
            # A text can grow into the prompt, such as ")" behind ":"; it is then taken alone.
            found[place] = ids[len(prompt) :] if ids[: len(prompt)] == prompt else self._ids([texts[place]])[0]
        return _flat(found)

    def following(self, texts: list[str]) -> Flat:
        """As ``flat``, of texts that another stands before, with a blank between: ids of A and of B behind A make up
        those of "A B".
        """
        return self.flat([self._blank + text for text in texts])

    @cached_property
    def blanks_count(self) -> bool:
        """Whether a text that follows another has other ids than one that begins a row: byte pairs see the blank."""
        return self.opening(list(PROBES))[0].tolist() != self.following(list(PROBES))[0].tolist()

    @cached_property
    def _blank(self) -> str:
        """What a text that follows another begins with; nothing where the tokenizer puts the blank in by itself."""
        joined = self._ids([f"{first} {second}" for first in PROBES for second in PROBES])
        firsts = self._ids(list(PROBES))
        for blank in ("", " "):
            seconds = self._ids([blank + text for text in PROBES])
            if joined == [first + second for first in firsts for second in seconds]:
                return blank
        return ""

    def _prompt_ids(self) -> list[int]:
        """Ids that the prompt has whatever text follows; a blank at its end belongs to the text."""
        own, *others = self._ids([self.prompt.rstrip(), *(self.prompt + text for text in PROBES)])
        same = [len({*column}) == 1 for column in zip(own, *others, strict=False)]
        return own[: [*same, False].index(False)]

    def _ids(self, texts: list[str], split: bool | None = None) -> list[list[int]]:
        """``split``: special tokens that a text says are plain letters; None: as the tokenizer has it."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        if backend is None:
            return [list(ids) for ids in self.tokenizer(texts, add_special_tokens=False)["input_ids"]]
        _uncut(backend)
        backend.encode_special_tokens = self._splits_specials if split is None else split  # a copy has lost it
        return [encoding.ids for encoding in backend.encode_batch_fast(texts, add_special_tokens=False)]

    @property
    def _splits_specials(self) -> bool:
        plain = isinstance(self.tokenizer, PlainTokenizer)  # which would make transformers' tokenizer to answer
        return not plain and bool(getattr(self.tokenizer, "split_special_tokens", False))

    def parsed(self, text: str) -> list[int]:
        """Ids of a text in which special tokens are written, such as [MASK]."""
        return self._ids([text], split=False)[0]

    def frame(self, sequences: Sequence[npt.NDArray[Any]], max_length: int) -> Tokens:
        """The prompt before each, cut to ``max_length``, special tokens counted, and padded to the longest."""
        prompt = np.array(self.prompt_ids, dtype=np.int64)
        cut = [sequence[:max_length] for sequence in sequences]
        parts = [part for sequence in cut for part in (prompt, sequence)] if len(prompt) else cut
        lengths = np.fromiter((len(sequence) for sequence in cut), dtype=np.int64, count=len(cut)) + len(prompt)
        return self.framed(np.concatenate([*parts, np.empty(0, dtype=np.int64)]), lengths, max_length)

    def rows(self, texts: Sequence[list[int]], max_length: int) -> Tokens:
        """As ``frame``, of ids that hold the prompt already."""
        ids, lengths = _flat(list(texts))
        return self.framed(ids, lengths, max_length)

    def framed(self, flat: npt.NDArray[Any], lengths: Lengths, max_length: int) -> Tokens:
        """As ``rows``, of ids one behind another. No loop over tokens: at a GPU's pace it would be the slowest part."""
        start, suffix = len(self.start), len(self.suffix)
        kept = np.minimum(lengths, max(max_length - start - suffix, 1))
        whole = kept + start + suffix
        width = max(int(whole.max(initial=1)), 1)
        columns = np.arange(width)
        ids = np.full((len(lengths), width), self.pad, dtype=np.int64)
        if (kept < lengths).any():
            inside = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            flat = flat[inside < np.repeat(kept, lengths)]
        ids[(columns >= start) & (columns < (kept + start)[:, None])] = flat
        ids[:, :start] = self.start
        for number, token in enumerate(self.suffix):
            ids[np.arange(len(lengths)), kept + start + number] = token
        present = columns < whole[:, None]
        return Tokens(torch.from_numpy(ids), torch.from_numpy(present.astype(np.int64)), whole)

    def frame_alone(self, gaps: Lengths) -> Tokens:
        """The frame without a text, a row for each of ``gaps``: what stands behind the text has the positions that a
        text of that many tokens leaves it."""
        tokens = self.padded([[*self.start, *self.suffix]] * len(gaps))
        behind = np.arange(tokens.ids.shape[1]) >= len(self.start)
        positions = np.arange(tokens.ids.shape[1]) + behind * gaps[:, None]
        return replace(tokens, positions=torch.from_numpy(positions))

    @cached_property
    def pair_frame(self) -> tuple[list[int], list[int], list[int]]:
        """Special tokens before, between and behind two segments: [CLS] A [SEP] B [SEP], or the tokenizer's own."""
        bare, framed = self._ids(["a"])[0], list(self.tokenizer("a", "a")["input_ids"])
        first = min(_places(bare, framed), default=0)
        rest = framed[first + len(bare) :]
        second = min(_places(bare, rest), default=0)
        return framed[:first], rest[:second], rest[second + len(bare) :]

    def frame_pairs(self, firsts: Sequence[npt.NDArray[Any]], seconds: Sequence[npt.NDArray[Any]]) -> Tokens:
        """Pairs of segments as one row each, uncut; the tokens between them belong to the first."""
        before, between, behind = self.pair_frame
        frame = [np.array(part, dtype=np.int64) for part in (before, between, behind)]
        parts = [
            part
            for first, second in zip(firsts, seconds, strict=True)
            for part in (frame[0], first, frame[1], second, frame[2])
        ]
        sizes = np.fromiter(map(len, parts), np.int64, len(parts)).reshape(-1, 5)
        tokens = self._padded(np.concatenate(parts) if parts else np.empty(0, np.int64), sizes.sum(axis=1))
        borders = sizes[:, :3].sum(axis=1)
        in_second = torch.from_numpy(np.arange(tokens.ids.shape[1]) >= borders[:, None])
        return replace(tokens, segments=in_second.long() * tokens.mask)

    def padded(self, rows: list[list[int]]) -> Tokens:
        """Rows of ids, as they are, padded to the longest."""
        return self._padded(*_flat(rows))

    def _padded(self, flat: npt.NDArray[Any], lengths: npt.NDArray[np.int64]) -> Tokens:
        """The same from the ids of all rows, one behind another."""
        width = max(int(lengths.max(initial=1)), 1)
        ids = np.full((len(lengths), width), self.pad, dtype=np.int64)
        present = np.arange(width) < lengths[:, None]
        ids[present] = flat
        return Tokens(torch.from_numpy(ids), torch.from_numpy(present.astype(np.int64)), lengths)


def _uncut(backend: Any) -> None:
    """Take out the truncation and the padding that somebody else asked for."""
    backend.no_truncation()
    backend.no_padding()


def _places(text: list[int], row: list[int]) -> set[int]:
    return {place for place in range(len(row)) if row[place : place + len(text)] == text}


def _flat(sequences: list[list[int]]) -> Flat:
    lengths = np.fromiter((len(s) for s in sequences), dtype=np.int64, count=len(sequences))
    ids = np.fromiter(chain.from_iterable(sequences), dtype=np.int32, count=int(lengths.sum()))
    return ids, lengths
