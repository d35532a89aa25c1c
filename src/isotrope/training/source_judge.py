"""What checkpoints of a run of several sources are chosen by: the mean over the sources' held-out text.

    score = Σ_s p_s · m_s,    m_s a measure without labels of source s's held-out text, p_s its share

The measure is the one that each source alone would be judged by, where that is the same for all; else the MRR of
natural pairs, since unlike measures have no mean.

Scored pairs (``eval_data``) win over it where they are given, as in a run of one source. The measures of each source
are logged next to the mean. A source of which nothing could be held out has no say where another one has: its score
would be that of the text it is trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.training.building import Built
from isotrope.training.held_out_task import with_own_task
from isotrope.training.opening import Opened
from isotrope.training.plan import Place, Plan
from isotrope.training.run import JudgeMaker, judge_of, nobody
from isotrope.training.source_building import BuiltSources
from isotrope.training.source_list import about
from isotrope.training.source_plan import SourcesPlan
from isotrope.training.state import Judge, Judgement

if TYPE_CHECKING:
    from collections.abc import Iterable

SHARED = "retrieval_mrr"  # where sources alone would be judged by unlike measures: what all of them have
OwnJudge = Callable[[Plan, Opened, Built, JudgeMaker], Judge]


def judge_sources(plan: SourcesPlan, found: BuiltSources, make_judge: JudgeMaker) -> Judge:
    several = len(found.built) > 1
    own: OwnJudge = _judge_source if several else judge_of
    judges: list[Judge] = []
    for number, (name, one) in enumerate(zip(found.names, plan.plans, strict=True)):
        if number in found.unjudged:
            judges.append(nobody)
            continue
        with about(name):
            judges.append(own(one, found.opened[number], found.built[number], make_judge))
    eval_data = plan.first.eval_data if several else ()
    scored = _scored(found, eval_data, make_judge) if eval_data else None

    def judge(encoder: Encoder) -> Judgement:
        each = {
            name: one(encoder.with_prompt(opened.encoder.prompt))
            for name, one, opened in zip(found.names, judges, found.opened, strict=True)
        }
        sources = {name: judgement.measures for name, judgement in each.items() if judgement.measures}
        if not several:
            return replace(next(iter(each.values())), sources=sources)
        means = _means([judgement.measures for judgement in each.values()], found.shares)
        if scored is not None:
            by_labels = scored(encoder)
            return Judgement({**means, **by_labels.measures}, by_labels.chosen_by, sources=sources)
        chosen_by = {judgement.chosen_by for judgement in each.values() if judgement.chosen_by}
        return Judgement(means, chosen_by.pop() if len(chosen_by) == 1 else SHARED, sources=sources)

    return judge


def _judge_source(plan: Plan, opened: Opened, built: Built, make_judge: JudgeMaker) -> Judge:
    """Label-free, and by the method's own task; scored pairs are no source's own."""
    try:
        judge = make_judge(opened.corpus, built.held, ())
    except InputError:
        if not plan.eval_data:
            raise
        judge = nobody
    size, seed = built.settings.batch_size, built.settings.seed
    return with_own_task(judge, built.combined, opened.corpus, built.held_usable, size, seed, built.tests)


def _scored(found: BuiltSources, eval_data: Sequence[Place], make_judge: JudgeMaker) -> Judge:
    """A judge of scored pairs alone: no held-out row is given to it."""
    return make_judge(found.opened[0].corpus, found.built[0].held[:0], eval_data)


def _means(measures: Sequence[Mapping[str, float]], shares: Iterable[float]) -> dict[str, float]:
    """Of the measures that all sources have which have any, weighted by share."""
    weighed = [(found, share) for found, share in zip(measures, shares, strict=True) if found]
    names = [name for name in (weighed[0][0] if weighed else ()) if all(name in found for found, _ in weighed)]
    total = sum(share for _, share in weighed)
    return {name: sum(share * found[name] for found, share in weighed) / total for name in names}
