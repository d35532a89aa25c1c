"""What the layers do while texts are encoded, watched from a hook: the pass that gives the vectors gives this too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


@dataclass(frozen=True)
class LayerCosines:
    """Mean cosines of token states: of two tokens of one sentence, and of tokens of two sentences.

    ``adjusted`` is the difference, what a sentence adds (Ethayarajh 2019). None where there is no such pair.
    """

    layer: int
    self_similarity: float | None
    mean_cosine: float | None
    adjusted: float | None


class LayerSums:
    """Cosines of token states, layer by layer, from sums alone.

        within one sentence      Σ_i (‖s_i‖² − n_i) / Σ_i n_i (n_i − 1)
        between two sentences    (‖Σ_i s_i‖² − Σ_i ‖s_i‖²) / (n² − Σ_i n_i²)
        n = Σ_i n_i,  s_i: sum of the n_i unit states of sentence i

    Every pair of tokens counts once, so long sentences weigh more (the measure of TaCL); special tokens count, padding
    does not.
    """

    def __init__(self) -> None:
        self.sums: list[Tensor] = []  # [d] of each layer
        self.squares: list[float] = []
        self.tokens = 0
        self.tokens_squared = 0

    def add(self, layers: tuple[Tensor, ...], mask: Tensor) -> None:
        lengths = mask.sum(dim=1).cpu()
        self.tokens += int(lengths.sum())
        self.tokens_squared += int(lengths.pow(2).sum())
        for number, states in enumerate(layers):
            sentences = (normalize(states.float(), dim=-1) * mask.unsqueeze(-1)).sum(dim=1).cpu().double()  # [rows, d]
            if number == len(self.sums):
                self.sums.append(torch.zeros(states.shape[-1], dtype=torch.float64))
                self.squares.append(0.0)
            self.sums[number] += sentences.sum(dim=0)
            self.squares[number] += float(sentences.pow(2).sum())

    def rows(self) -> list[LayerCosines]:
        """One for each layer; layer 0 is the output of the embeddings."""
        inside = self.tokens_squared - self.tokens
        between = self.tokens**2 - self.tokens_squared
        found = []
        for number, (total, squares) in enumerate(zip(self.sums, self.squares, strict=True)):
            own = (squares - self.tokens) / inside if inside else None
            other = (float(total.pow(2).sum()) - squares) / between if between else None
            adjusted = own - other if own is not None and other is not None else None
            found.append(LayerCosines(number, own, other, adjusted))
        return found


class WordStates:
    """Mean and mean norm of the last layer's states of chosen tokens."""

    def __init__(self, ids: npt.NDArray[np.int64], vocabulary: int) -> None:
        self.place = torch.full((vocabulary,), -1, dtype=torch.int64)
        self.place[torch.from_numpy(ids)] = torch.arange(len(ids))
        self.sums: Tensor | None = None  # [words, d]
        self.norms = torch.zeros(len(ids), dtype=torch.float64)
        self.counts = torch.zeros(len(ids), dtype=torch.float64)

    def add(self, states: Tensor, ids: Tensor, mask: Tensor) -> None:
        places = self.place[ids.cpu()].masked_fill(mask.cpu() == 0, -1)
        kept = places >= 0
        rows, found = places[kept], states.cpu()[kept].double()
        if self.sums is None:
            self.sums = torch.zeros(len(self.norms), states.shape[-1], dtype=torch.float64)
        self.sums.index_add_(0, rows, found)
        self.norms.index_add_(0, rows, found.norm(dim=-1))
        self.counts.index_add_(0, rows, torch.ones(len(rows), dtype=torch.float64))

    def means(self) -> tuple[Tensor, Tensor]:
        """[words, d] and [words]; a word that truncation hid has NaN."""
        sums = self.sums if self.sums is not None else torch.zeros(len(self.norms), 1, dtype=torch.float64)
        return sums / self.counts.unsqueeze(1), self.norms / self.counts


@contextmanager
def watching(backbone: nn.Module, layers: LayerSums, words: WordStates) -> Iterator[None]:
    """Every forward of the backbone inside gives its hidden states to ``layers`` and ``words``; its result stays as it
    is.
    """

    def ask(
        module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return inputs, {**named, "output_hidden_states": True}

    def see(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        layers.add(tuple(output.hidden_states or ()), named["attention_mask"])
        words.add(output.last_hidden_state.float(), named["input_ids"], named["attention_mask"])

    hooks = (
        backbone.register_forward_pre_hook(ask, with_kwargs=True),
        backbone.register_forward_hook(see, with_kwargs=True),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
