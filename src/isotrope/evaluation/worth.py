"""Was the training worth it? The run, its start, ``builtin`` as it is and TF-IDF on the same held-out text.

    query i: one side of held-out record i · candidates: the other sides of all n records · cosine
    MRR = 100/n Σ_i 1 / rank of record i's own other side       first place = 100/n Σ_i [rank is 1]

No labels are needed. The two sides are what the text offers: both texts of a pair, a sentence and the next one of its
document, or the two halves of a single sentence, cut at the middle word. Halves share few words, so shared words alone
do not decide, and an encoder whose distances mean something finds the other half far above chance (1/n). A copy of the
sentence with words removed would be no test: TF-IDF finds it perfectly.

All four see the same records. TF-IDF takes its word weights from the training text (up to 50,000 records) and the
held-out text, as an index would. The start is the encoder as ``load`` gives it, so its read-out may differ from the
run's. Differences are paired: 95 % of 1,000 bootstrap draws of the records.

Where checkpoints are chosen without labels, other held-out records choose them (``held_out_parts.py``). What goes
wrong: where the records are too few for that, they do both, and the run's figure is a little too good; the table says
so. The figures hang on n: compare them inside one table only. STS and classes ask for something else: ``evaluate`` has
suites for them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.evaluation.held_out_parts import HeldOutParts, part_held_out
from isotrope.evaluation.items import Items
from isotrope.evaluation.label_free import Pairs, natural_pairs, partner_ranks, ranks_of_own
from isotrope.evaluation.lexical import TITLE, lexical_scores
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.evaluation.worth_table import BUILTIN, RUN, START, Footing, Worth, WorthRow
from isotrope.measures.intervals import percentile_interval
from isotrope.progress import hidden
from isotrope.training.plan import Plan
from isotrope.training.run import Run
from isotrope.training.run_folder import RunFolder
from isotrope.training.source_plan import SourcesPlan
from isotrope.training.state import TrainingWarning

SWITCH = "ISOTROPE_FINAL_TABLE"  # 0: no table, whatever is asked for
MOST = 512  # records
NOTHING_HELD = (
    "No final table: no text was held out (held_out is 0, the records are few, or their texts recur in others), so "
    "measures without labels are of text that it trained on."
)
KNOWN = 50_000  # records that TF-IDF takes its weights from
RESAMPLES = 1000
Ranks = npt.NDArray[np.float64]


def with_worth(plan: Plan, run: Run) -> Run:
    """The run with its final table, which is also put into run.json; a warning where training did not pay.

    Several processes: the first one makes it. The variable ISOTROPE_FINAL_TABLE=0 switches it off.
    """
    if not plan.final_table or os.environ.get(SWITCH) == "0" or os.environ.get("RANK", "0") != "0":
        return run
    with hidden():
        worth = weigh(plan, run)
    RunFolder(run.folder).add_facts({"worth": worth.to_dict()})
    if worth.paid is False:
        warnings.warn(worth.sentences[0], TrainingWarning, stacklevel=3)
    return replace(run, worth=worth)


def with_worth_of_sources(plan: SourcesPlan, run: Run) -> Run:
    """The run of several sources with a final table for each of them, on its own held-out text behind its own prompt.

    run.json has them by the names of the sources, and ``Run.worth`` is that of the source with the largest share.
    """
    if not plan.first.final_table or os.environ.get(SWITCH) == "0" or os.environ.get("RANK", "0") != "0":
        return run
    weighed = []
    keeps = "best" if any(one.method.keeps == "best" for one in plan.plans) else "last"
    for one, source in zip(plan.plans, run.sources, strict=True):
        own = replace(run, encoder=run.encoder.with_prompt(source.prompt), corpus=source.corpus, held=source.held)
        with hidden():
            weighed.append(replace(source, worth=weigh(one, own, keeps)))
    tables = {source.name: source.worth.to_dict() for source in weighed if source.worth is not None}
    RunFolder(run.folder).add_facts({"worth": tables})
    for source in weighed:
        if source.worth is not None and source.worth.paid is False:
            said = f"Source '{source.name}': {source.worth.sentences[0]}"
            warnings.warn(said, TrainingWarning, stacklevel=4)
    largest = max(weighed, key=lambda source: source.share)
    return replace(run, worth=largest.worth, sources=tuple(weighed))


def weigh(plan: Plan, run: Run, keeps: str | None = None) -> Worth:
    """The table of a finished run; rows that cannot be computed are left out with a reason.

    ``keeps``: which checkpoint the whole run keeps, where that is not the method's own affair.
    """
    chosen = not plan.eval_data and (keeps or plan.method.keeps) == "best" and not run.corpus.record_type.names
    parts = part_held_out(run.corpus, run.held) if chosen else HeldOutParts(run.held[:0], run.held)
    reason, pairs = _held_out_pairs(run, parts.judging)
    if reason:
        return Worth("", 0, [], {"all": reason}, None, [reason])
    ranks: dict[str, Ranks] = {}
    left_out: dict[str, str] = {}
    for name, encoder in _encoders(plan, run, left_out):
        try:
            vectors = TextVectors.encoded(encoder, [*pairs.first, *pairs.second])
        except InputError as error:  # vectors that are no numbers; the run is done and keeps its model
            left_out[name] = str(error)
        else:
            ranks[name] = partner_ranks(vectors.of(pairs.first), vectors.of(pairs.second))
    known = _training_texts(run.corpus, run.held)
    ranks[TITLE] = ranks_of_own(lexical_scores([*known, *pairs.first, *pairs.second], pairs.first, pairs.second))
    return Worth.of(_footing(plan, pairs.origin, parts), len(pairs.first), _rows(ranks), left_out)


def held_out_pairs(corpus: Corpus, rows: Rows) -> Pairs:
    """Up to 512 natural pairs of held-out records. No text stands twice on one side: only one of its partners could be
    found."""
    origin, first, second = natural_pairs(corpus, rows, MOST)
    seen: tuple[set[str], set[str]] = (set(), set())
    kept = []
    for pair in zip(first, second, strict=True):
        if pair[0] != pair[1] and not any(text in side for text, side in zip(pair, seen, strict=True)):
            kept.append(pair)
            for text, side in zip(pair, seen, strict=True):
                side.add(text)
    return Pairs(origin, [a for a, _ in kept], [b for _, b in kept])


def _held_out_pairs(run: Run, rows: Rows) -> tuple[str, Pairs]:
    """(why there is no table, or nothing; the pairs)."""
    nothing = Pairs("", [], [])
    if run.corpus.record_type.names:
        return (
            "No final table: the records are names in relations, not texts; see the method's own task.",
            nothing,
        )
    if not len(rows):
        return NOTHING_HELD, nothing
    pairs = held_out_pairs(run.corpus, rows)
    if len(pairs.first) < 2:
        return "No final table: the held-out texts are too short or too much alike to be told apart.", nothing
    return "", pairs


def _encoders(plan: Plan, run: Run, left_out: dict[str, str]) -> Iterator[tuple[str, Encoder]]:
    """The encoders one after another, so that one at a time is in memory besides the run's."""
    start = None
    if plan.from_scratch:
        left_out[START] = f"{plan.name} initialises its encoder from the data"
    else:
        start = plan.model if isinstance(plan.model, Encoder) else load(plan.model, plan.pooling, run.encoder.device)
        yield START, start
    yield RUN, run.encoder
    try:
        builtin = load(BUILTIN, device=run.encoder.device)
    except InputError as error:
        left_out[BUILTIN] = str(error)
        return
    if start is not None and start.fingerprint() == builtin.fingerprint():
        left_out[BUILTIN] = "it is the start"
    else:
        yield BUILTIN, builtin


