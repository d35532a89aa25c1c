"""The tokenizer as we use it: texts to ids once, ids to framed and padded rows at each batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from isotrope.files import digest
from isotrope.tokens.padded import Lengths, Tokens
from isotrope.tokens.word_pieces import Words

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class TextTokenizer:
    """A Hugging Face tokenizer seen as two steps: text → ids (done once), ids → framed and padded rows (each batch).

    The special tokens that frame a text are found by asking the tokenizer, so any family works. Truncation and padding
    that somebody else set in the tokenizer have no effect here.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        bare = self._ids(["a"])[0]
        framed = list(tokenizer("a", add_special_tokens=True)["input_ids"])
        start = next((i for i in range(len(framed)) if framed[i : i + len(bare)] == bare), 0)
        self.prefix: list[int] = framed[:start]
        self.suffix: list[int] = framed[start + len(bare) :]
        self.pad: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        self.mask: int | None = tokenizer.mask_token_id

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
        content = backend.to_str() if backend is not None else json.dumps(sorted(self.tokenizer.get_vocab().items()))
        return digest(content)

    def flat(self, texts: list[str]) -> tuple[npt.NDArray[np.int32], Lengths]:
        """All ids one after another, without special tokens, and the length of each text."""
        sequences = self._ids(texts)
        lengths = np.fromiter((len(s) for s in sequences), dtype=np.int64, count=len(sequences))
        ids = np.fromiter((i for s in sequences for i in s), dtype=np.int32, count=int(lengths.sum()))
        return ids, lengths

    def _ids(self, texts: list[str]) -> list[list[int]]:
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        if backend is None:
            return [list(ids) for ids in self.tokenizer(texts, add_special_tokens=False)["input_ids"]]
        backend.no_truncation()
        backend.no_padding()
        return [encoding.ids for encoding in backend.encode_batch_fast(texts, add_special_tokens=False)]

    def frame(self, sequences: Sequence[npt.NDArray[Any]], max_length: int) -> Tokens:
        """Cut each to ``max_length``, special tokens counted, and pad to the longest."""
        room = max(max_length - len(self.prefix) - len(self.suffix), 1)
        return self.padded([[*self.prefix, *sequence[:room].tolist(), *self.suffix] for sequence in sequences])

    @cached_property
    def pair_frame(self) -> tuple[list[int], list[int], list[int]]:
        """Special tokens before, between and behind two segments: [CLS] A [SEP] B [SEP], or the tokenizer's own."""
        bare = self._ids(["a"])[0]
        framed = list(self.tokenizer("a", "a", add_special_tokens=True)["input_ids"])
        behind = len(self.prefix) + len(bare)
        second = next(i for i in range(behind, len(framed)) if framed[i : i + len(bare)] == bare)
        return framed[: len(self.prefix)], framed[behind:second], framed[second + len(bare) :]

    def frame_pairs(self, firsts: Sequence[npt.NDArray[Any]], seconds: Sequence[npt.NDArray[Any]]) -> Tokens:
        """Pairs of segments as one row each, uncut; the tokens between them belong to the first."""
        before, between, behind = self.pair_frame
        pairs = [(first.tolist(), second.tolist()) for first, second in zip(firsts, seconds, strict=True)]
        tokens = self.padded([[*before, *first, *between, *second, *behind] for first, second in pairs])
        borders = np.array([len(before) + len(first) + len(between) for first, _ in pairs], dtype=np.int64)
        in_second = torch.from_numpy(np.arange(tokens.ids.shape[1]) >= borders[:, None])
        return replace(tokens, segments=in_second.long() * tokens.mask)

    def padded(self, rows: list[list[int]]) -> Tokens:
        """Rows of ids, as they are, padded to the longest."""
        lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
        width = max(int(lengths.max(initial=1)), 1)
        ids = np.full((len(rows), width), self.pad, dtype=np.int64)
        present = np.arange(width) < lengths[:, None]
        ids[present] = [i for row in rows for i in row]
        return Tokens(torch.from_numpy(ids), torch.from_numpy(present.astype(np.int64)), lengths)
