"""From texts to vectors in groups of like length: what ``Encoder.encode`` runs on each kind of device.

A CPU takes groups that fit its cache, side by side (group_threads.py). A GPU takes large ones, while the next texts are
tokenized (gpu_encoding.py). A table of word vectors needs no groups: rows are looked up and averaged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from isotrope.encoders.cut_texts import note_cut
from isotrope.encoders.equal_rows import EqualRows
from isotrope.encoders.fused_linear import fused_linears
from isotrope.encoders.gpu_encoding import framed_rows, tokenized_ahead, vectors_behind
from isotrope.encoders.group_threads import is_watched, mind_forks, side_by_side
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.tokens.padded import Lengths

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

TOKEN_BUDGET = {"cpu": 1024, "cuda": 65_536}  # tokens in one forward; small fits a CPU's cache
TABLE_BUDGET = 131_072  # tokens in one lookup of a table of word vectors
Rows = npt.NDArray[np.int64]
Group = tuple[Rows, torch.Tensor]


def plan(lengths: Lengths, budget: int, rows: int | None = None) -> Iterator[Rows]:
    """Row indices, longest first, in groups of at most ``budget`` padded tokens (and ``rows`` rows)."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        width = max(int(lengths[order[start]]), 1)
        count = max(budget // width, 1)
        end = start + (min(count, rows) if rows else count)
        yield order[start:end]
        start = end


def vectors_of(
    encoder: Encoder, texts: list[str], rows: int | None, width: int, unit: bool
) -> Iterator[tuple[Rows, npt.NDArray[np.float32]]]:
    """Numbers of texts and their vectors, group by group: the first ``width`` dimensions, of unit length or not."""

    def finished(output: torch.Tensor) -> torch.Tensor:
        output = output.float()[:, :width]
        return nn.functional.normalize(output, dim=-1) if unit else output

    if encoder.device.type == "cuda" and not is_mean_of_rows(encoder):
        yield from vectors_behind((group, finished(output)) for group, output in _outputs_ahead(encoder, texts, rows))
        return
    mind_forks()
    flat, lengths = encoder.text_tokenizer.flat(texts)
    extra = _frame(encoder)
    note_cut(len(texts), int((lengths + extra > encoder.max_length).sum()), encoder.max_length)
    with fused_linears(encoder, int(lengths.sum()) + extra * len(texts)):
        for group, output in _outputs(encoder, flat, lengths, rows):
            yield group, finished(output).cpu().numpy()


def _frame(encoder: Encoder) -> int:
    """Special tokens around a text."""
    return len(encoder.text_tokenizer.start) + len(encoder.text_tokenizer.suffix)


def _outputs_ahead(encoder: Encoder, texts: list[str], rows: int | None) -> Iterator[Group]:
    """On a GPU: a block of texts is tokenized while another is computed."""
    extra, most, cut = _frame(encoder), encoder.max_length, 0
    for start, (flat, lengths) in tokenized_ahead(encoder.text_tokenizer, texts):
        cut += int((lengths + extra > most).sum())
        starts = np.cumsum(lengths) - lengths
        for group in plan(np.minimum(lengths + extra, most), encoder.token_budget, rows):
            tokens = framed_rows(encoder.text_tokenizer, flat, starts, lengths, group, most)
            yield group + start, encoder(tokens.to(encoder.device))
    note_cut(len(texts), cut, most)


def _outputs(encoder: Encoder, flat: npt.NDArray[Any], lengths: Lengths, rows: int | None) -> Iterator[Group]:
    extra, most = _frame(encoder), encoder.max_length
    if is_mean_of_rows(encoder) and not extra and lengths.max(initial=0) <= most:
        yield from _row_means(encoder, flat, lengths, rows)
        return
    starts = np.cumsum(lengths) - lengths

    def vectors(group: Rows) -> Group:
        tokens = framed_rows(encoder.text_tokenizer, flat, starts, lengths, group, most)
        return group, encoder(tokens.to(encoder.device))

    if is_watched(encoder):  # whoever watches wants to see every text
        groups = list(plan(np.minimum(lengths + extra, most), encoder.token_budget, rows))
        yield from side_by_side(vectors, groups, encoder, encoder.device)
        return
    equal = EqualRows(flat, lengths, most - extra)
    groups = list(plan(np.minimum(lengths[equal.firsts] + extra, most), encoder.token_budget, rows))
    found = side_by_side(lambda group: vectors(equal.firsts[group])[1], groups, encoder, encoder.device)
    for group, output in zip(groups, found, strict=True):
        texts, place = equal.texts(group)
        yield texts, output if len(texts) == len(group) else output[torch.from_numpy(place)]


def is_mean_of_rows(encoder: Encoder) -> bool:
    """Whether a vector is the plain mean of a table's rows, before the parts."""
    pooling = encoder.pooling
    plain = pooling.modes == ("mean",) and not pooling.needs_all_layers and encoder.token_weights is None
    return plain and type(encoder.network) is StaticVectors


def _row_means(encoder: Encoder, flat: npt.NDArray[Any], lengths: Lengths, rows: int | None) -> Iterator[Group]:
    """Of a table: neither sorted nor padded."""
    table, ends = cast(StaticVectors, encoder.network), np.cumsum(lengths)
    size = rows or max(TABLE_BUDGET * len(lengths) // max(len(flat), 1), 1)
    for start in range(0, len(lengths), size):
        group = np.arange(start, min(start + size, len(lengths)))
        before, after = ends[start] - lengths[start], ends[group[-1]]
        ids = torch.from_numpy(flat[before:after]).to(encoder.device).long()
        starts = torch.from_numpy(ends[group] - lengths[group] - before).to(encoder.device)
        yield group, encoder.finish(table.means(ids, starts))
