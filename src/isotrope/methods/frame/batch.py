"""The views of a batch: made on the host, cut into chunks, moved to the device."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch


class View(Protocol):
    """Rows on the host that can be cut and moved: ``Tokens``, ``Masked`` and ``Numbers`` are such."""

    def __len__(self) -> int: ...
    def to(self, device: torch.device) -> View: ...
    def rows(self, rows: slice) -> View: ...


@dataclass(frozen=True)
class Batch:
    """The views of this process's records. ``seed`` is the same in every process, and another one each step.

    ``source`` is the number of the source that the records come from, where a run has several.
    """

    views: dict[str, View]
    size: int
    seed: int
    source: int = 0

    def __getitem__(self, name: str) -> Any:
        return self.views[name]

    def __contains__(self, name: str) -> bool:
        return name in self.views

    def generator(self) -> torch.Generator:
        """For what ``loss`` draws: at the same beginning in every process."""
        return torch.Generator().manual_seed(self.seed)

    def to(self, device: torch.device) -> Batch:
        moved = {id(view): view.to(device) for view in self.views.values()}  # two names may stand for one view
        return replace(self, views={name: moved[id(view)] for name, view in self.views.items()})

    def chunks(self, size: int | None) -> list[Batch]:
        """Cut by records; a view with k rows a record is cut into k times as many rows."""
        if size is None or size >= self.size:
            return [self]
        parts = []
        for start in range(0, self.size, size):
            end = min(start + size, self.size)
            per = {name: len(view) // self.size for name, view in self.views.items()}
            views = {name: view.rows(slice(start * per[name], end * per[name])) for name, view in self.views.items()}
            parts.append(replace(self, views=views, size=end - start))
        return parts
