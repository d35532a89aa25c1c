"""How long the texts are in tokens of a model, and what ``max_length`` cuts off.

lost = Σ max(0, length − max_length) / Σ length        over all texts; special tokens counted
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from isotrope.data.corpus_files import BLOCK
from isotrope.progress import bar

BINS = (8, 16, 32, 64, 128, 256, 512)


class LengthTokenizer(Protocol):
    """What is asked of a tokenizer; ``TextTokenizer`` is one."""

    prefix: list[int]
    suffix: list[int]

    def opening(self, texts: list[str]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]: ...


@dataclass(frozen=True)
class TokenLengths:
    """Lengths of the texts of a sample, special tokens counted; shares are between 0 and 1.

    ``histogram`` maps the most tokens of a bin ("8" for 1 to 8, then "16" … "512", "more") to texts. ``cut_records``:
    records with a text that is cut. ``unknown``: tokens that the vocabulary does not know; none where the tokenizer
    has no such token.
    """

    median: int
    percentile_95: int
    longest: int
    histogram: dict[str, int]
    max_length: int
    cut_records: float
    lost_tokens: float
    unknown: float | None


def token_lengths(
    records: Sequence[Sequence[str]], tokenizer: LengthTokenizer, max_length: int, unknown_id: int | None
) -> TokenLengths:
    """Tokenize the texts of all records, block by block."""
    fields = len(records[0])
    lengths, unknown, tokens = [], 0, 0
    with bar("tokenizing", len(records)) as advance:
        for start in range(0, len(records), BLOCK):
            block = records[start : start + BLOCK]
            ids, found = tokenizer.opening([text for record in block for text in record])
            lengths.append(found)
            unknown += 0 if unknown_id is None else int((ids == unknown_id).sum())
            tokens += len(ids)
            advance(len(block))
    framed = np.concatenate(lengths) + len(tokenizer.prefix) + len(tokenizer.suffix)
    median, percentile = np.percentile(framed, [50, 95], method="higher")
    return TokenLengths(
        int(median),
        int(percentile),
        int(framed.max()),
        _histogram(framed),
        max_length,
        float((framed.reshape(-1, fields) > max_length).any(axis=1).mean()),
        float(np.maximum(framed - max_length, 0).sum() / max(int(framed.sum()), 1)),
        None if unknown_id is None else unknown / max(tokens, 1),
    )


def _histogram(lengths: npt.NDArray[np.int64]) -> dict[str, int]:
    counts = np.bincount(np.searchsorted(BINS, lengths), minlength=len(BINS) + 1)
    return dict(zip([*map(str, BINS), "more"], counts.tolist(), strict=True))
