"""Token sequences: from texts, framed with special tokens, padded once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from string import punctuation
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from isotrope.files import digest

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Lengths = npt.NDArray[np.int64]
CONTINUED = "##"  # WordPiece marks the pieces that continue a word
BLANKS = ("Ġ", "▁")  # byte pairs and SentencePiece mark those that follow a blank
ASCII_PUNCTUATION = frozenset(punctuation)


@dataclass(frozen=True)
class Tokens:
    """A view of some rows. ``lengths`` stay on the host, so that nobody has to ask the device for them.

    ``segments`` are there for rows of two segments only, where the model tells them apart: 0 in the first, 1 in the
    second.
    """

    ids: torch.Tensor  # [rows, width]
    mask: torch.Tensor  # [rows, width], 1 where a token stands
    lengths: Lengths
    segments: torch.Tensor | None = None  # [rows, width]

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: torch.device) -> Tokens:
        return self._each(lambda tensor: tensor.to(device, non_blocking=True), self.lengths)

    def pin(self) -> Tokens:
        return self._each(torch.Tensor.pin_memory, self.lengths)

    def rows(self, rows: slice | npt.NDArray[np.int64]) -> Tokens:
        """Some rows, without the padding they do not need."""
        lengths = self.lengths[rows]
        width = int(lengths.max(initial=1))
        index = rows if isinstance(rows, slice) else torch.as_tensor(rows, device=self.ids.device)
        return self._each(lambda tensor: tensor[index, :width], lengths)

    def _each(self, change: Callable[[torch.Tensor], torch.Tensor], lengths: Lengths) -> Tokens:
        return Tokens(
            change(self.ids), change(self.mask), lengths, None if self.segments is None else change(self.segments)
        )


def join(views: Sequence[Tokens], pad: int) -> Tokens:
    """Several views as one, for one forward pass."""
    if len(views) == 1:
        return views[0]
    width = max(view.ids.shape[1] for view in views)
    typed = any(view.segments is not None for view in views)

    def widened(tensors: list[torch.Tensor], fill: int) -> torch.Tensor:
        return torch.cat([torch.nn.functional.pad(t, (0, width - t.shape[1]), value=fill) for t in tensors])

    return Tokens(
        widened([view.ids for view in views], pad),
        widened([view.mask for view in views], 0),
        np.concatenate([view.lengths for view in views]),
        widened([torch.zeros_like(v.ids) if v.segments is None else v.segments for v in views], 0) if typed else None,
    )


@dataclass(frozen=True, eq=False)
class Words:
    """Where words begin in a sequence of ids, looked up at once for the whole sequence.

    The special tokens that frame a text are ``fixed`` and belong to no word; [UNK] and [MASK] each stand for one.
    """

    starts: npt.NDArray[
        np.int8
    ]  # [vocabulary]; 0: the piece continues a word, 1: it begins one, 2: whatever stands before it
    stops: npt.NDArray[
        np.int8
    ]  # [vocabulary]; 1: nothing continues the piece, −1: a lone blank, part of whatever follows
    fixed: npt.NDArray[np.bool_]  # [vocabulary]
    mask: int | None

    @classmethod
    def of(
        cls, vocabulary: Mapping[str, int], specials: frozenset[int], fixed: frozenset[int], mask: int | None
    ) -> Words:
        """The mark that most pieces carry tells the kind of vocabulary; where none carries one, each piece is a word.

        Blanks alone would glue a full stop to its word and make one word of a Chinese sentence, so there punctuation
        and the scripts without blanks begin words too, as they do in BERT.
        """
        carried = {mark: sum(piece.startswith(mark) for piece in vocabulary) for mark in (CONTINUED, *BLANKS)}
        mark = max(carried, key=lambda each: carried[each])
        starts = np.ones(max(vocabulary.values()) + 1, dtype=np.int8)
        stops = np.zeros_like(starts)
        for piece, number in vocabulary.items():
            if mark == CONTINUED:
                starts[number] = not piece.startswith(mark)
            else:
                bare = piece.removeprefix(mark)
                starts[number] = bare != piece or _stands_alone(piece[:1])
                stops[number] = all(map(_stands_alone, bare)) if bare else -1
        starts[list(specials)], stops[list(specials)] = 2, 1
        outside = np.zeros(starts.size, dtype=np.bool_)
        outside[list(fixed)] = True
        return cls(starts, stops, outside, mask)

    def split(self, ids: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Where each word or fixed token begins, and which of these, by number, are words."""
        begins = self.starts.take(ids)
        begins[1:] += self.stops.take(ids[:-1])
        begins[:1] = 1
        starts = (begins > 0).nonzero()[0]
        return starts, (~self.fixed.take(ids.take(starts))).nonzero()[0]

    def split_pieces(self, ids: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """As ``split``, each piece taken for a word."""
        return np.arange(ids.size), (~self.fixed.take(ids)).nonzero()[0]


def _stands_alone(letter: str) -> bool:
    """Punctuation, and the scripts without blanks: Chinese and Japanese with their punctuation; Korean has blanks."""
    return letter in ASCII_PUNCTUATION or (letter >= "\u2e80" and not "\uac00" <= letter <= "\ud7a3")


class TextTokenizer:
    """A Hugging Face tokenizer seen as two steps:

    text → ids (done once), ids → framed and padded rows (done each batch).
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
        """Special tokens before, between and behind two segments:

        [CLS] A [SEP] B [SEP], or what the tokenizer has for it.
        """
        bare = self._ids(["a"])[0]
        framed = list(self.tokenizer("a", "a", add_special_tokens=True)["input_ids"])
        behind = len(self.prefix) + len(bare)
        second = next(i for i in range(behind, len(framed)) if framed[i : i + len(bare)] == bare)
        return framed[: len(self.prefix)], framed[behind:second], framed[second + len(bare) :]

    def frame_pairs(self, firsts: Sequence[npt.NDArray[Any]], seconds: Sequence[npt.NDArray[Any]]) -> Tokens:
        """Pairs of segments as one row each, uncut; what stands between them counts to the first."""
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
