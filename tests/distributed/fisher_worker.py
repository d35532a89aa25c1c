"""A process of two: Child-Tuning D with a head that has batch norm; one of the processes has a batch more."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor

import isotrope
from isotrope.training.tactics import child_tuning

SETTINGS: dict[str, Any] = {
    "batch_size": 16, "max_steps": 1, "eval_steps": 1, "held_out": 0, "max_length": 32, "final_table": False,
    "child_tuning": "D", "child_samples": 48, "child_fisher": "batches",
}  # fmt: skip


def masks_of(model: str, text: str, output: str) -> dict[str, Tensor]:
    """The masks of a run; of two processes, both have the same."""
    found: list[dict[str, Tensor]] = []
    plain = child_tuning.largest
    child_tuning.largest = lambda *given: found.append(plain(*given)) or found[-1]  # type: ignore[func-returns-value]
    try:
        isotrope.train("diffcse", text, model, output, generator=model, **SETTINGS)
    finally:
        child_tuning.largest = plain
    return found[0]


if __name__ == "__main__":
    *given, place = sys.argv[1:]
    torch.save(masks_of(*given), f"{place}-{torch.distributed.get_rank()}.pt")
