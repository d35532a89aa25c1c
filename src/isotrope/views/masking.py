"""BERT's masking: some tokens are hidden, and the labels say what stood there.

``mask_tokens`` masks padded rows on the host, each token with a probability; ``mask_rows`` masks full rows on their own
device, a fixed number in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from isotrope.tokens.padded import Tokens
from isotrope.tokens.text_tokenizer import TextTokenizer


@dataclass(frozen=True)
class Masked:
    """Masked rows with labels [rows, width], −100 where nothing is predicted.

    ``asked`` are the flat positions with a label, found on the host: to ask the device for them would stop it.
    """

    tokens: Tokens
    labels: torch.Tensor
    asked: torch.Tensor

    @classmethod
    def of(cls, tokens: Tokens, labels: torch.Tensor) -> Masked:
        return cls(tokens, labels, torch.nonzero(labels.flatten() >= 0).squeeze(1))

    def __len__(self) -> int:
        return len(self.tokens)

    def to(self, device: torch.device) -> Masked:
        moved = (tensor.to(device, non_blocking=True) for tensor in (self.labels, self.asked))
        return Masked(self.tokens.to(device), *moved)

    def rows(self, rows: slice) -> Masked:
        tokens = self.tokens.rows(rows)
        return Masked.of(tokens, self.labels[rows, : tokens.ids.shape[1]])


def mask_tokens(
    tokens: Tokens,
    tokenizer: TextTokenizer,
    rng: np.random.Generator,
    rate: float = 0.15,
    keep: float = 0.1,
    replace: float = 0.1,
) -> Masked:
    """Each ordinary token is chosen with probability ``rate``; of the chosen, ``keep`` stay as they are, ``replace``
    become a random token, the rest become [MASK].

    At least one token of a row is chosen, or short sentences would never have a label.
    """
    ids = tokens.ids.numpy().copy()
    ordinary = (tokens.mask.numpy() > 0) & ~np.isin(ids, list(tokenizer.specials)) & ~framing(tokens, tokenizer)
    dice = np.where(ordinary, rng.random(ids.shape), 2.0)
    chosen = ordinary & ((dice < rate) | (dice == dice.min(axis=1, keepdims=True)))
    labels = np.where(chosen, ids, -100)
    fate = rng.random(ids.shape)
    ids[chosen & (fate < 1 - keep - replace)] = tokenizer.mask
    randomised = chosen & (fate >= 1 - replace)
    ids[randomised] = rng.integers(0, tokenizer.vocabulary, size=int(randomised.sum()))
    return Masked.of(
        Tokens(torch.from_numpy(ids), tokens.mask, tokens.lengths, tokens.segments), torch.from_numpy(labels)
    )


def framing(tokens: Tokens, tokenizer: TextTokenizer) -> npt.NDArray[np.bool_]:
    """[rows, width]: where the prompt or a template stands; rows of two segments have none."""
    ids = tokens.ids.numpy()
    before, columns = tokenizer.prefix[: ids.shape[1]], np.arange(ids.shape[1])
    inside = (columns < len(before)) | (columns >= tokens.lengths[:, None] - len(tokenizer.suffix))
    begins: npt.NDArray[np.bool_] = (ids[:, : len(before)] == before).all(axis=1, keepdims=True)
    return begins & inside


def mask_rows(
    ids: torch.Tensor,
    specials: torch.Tensor,
    mask: int,
    vocabulary: int,
    count: int,
    keep: float = 0.1,
    replace: float = 0.1,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(rows as the model sees them, flat places of the labels, the labels), on the device of ``ids``.

    For rows without padding: exactly ``count`` tokens of each are chosen, so that every shape is known before. Where a
    row has fewer ordinary ones, such as one of unknown words, the rest stay as they are and their label is −100, which
    costs nothing. A random token is never a special one, if these are the first of the vocabulary. Draws use torch's
    global generator.
    """
    dice = torch.rand(ids.shape, device=ids.device).masked_fill(torch.isin(ids, specials), 2.0)
    drawn_first, places = dice.topk(count, largest=False)  # [rows, count]
    special = drawn_first > 1
    tokens = ids.gather(1, places)
    fate = torch.rand(places.shape, device=ids.device)
    drawn = torch.randint(len(specials), vocabulary, places.shape, device=ids.device)
    shown = torch.where(special | (fate < keep), tokens, torch.where(fate < keep + replace, drawn, mask))
    first = torch.arange(len(ids), device=ids.device).unsqueeze(1) * ids.shape[1]
    return ids.scatter(1, places, shown), (places + first).flatten(), tokens.masked_fill(special, -100).flatten()


def label_tokens(tokens: Tokens, labels: Sequence[npt.NDArray[np.int64]], before: int, behind: int) -> Masked:
    """Framed rows with a label for each token of the text.

    Neither what was cut off nor the special tokens of the frame have one.
    """
    rows = np.full(tokens.ids.shape, -100, dtype=np.int64)
    for row, own, length in zip(rows, labels, tokens.lengths.tolist(), strict=True):
        row[before : length - behind] = own[: length - behind - before]
    return Masked.of(tokens, torch.from_numpy(rows))
