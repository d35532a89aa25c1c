"""A method's own task on text it never saw: is the order told, is the next token guessed?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch

from isotrope.data.batches import Rows, batches, epoch_size
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import evaluating
from isotrope.methods.frame.method import Batch, Method
from isotrope.training.loop import Judge, Judgement
from isotrope.training.step import keyed_seed

VIEWS = 1 << 22  # apart from the keys of the steps


def with_own_task(
    judge: Judge,
    method: Method,
    corpus: Corpus,
    rows: Rows,
    batch_size: int,
    seed: int,
    tests: Mapping[str, Corpus] | None = None,
) -> Judge:
    """The same judge, which also says how the method does on ``rows`` and on all of ``tests``; checkpoints are chosen
    as before.

    Where a method scores itself, what it says takes the place of the judge's measures.
    """
    size = min(batch_size, epoch_size(method.batches, corpus, rows))
    if not method.judges_itself or (size < 1 and not tests):
        return judge

    def judged(encoder: Encoder) -> Judgement:
        found = own_measures(method, corpus, rows, size, seed) if size else {}
        for name, test in (tests or {}).items():
            measured = own_measures(method, test, np.arange(len(test)), batch_size, seed)
            found |= {f"{name}_{measure}": value for measure, value in measured.items()}
        if method.scores_itself:
            return Judgement(found, next(iter(found)))
        judgement = judge(encoder)
        return Judgement({**judgement.measures, **found}, judgement.chosen_by)

    return judged


def own_measures(method: Method, corpus: Corpus, rows: Rows, size: int, seed: int) -> dict[str, float]:
    with evaluating(method):
        whole = {name: tensor.float() for name, tensor in represent_aside(method, corpus, rows, size, seed).items()}
        return {name: float(value) for name, value in method.on_held_out(whole).items()} if whole else {}


def represent_aside(method: Method, corpus: Corpus, rows: Rows, size: int, seed: int) -> dict[str, torch.Tensor]:
    """Representations of all ``rows``, together.

    The views (pairs, masks) are the same each time, so that two evaluations differ by the weights alone.
    """
    device = next(method.parameters()).device
    parts = []
    dealt = _all_of(rows, size) if method.scores_itself else batches(method.batches, corpus, rows, size, seed, 0)
    for number, chosen in enumerate(dealt):
        key = (seed, VIEWS, number)
        views = method.views(Records(corpus, chosen.tolist()), np.random.default_rng(key))
        torch.manual_seed(keyed_seed(*key))
        parts.append(method.represent(Batch(views, len(chosen), keyed_seed(*key)).to(device)))
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]} if parts else {}


def _all_of(rows: Rows, size: int) -> Iterator[Rows]:
    """A score counts every record; batches that must be full would leave some out."""
    return (rows[start : start + size] for start in range(0, len(rows), size))
