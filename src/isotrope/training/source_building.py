"""Open and build what a plan of sources names: one encoder, and for each source its corpus, method and batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus
from isotrope.data.held_out import hold_out
from isotrope.data.source_turns import turns, without_texts
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.read_out import ReadOut, is_raw, with_read_out
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.mixture import Mixture
from isotrope.progress import say
from isotrope.training.building import Built, build, count_steps
from isotrope.training.feeds import CorpusFeed, Numbered
from isotrope.training.opening import Opened, open_encoder, open_like, open_start
from isotrope.training.prefetch import prefetched
from isotrope.training.source_list import about
from isotrope.training.source_plan import SourcesPlan

if TYPE_CHECKING:
    from accelerate import Accelerator

Turn = tuple[int, Rows]  # the number of the source, and the rows of its next batch


class SourcesFeed:
    """Each batch is of one source, and the sources take turns by their shares; each goes through its own epochs.

    One source a batch, so that no negative can be recognised by its genre. To have several sources in one update,
    accumulate gradients.
    """

    def __init__(self, names: Sequence[str], feeds: Sequence[CorpusFeed], shares: Sequence[float]) -> None:
        self.names, self.feeds, self.shares = names, feeds, shares

    def batches(self, skip: int) -> Numbered:
        return prefetched(self._make, self._turns(), skip)

    def release(self) -> None:
        for feed in self.feeds:
            feed.release()

    def _turns(self) -> Iterator[Turn]:
        streams = [feed.endless() for feed in self.feeds]
        for source in turns(self.shares):
            with about(self.names[source]):
                rows = next(streams[source])
            yield source, rows

    def _make(self, number: int, turn: Turn) -> Batch:
        source, rows = turn
        return replace(self.feeds[source].make(number, rows), source=source)


@dataclass(frozen=True)
class BuiltSources:
    """``opened`` and ``built`` have one item a source; ``shares`` are those of the batches and add up to 1."""

    mixture: Mixture
    opened: tuple[Opened, ...]
    built: tuple[Built, ...]
    shares: tuple[float, ...]
    feed: SourcesFeed
    steps: int

    @property
    def names(self) -> tuple[str, ...]:
        return self.mixture.sources

    @property
    def unjudged(self) -> frozenset[int]:
        """The sources that nothing is held out of, where something is of others."""
        hidden = [built.hidden for built in self.built]
        return frozenset(number for number, there in enumerate(hidden) if not there and any(hidden))

    @property
    def largest(self) -> int:
        """The number of the source with the largest share."""
        return max(range(len(self.shares)), key=lambda source: self.shares[source])

    @property
    def mean_batch(self) -> float:
        """Records of a batch, in the mean over the turns of the sources."""
        return sum(share * one.settings.batch_size for share, one in zip(self.shares, self.built, strict=True))


def open_sources(plan: SourcesPlan, accelerator: Accelerator) -> tuple[Encoder, tuple[Opened, ...]]:
    """The encoder that is kept, and for each source the same modules behind its prompt, with its corpus."""
    encoder, read_out = _encoder(plan, accelerator)
    opened = []
    for source, one in zip(plan.sources, plan.plans, strict=True):
        own = encoder if source.prompt is None else encoder.with_prompt(source.prompt)
        with about(source.name), accelerator.main_process_first():
            corpus = open_like(one, one.data, one.method.record_types(one.settings), own)
        opened.append(Opened(own, corpus, read_out))
    return encoder, tuple(opened)


def _encoder(plan: SourcesPlan, accelerator: Accelerator) -> tuple[Encoder, ReadOut]:
    """One read-out for all: the papers' where they agree, else the user must name it."""
    if len(plan.plans) == 1:
        return open_encoder(plan.first, accelerator)
    start = open_start(plan.loader, accelerator)
    papers = {one.method.card.read_out: one.name for one in plan.plans if one.method.card.read_out is not None}
    if len(papers) > 1 and plan.first.pooling is None and is_raw(start.facts):
        found = ", ".join(f"{method} by {read_out}" for read_out, method in papers.items())
        raise InputError(
            f"The methods of the sources read out a raw language model differently ({found}); name one pooling for all."
        )
    paper, whose = next(iter(papers.items()), (None, plan.first.name))
    return with_read_out(start, plan.first.pooling, paper, whose)


def build_sources(
    plan: SourcesPlan, encoder: Encoder, opened: Sequence[Opened], accelerator: Accelerator
) -> BuiltSources:
    names = [source.name for source in plan.sources]
    splits = [
        hold_out(each.corpus, one.loop.held_out, one.loop.draw_seed)
        for one, each in zip(plan.plans, opened, strict=True)
    ]
    built = []
    for number, (name, one, each) in enumerate(zip(names, plan.plans, opened, strict=True)):
        hidden = [(opened[n].corpus, held) for n, (_, held) in enumerate(splits) if n != number and len(held)]
        train, held = splits[number]
        trainable = [parameter for parameter in encoder.parameters() if parameter.requires_grad]
        with about(name):
            kept = without_texts(each.corpus, train, hidden)
            if len(kept) < len(train) and accelerator.is_main_process:
                say(f"source '{name}': {_left_out(each.corpus, len(train) - len(kept), len(train))}")
            built.append(build(one, each, accelerator, (kept, held)))
            if len(names) > 1 and not all(parameter.requires_grad for parameter in trainable):
                raise InputError(
                    f"{one.name} freezes a part of the encoder, which the other sources train; "
                    "give it a run of its own."
                )
    mixture = Mixture(encoder, names, [each.combined for each in built])
    sizes = [each.feed.records // each.settings.batch_size for each in built]
    weights = [size if source.share is None else source.share for source, size in zip(plan.sources, sizes, strict=True)]
    shares = tuple(weight / sum(weights) for weight in weights)
    feed = SourcesFeed(names, [each.feed for each in built], shares)
    steps = count_steps(sum(sizes), plan.first.loop)
    return BuiltSources(mixture, tuple(opened), tuple(built), shares, feed, steps)


def _left_out(corpus: Corpus, lost: int, total: int) -> str:
    whose = "they or their documents" if corpus.counts.documents > 1 else "they"
    return f"{lost:,} of {total:,} records are left out: {whose} hold a text that another source holds out."
