"""The judges of a comparison: a suite takes an encoder and gives flat measures, alike for every run and the start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from isotrope.comparison.terms import Terms
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError, nearest
from isotrope.evaluation.benchmark_files import data_folder
from isotrope.evaluation.retrieval_files import find_sets
from isotrope.evaluation.sts import AGGREGATIONS
from isotrope.evaluation.suite import Options, find_suite
from isotrope.evaluation.transfer_tasks import SEVEN
from isotrope.evaluation.vector_cache import shared_vectors

LABEL_FREE = ("retrieval_mrr", "other_view", "alignment", "uniformity", "effective_rank")
OF_EVERY_RUN = (*LABEL_FREE, "retrieval_first", "mean_cosine")  # measured whatever the method is
DEV = {"spearman": "dev_spearman", "eval_mrr": "dev_mrr"}  # on the eval data
Measures = dict[str, float]


@dataclass(frozen=True)
class Judge:
    """``judge(encoder, terms, measured)``; ``measured`` is what the run itself measured at the step that was kept."""

    judge: Callable[[Encoder, Terms, Measures], Measures]
    protocol: Callable[[Terms], str]
    needs_benchmarks: bool  # it looks at the encoder alone, so it can judge the start


def choose_judges(suite: str | Sequence[str] | None, data_dir: str | None, aggregation: str) -> tuple[str, ...]:
    """The suites asked for; by default STS where there are benchmarks, else the label-free score."""
    names = tuple(suite.split(",") if isinstance(suite, str) else suite or ())
    for name in names:
        if name not in SUITES:
            raise InputError(f"Unknown suite of a comparison '{name}'{nearest(name, SUITES)}")
        if JUDGES[name].needs_benchmarks and data_dir is None:
            raise InputError(f"The suite {name} needs its benchmarks: give data_dir, or set ISOTROPE_DATA.")
    if aggregation not in AGGREGATIONS:
        raise InputError(f"Unknown aggregation '{aggregation}'{nearest(aggregation, AGGREGATIONS)}")
    chosen = names or (("label-free",) if data_dir is None else ("sts",))
    for name in chosen:
        if JUDGES[name].needs_benchmarks:
            find_suite(name).check(Options(data_dir))  # refuses a folder or a file that is not there
    return chosen


def judged_on(judges: Sequence[str], data_dir: str | None) -> str:
    """The sets behind an average that hangs on what the data folder holds: with others it is another judge."""
    return ", ".join(one.name for one in find_sets(data_folder(data_dir))) if "retrieval" in judges else ""


def judge(encoder: Encoder, terms: Terms, measured: Measures) -> Measures:
    """By benchmarks, by what the run measured on its held-out texts, or both.

    Suites share the vectors of their texts; nothing goes to disk, because most of these encoders are thrown away.
    """
    with shared_vectors(disk=False):
        found = [JUDGES[suite].judge(encoder, terms, measured) for suite in terms.judges]
    return {name: value for one in found for name, value in one.items()}


def can_judge_start(terms: Terms) -> bool:
    """Whether any suite looks at the encoder alone; the others judge what a run measured on its own held-out texts."""
    return any(JUDGES[suite].needs_benchmarks for suite in terms.judges)


def protocol(terms: Terms) -> str:
    """Everything that moves the numbers, in words."""
    return "; ".join(JUDGES[suite].protocol(terms) for suite in terms.judges)


def _by_suite(name: str) -> Callable[[Encoder, Terms, Measures], Measures]:
    """The few figures that a suite of the judge says stand for the whole; no interval is shown."""

    def judge(encoder: Encoder, terms: Terms, measured: Measures) -> Measures:
        suite = find_suite(name)()
        asked: dict[str, object] = {
            "aggregation": terms.aggregation,
            "resamples": 1,
            "baselines": False,
            "tasks": (SEVEN,),
        }
        taken = set(suite.card.takes) - set(suite.card.alone)
        options = Options(terms.data_dir, **{k: v for k, v in asked.items() if k in taken})  # type: ignore[arg-type]
        return {**suite.summary(suite.run(encoder, options)), **(_dev(measured) if name == "sts" else {})}

    return judge


def _without_labels(encoder: Encoder, terms: Terms, measured: Measures) -> Measures:
    return {**{name: measured[name] for name in LABEL_FREE if name in measured}, **_dev(measured)}


def _by_own_task(encoder: Encoder, terms: Terms, measured: Measures) -> Measures:
    given = [name for name in measured if name.startswith(("spearman", "eval_"))] if terms.eval_data else []
    return {name: value for name, value in measured.items() if name not in (*OF_EVERY_RUN, *given)}


def _by_selection(encoder: Encoder, terms: Terms, measured: Measures) -> Measures:
    """What the checkpoint was chosen by; a method that chooses by its own task has that first."""
    chosen = ("spearman", "eval_mrr") if terms.eval_data else ("other_view", "retrieval_mrr")
    return {"score": next((measured[name] for name in chosen if name in measured), next(iter(measured.values())))}


def _dev(measured: Measures) -> Measures:
    """What the eval data say; of queries and passages their MRR."""
    return {name: measured[own] for own, name in DEV.items() if own in measured}


def _protocol_of(name: str, terms: Terms) -> str:
    return find_suite(name).card.protocol


PLAIN = ("answers", "clustering", "bitext", "robustness")  # suites whose protocol says all
JUDGES = {
    "sts": Judge(
        _by_suite("sts"), lambda terms: f"{find_suite('sts').card.protocol}, aggregation {terms.aggregation}", True
    ),
    "transfer": Judge(_by_suite("transfer"), lambda terms: f"{find_suite('transfer').card.protocol}, seed 0", True),
    "retrieval": Judge(
        _by_suite("retrieval"), lambda terms: f"{find_suite('retrieval').card.protocol} ({terms.retrieval_sets})", True
    ),
    **{name: Judge(_by_suite(name), partial(_protocol_of, name), True) for name in PLAIN},
    "label-free": Judge(
        _without_labels,
        lambda terms: "the label-free score on the held-out part of each text, the same for all rows and seeds",
        False,
    ),
    "own": Judge(
        _by_own_task,
        lambda terms: "each method's own task, on held-out records (the same for all seeds) and on its test file",
        False,
    ),
    "selection": Judge(_by_selection, lambda terms: "the score that chooses checkpoints", False),
}
SUITES = tuple(name for name in JUDGES if name != "selection")  # that judges the trials of a search