def _training_texts(corpus: Corpus, held: Rows) -> list[str]:
    """The texts of up to 50,000 records at even distances, without the held-out ones."""
    drawn = np.unique(np.linspace(0, len(corpus) - 1, min(KNOWN, len(corpus))).astype(np.int64))
    rows = np.setdiff1d(drawn, held)
    return [corpus.text(row, field) for field in corpus.record_type.fields for row in rows]


def _rows(ranks: Mapping[str, Ranks]) -> list[WorthRow]:
    """A row each, in the order of ``ranks``; the same draws for all."""
    count = len(next(iter(ranks.values())))
    draws = np.random.default_rng(0).integers(count, size=(RESAMPLES, count))
    found = {name: Items(1 / own) for name, own in ranks.items()}
    run = found.get(RUN)
    return [
        WorthRow(
            name,
            items.score(),
            100 * float((ranks[name] < 1.5).mean()),
            percentile_interval(100 * items.values[draws].mean(axis=1)),
            None
            if run is None or name == RUN
            else percentile_interval(100 * (run.values - items.values)[draws].mean(axis=1)),
        )
        for name, items in found.items()
    ]


def _footing(plan: Plan, origin: str, parts: HeldOutParts) -> Footing:
    start = "none" if plan.from_scratch else "an encoder in memory" if isinstance(plan.model, Encoder) else plan.model
    data = str(plan.data) if isinstance(plan.data, str | os.PathLike) else "DATA"
    return Footing(
        method=plan.name,
        start=str(start),
        data=data,
        origin=origin,
        judged=plan.method.keeps == "best" or plan.from_scratch,
        from_builtin=not plan.from_scratch and not plan.language_head,
        chose=not parts.apart,
        others_chose=parts.apart and len(parts.choosing) > 0,
    )
