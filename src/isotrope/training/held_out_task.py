"""A method's own task, measured on text that training never sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from isotrope.data.batches import Rows, batches, epoch_size
from isotrope.data.corpus import Corpus
from isotrope.data.random_streams import keyed_seed
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import evaluating
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.own_task import OwnTask
from isotrope.training.feeds import make_batch
from isotrope.training.state import Judge, Judgement

HELD_OUT = "held-out"  # in a random key, where training has the number of the batch


def chooses_itself(combined: Combined) -> bool:
    """Whether the method's own task is what its checkpoints are chosen by."""
    return isinstance(combined.method, OwnTask) and combined.method.chooses


def with_own_task(
    judge: Judge,
    combined: Combined,
    corpus: Corpus,
    rows: Rows,
    batch_size: int,
    seed: int,
    tests: Mapping[str, Corpus] | None = None,
) -> Judge:
    """The same judge, which also measures the method's own task on ``rows`` and on all of ``tests``.

    Checkpoints are chosen as before, except where the method ``chooses``: then its own measures take the judge's place.
    """
    size = min(batch_size, epoch_size(combined.method.batches, corpus, rows))
    if not isinstance(combined.method, OwnTask) or (size < 1 and not tests):
        return judge

    def judged(encoder: Encoder) -> Judgement:
        found = own_measures(combined, corpus, rows, size, seed) if size else {}
        for name, test in (tests or {}).items():
            measured = own_measures(combined, test, np.arange(len(test)), batch_size, seed)
            found |= {f"{name}_{measure}": value for measure, value in measured.items()}
        if chooses_itself(combined):
            return Judgement(found, next(iter(found)))
        judgement = judge(encoder)
        return Judgement({**judgement.measures, **found}, judgement.chosen_by)

    return judged


def own_measures(combined: Combined, corpus: Corpus, rows: Rows, size: int, seed: int) -> dict[str, float]:
    with evaluating(combined):
        found = represent_held_out(combined, corpus, rows, size, seed)
        whole = {name: tensor.float() for name, tensor in found.items()}
        return {name: float(value) for name, value in combined.on_held_out(whole).items()} if whole else {}


def represent_held_out(combined: Combined, corpus: Corpus, rows: Rows, size: int, seed: int) -> dict[str, Tensor]:
    """Representations of all ``rows``, together.

    The views (pairs, masks) are the same each time, so that two evaluations differ by the weights alone.
    """
    device = next(combined.parameters()).device
    parts = []
    every_row = chooses_itself(combined)  # batches that must be full would leave some out
    dealt = [] if every_row else list(batches(combined.method.batches, corpus, rows, size, seed, 0))
    for number, chosen in enumerate(dealt or _all_of(rows, size)):  # few rows may fill no batch of their order
        key = (seed, HELD_OUT, number)
        batch = make_batch(combined, corpus, chosen, key, key)
        torch.manual_seed(keyed_seed("forward", *key))
        parts.append(combined.represent(batch.to(device)))
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]} if parts else {}


def _all_of(rows: Rows, size: int) -> Iterator[Rows]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
