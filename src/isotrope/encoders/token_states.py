"""The vectors of a text's tokens, before they are pooled: as words, and as states of the last layer.

A text that is longer than the model reads is read in windows of equal length, so its end has states too. Special tokens
and the prompt are read along and have no row here. Rows are unit vectors: whoever compares tokens compares by cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from isotrope.encoders.fused_linear import fused_linears
from isotrope.encoders.group_threads import side_by_side
from isotrope.encoders.modes import evaluating
from isotrope.encoders.vector_groups import plan

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

LONGEST = 1024  # tokens of a text that are read
Ids = npt.NDArray[np.int32]
Half = npt.NDArray[np.float16]


class TokenStates(NamedTuple):
    """The tokens of a text, and a row for each: its state in the last layer, in half of the bytes of float32."""

    ids: Ids  # [tokens]
    states: Half  # [tokens, width]

    @property
    def size(self) -> int:
        """Bytes."""
        return self.ids.nbytes + self.states.nbytes


def token_states(encoder: Encoder, texts: Sequence[str]) -> list[TokenStates]:
    """Of each text; a text without tokens has no rows. An exported model has no states and is refused."""
    tokenizer = encoder.text_tokenizer
    frame = len(tokenizer.prefix) + len(tokenizer.suffix)
    flat, lengths = tokenizer.opening(list(texts))
    ids = [one[:LONGEST] for one in np.split(flat, np.cumsum(lengths)[:-1])] if texts else []
    parts = [windows(one, max(encoder.max_length - frame, 1)) for one in ids]
    rows = list(chain.from_iterable(parts))

    def states(group: npt.NDArray[np.int64]) -> list[Half]:
        chosen = [rows[row] for row in group.tolist()]
        found, start = _unit(encoder.states(encoder.frame(chosen).to(encoder.device))), len(tokenizer.prefix)
        return [found[place, start : start + len(one)].copy() for place, one in enumerate(chosen)]

    sizes = np.array([len(row) for row in rows], dtype=np.int64) + frame
    groups = list(plan(sizes, encoder.token_budget))
    with evaluating(encoder), fused_linears(encoder, int(sizes.sum())):
        found = chain.from_iterable(side_by_side(states, groups, encoder, encoder.device))
        of_row = dict(zip(chain.from_iterable(group.tolist() for group in groups), found, strict=True))
    empty = np.empty((0, encoder.network.config.hidden_size), dtype=np.float16)
    borders = pairwise([0, *np.cumsum([len(some) for some in parts]).tolist()])
    joined = (np.concatenate([empty, *(of_row[row] for row in range(*border))]) for border in borders)
    return [TokenStates(*both) for both in zip(ids, joined, strict=True)]


def word_states(encoder: Encoder, ids: Ids) -> Half:
    """[tokens, width]: the input embeddings, unit rows: a token as a word, whatever stands around it."""
    table: Tensor = encoder.network.get_input_embeddings().weight
    return _unit(table.detach()[torch.from_numpy(ids).to(table.device).long()])


def windows(ids: Ids, longest: int) -> list[Ids]:
    """The fewest pieces of at most ``longest`` tokens, of equal length up to one; none of an empty text."""
    return [] if not len(ids) else np.array_split(ids, -(-len(ids) // longest))


def _unit(states: Tensor) -> Half:
    return np.asarray(nn.functional.normalize(states.float(), dim=-1).half().cpu().numpy())
