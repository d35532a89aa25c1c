"""Build what is trained: the method with its auxiliary losses, the rows it trains on, the tactics; refuse the rest.

Nothing is on disk yet when this is done.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from isotrope.data.batches import Rows, epoch_size
from isotrope.data.corpus import Corpus
from isotrope.data.held_out import hold_out
from isotrope.data.random_streams import keyed_seed
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Added, Combined
from isotrope.methods.frame.matryoshka import parse_widths
from isotrope.methods.frame.own_task import OwnTask
from isotrope.training.feeds import CorpusFeed
from isotrope.training.held_out_task import chooses_itself
from isotrope.training.image_opening import with_scaled_rate
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.opening import Opened, check_length, open_like
from isotrope.training.optimiser import hidden_matrices
from isotrope.training.plan import Plan
from isotrope.training.run_length import UNMEASURED
from isotrope.training.state import TrainingWarning
from isotrope.training.tactics.tactic import Tactic

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True)
class Built:
    """``held`` are the rows hidden from training, ``held_usable`` those of them that the method's own task can use.

    Where none could be hidden, ``hidden`` is False and ``held`` are the rows that are trained on.
    """

    combined: Combined
    settings: LoopSettings
    feed: CorpusFeed
    steps: int
    held: Rows
    hidden: bool
    held_usable: Rows
    tests: Mapping[str, Corpus]
    tactics: list[Tactic[Any]]


def build(plan: Plan, opened: Opened, accelerator: Accelerator, split: tuple[Rows, Rows] | None = None) -> Built:
    """``split``: the rows to train on and those held out, where they are chosen already."""
    corpus, order = opened.corpus, plan.method.batches
    settings = (
        plan.loop if "batch_size" in plan.given else _fitting(plan.loop, corpus, order, accelerator.num_processes)
    )
    settings = with_scaled_rate(plan, corpus, settings)
    check_length(opened.encoder, settings.max_length)
    train, held = split or hold_out(corpus, settings.held_out, settings.draw_seed)
    combined = _combine(plan, opened, settings)
    usable, held_usable = (combined.method.prepared.select(rows) for rows in (train, held))
    combined.method.set_held_out(corpus, held)
    combined.method.count(usable)
    _check_size(corpus, order, usable, held, settings)
    combined.method.settings.check_batch(settings.batch_size)
    if settings.optimiser == "muon" and not hidden_matrices(combined):
        raise InputError("optimiser muon takes the weight matrices of layers, and this model has none; choose adamw.")
    if settings.batch_size % accelerator.num_processes:
        raise InputError(f"batch_size {settings.batch_size} cannot be shared by {accelerator.num_processes} processes.")
    tests = _test_sets(plan, opened, combined)
    if chooses_itself(combined) and not (len(held_usable) or tests):
        held_usable = usable
    feed = CorpusFeed(combined, corpus, usable, settings, accelerator)
    steps = count_steps(feed.records // settings.batch_size, settings)
    tactics = [one(each, combined, settings, steps) for one, each in plan.tactics if each.active]
    hidden = len(held) > 0
    return Built(combined, settings, feed, steps, held if hidden else usable, hidden, held_usable, tests, tactics)


def count_steps(batches: int, settings: LoopSettings) -> int:
    """Of an epoch of so many batches. Where the run is one of so many seconds, only its pace will tell."""
    if settings.max_seconds is not None:
        return UNMEASURED
    if settings.max_steps is not None:
        return settings.max_steps
    return max(math.ceil(settings.epochs * (batches / settings.gradient_accumulation_steps)), 1)


def _combine(plan: Plan, opened: Opened, settings: LoopSettings) -> Combined:
    torch.manual_seed(keyed_seed("heads", settings.seed))  # heads are drawn alike in every process
    method = plan.method(replace(plan.settings, **plan.made), opened.encoder, settings.max_length, opened.corpus)
    if settings.chunk_size is not None and method.batch_statistics:
        raise InputError(
            f"chunk_size cuts a batch, and the batch norm of {method.card.name} would see a chunk instead of the "
            "batch; leave it out, or lower batch_size."
        )
    added = [
        Added(auxiliary(auxiliary.added_settings(), opened.encoder, settings.max_length), weight)
        for auxiliary, weight in plan.active
    ]
    return Combined(method, added, parse_widths(settings.matryoshka))


def _test_sets(plan: Plan, opened: Opened, combined: Combined) -> Mapping[str, Corpus]:
    if not isinstance(combined.method, OwnTask):
        return {}
    names = [opened.corpus.record_type.name]
    return combined.method.test_sets(partial(open_like, plan, record_types=names, encoder=opened.encoder))


def _fitting(settings: LoopSettings, corpus: Corpus, order: str, processes: int) -> LoopSettings:
    """The default batch size, or a smaller one where the data would not fill two batches."""
    different, what = _different(corpus, order)
    size = min(settings.batch_size, different // 2 // processes * processes)
    if size == settings.batch_size or size < 2:
        return settings
    warnings.warn(
        f"{different:,} different {what} are few: batch_size is {size} instead of {settings.batch_size}.",
        TrainingWarning,
        stacklevel=4,
    )
    return replace(settings, batch_size=size)


def _check_size(corpus: Corpus, order: str, train: Rows, held: Rows, settings: LoopSettings) -> None:
    different, what = _different(corpus, order)
    if different < 2:
        same = f"{corpus.counts.records:,} records that are all the same"
        found = same if what == "records" and corpus.counts.records > 1 else f"one {what[:-1]}"
        raise InputError(f"The data holds {found}; training needs at least two different ones.")
    left = epoch_size(order, corpus, train)
    if min(different, left) < settings.batch_size:
        aside = f" and {epoch_size(order, corpus, held):,} held out" if len(held) else ""
        raise InputError(
            f"The data holds {different:,} different {what} ({left:,} to train on{aside}), fewer than batch_size "
            f"({settings.batch_size}); lower it or bring more data."
        )


def _different(corpus: Corpus, order: str) -> tuple[int, str]:
    """How many different records an order can deal out, and what they are."""
    if order == "by-document":
        return corpus.counts.documents, f"{corpus.record_type.whole or 'document'}s"
    return corpus.counts.distinct, "records"
