"""The padded batch: rows of token ids of one width, and several views of it as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

Lengths = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tokens:
    """A view of some rows, padded on the right. ``lengths`` stay on the host, so that nobody asks the device for them.

    ``segments`` (0 in the first, 1 in the second) exist for rows of two segments, where the model embeds them.
    ``positions`` exist where a token stands elsewhere than its place in the row says; they count from 0.
    """

    ids: torch.Tensor  # [rows, width]
    mask: torch.Tensor  # [rows, width], 1 where a token stands
    lengths: Lengths
    segments: torch.Tensor | None = None  # [rows, width]
    positions: torch.Tensor | None = None  # [rows, width]

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: torch.device) -> Tokens:
        return self._each(lambda tensor: moved(tensor, device), self.lengths)

    def rows(self, rows: slice | npt.NDArray[np.int64]) -> Tokens:
        """Some rows, without the padding they do not need."""
        lengths = self.lengths[rows]
        width = int(lengths.max(initial=1))
        index = rows if isinstance(rows, slice) else torch.as_tensor(rows, device=self.ids.device)
        return self._each(lambda tensor: tensor[index, :width], lengths)

    def unpadded(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The ids of all rows one after another, and where each row begins."""
        starts = np.cumsum(self.lengths) - self.lengths
        return self.ids[self.mask.bool()], torch.from_numpy(starts).to(self.ids)

    def _each(self, change: Callable[[torch.Tensor], torch.Tensor], lengths: Lengths) -> Tokens:
        further = (None if tensor is None else change(tensor) for tensor in (self.segments, self.positions))
        return Tokens(change(self.ids), change(self.mask), lengths, *further)


def moved(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """On the device; to a GPU through pinned memory, so that the host does not wait for the copy."""
    if torch.device(device).type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device, non_blocking=True)


def join(views: Sequence[Tokens], pad: int) -> Tokens:
    """Several views as one, padded to the widest, for one forward pass."""
    if len(views) == 1:
        return views[0]
    width = max(view.ids.shape[1] for view in views)
    typed = any(view.segments is not None for view in views)
    placed = any(view.positions is not None for view in views)

    def widened(tensors: list[torch.Tensor], fill: int) -> torch.Tensor:
        return torch.cat([torch.nn.functional.pad(t, (0, width - t.shape[1]), value=fill) for t in tensors])

    return Tokens(
        widened([view.ids for view in views], pad),
        widened([view.mask for view in views], 0),
        np.concatenate([view.lengths for view in views]),
        widened([torch.zeros_like(v.ids) if v.segments is None else v.segments for v in views], 0) if typed else None,
        widened([_places(v) if v.positions is None else v.positions for v in views], 0) if placed else None,
    )


def _places(view: Tokens) -> torch.Tensor:
    return torch.arange(view.ids.shape[1], device=view.ids.device).expand_as(view.ids)
