"""Is one encoder better than another? A paired bootstrap over the items of each task, and one sentence to quote.

    difference d = score(A) − score(B), in points
    draw r:  d_r = score(A on rows_r) − score(B on rows_r)     rows_r: items drawn with replacement, the same for both
    with several runs a side:  score = mean over runs, d_r += t_A s_A / √k_A − t_B s_B / √k_B

The 95 % interval is the middle of the draws; p is twice the share of draws on the other side of 0; Holm's correction
covers the tasks of a suite. s is the standard deviation over runs, and t is drawn from Student's distribution with
k − 1 degrees of freedom: three runs have too few resamples of their own to be resampled, and would look too sure.

With one run a side the interval holds for other test items, and not for other random seeds of the training, which often
move a score more. An interval that holds 0 is no proof that two encoders are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError
from isotrope.evaluation.items import Items
from isotrope.evaluation.results import Section
from isotrope.measures.intervals import percentile_interval
from isotrope.measures.multiple_tests import holm, sign_p
from isotrope.measures.paired_draws import paired_draws

RESAMPLES = 2000
DRAWS_A_TASK = 50  # so that the smallest p survives the correction of many tasks
LEVEL = 0.05
NO_DIFFERENCE = "no difference can be shown"
AVERAGE = "average"
TITLES = {"sts": "STS"}
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TaskVerdict:
    """``difference`` in points; ``p_holm`` decides. ``probability`` = 1 − p: how sure the sign of the difference is."""

    task: str
    score: float
    other: float
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    items: int

    @property
    def probability(self) -> float:
        return 1 - self.p

    @property
    def verdict(self) -> str:
        if self.p_holm >= LEVEL or self.low <= 0 <= self.high:
            return NO_DIFFERENCE
        return "better" if self.difference > 0 else "worse"

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "probability": self.probability, "verdict": self.verdict}

    def row(self) -> tuple[str, ...]:
        return (
            self.task,
            f"{self.score:.2f}",
            f"{self.other:.2f}",
            f"{self.difference:+.2f}",
            spoken_interval(self.low, self.high, "+"),
            f"{100 * self.probability:.1f} %",
            f"{self.p_holm:.3f}",
            self.verdict,
        )


@dataclass(frozen=True)
class Verdict:
    """A against B by one suite. ``runs`` are those of each side."""

    suite: str
    model: str
    against: str
    tasks: Sequence[TaskVerdict]
    average: TaskVerdict
    runs: tuple[int, int]
    resamples: int
    remarks: tuple[str, ...] = ()
    leaked: tuple[str, ...] = ()  # a sentence where much of a test stands in the training text of ``model``

    @property
    def sentence(self) -> str:
        """What may be quoted."""
        return " ".join((sentence_of(self), *self.leaked))

    def section(self) -> Section:
        rows = [task.row() for task in (*self.tasks, *([self.average] if len(self.tasks) > 1 else []))]
        columns = ("task", self.model, self.against, "difference", "95 % interval", "sure by", "Holm p", "verdict")
        title = f"{self.model} against {self.against}: {self.suite}"
        return Section(title, columns, rows, caption=" · ".join((_terms(self), *self.remarks)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "model": self.model,
            "against": self.against,
            "sentence": self.sentence,
            "runs": list(self.runs),
            "resamples": self.resamples,
            "tasks": {task.task: task.to_dict() for task in self.tasks},
            AVERAGE: self.average.to_dict(),
            "remarks": list(self.remarks),
        }


def decide(
    suite: str,
    names: tuple[str, str],
    runs: Sequence[Mapping[str, Items]],
    other_runs: Sequence[Mapping[str, Items]],
    seed: int = 0,
    resamples: int = RESAMPLES,
    remarks: Sequence[str] = (),
) -> Verdict:
    """The verdict on two models, each given by the items of its runs: task → items, one mapping a run."""
    tasks = [task for task in runs[0] if all(task in run for run in (*runs, *other_runs))]
    if not tasks:
        raise InputError(f"The {suite} suite gives no items, so two encoders cannot be compared by it.")
    resamples = max(resamples, DRAWS_A_TASK * len(tasks))
    rng = np.random.default_rng(seed)
    # [tasks, runs] and [tasks, resamples]
    points = [np.array([[_score(run[task]) for run in side] for task in tasks]) for side in (runs, other_runs)]
    drawn = np.stack([_item_draws(task, runs, other_runs, resamples, rng) for task in tasks])
    scores = [np.concatenate([side, side.mean(axis=0, keepdims=True)]) for side in points]
    draws = np.concatenate([drawn, drawn.mean(axis=0, keepdims=True)]) + _seed_noise(scores, resamples, rng)
    values = [sign_p(row) for row in draws]
    corrected = [*holm(values[:-1]), values[-1]]
    counts = [len(runs[0][task]) for task in tasks]
    found = [
        _task(name, scores[0][row].mean(), scores[1][row].mean(), draws[row], values[row], corrected[row], count)
        for row, (name, count) in enumerate(zip((*tasks, AVERAGE), (*counts, sum(counts)), strict=True))
    ]
    return Verdict(
        suite,
        *names,
        found[:-1],
        found[-1],
        (len(runs), len(other_runs)),
        resamples,
        (*remarks, *_caution(runs, other_runs)),
    )


def sentence_of(verdict: Verdict) -> str:
    """Who is better, on how many tasks, by how much, and how that was found."""
    average, count = verdict.average, len(verdict.tasks)
    better, worse = (sum(task.verdict == word for task in verdict.tasks) for word in ("better", "worse"))
    title = TITLES.get(verdict.suite, verdict.suite)
    where = f"{count} {title} tasks" if count > 1 else f"{title}: {verdict.tasks[0].task}"
    mean = "average " if count > 1 else ""
    interval = f"95 % interval {spoken_interval(average.low, average.high)}"
    found = f"({mean}{average.difference:+.1f} points, {interval}; {_terms(verdict)})"
    one, other = verdict.model, verdict.against
    if average.verdict == NO_DIFFERENCE:
        apart = f"; {one} is better on {better} and worse on {worse} of them" if count > 1 and better + worse else ""
        return f"No difference between {one} and {other} can be shown on {where} {found}{apart}."
    hits, misses = (better, worse) if average.verdict == "better" else (worse, better)
    contrary = {"better": "worse", "worse": "better"}[average.verdict]
    if count == 1:
        return f"{one} is {average.verdict} than {other} on {where} {found}."
    if not hits:
        return f"{one} is {average.verdict} than {other} on the average of {where}, and on none of them alone {found}."
    rest = f" and {contrary} on {misses}" if misses else ""
    return f"{one} is {average.verdict} than {other} on {hits} of {where}{rest} {found}."


def spoken_interval(low: float, high: float, sign: str = "") -> str:
    """In points, with one decimal; with two where one would make the ends alike."""
    digits = 2 if f"{low:.1f}" == f"{high:.1f}" else 1
    return f"{low:{sign}.{digits}f} to {high:{sign}.{digits}f}"


def _task(name: str, score: float, other: float, draws: Floats, p: float, corrected: float, items: int) -> TaskVerdict:
    low, high = percentile_interval(draws)
    return TaskVerdict(name, float(score), float(other), float(score - other), low, high, p, corrected, items)


def _score(items: Items) -> float:
    """Values that are all alike rank nothing: their correlation is 0."""
    if not np.isfinite(items.values).all():
        raise InputError("A score is made of NaN or infinity; no verdict can be taken of it.")
    score = items.score()
    return 0.0 if np.isnan(score) else score


def _item_draws(
    task: str,
    runs: Sequence[Mapping[str, Items]],
    other_runs: Sequence[Mapping[str, Items]],
    resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """[resamples]: differences of the mean over runs, in points."""
    every = [run[task] for run in (*runs, *other_runs)]
    gold = every[0].gold
    for one in every[1:]:
        if len(one) != len(every[0]) or not _same(gold, one.gold):
            raise InputError(f"{task}: the encoders were judged on different items, so they cannot be paired.")
    drawn = 100 * paired_draws([one.values for one in every], gold, resamples, rng)
    return np.asarray(drawn[: len(runs)].mean(axis=0) - drawn[len(runs) :].mean(axis=0))


def _same(gold: Floats | None, other: Floats | None) -> bool:
    return gold is other if gold is None or other is None else np.array_equal(gold, other)


def _seed_noise(scores: Sequence[Floats], resamples: int, rng: np.random.Generator) -> Floats:
    """[tasks, resamples]: how far the mean over runs would move with other random seeds; 0 where there is one run."""
    noise = np.zeros((len(scores[0]), resamples))
    for sign, side in ((1, scores[0]), (-1, scores[1])):
        runs = side.shape[1]
        if runs > 1:
            spread = side.std(axis=1, ddof=1, keepdims=True) / np.sqrt(runs)
            noise += sign * spread * rng.standard_t(runs - 1, size=resamples)
    return noise


def _terms(verdict: Verdict) -> str:
    corrected = "Holm-corrected, " if len(verdict.tasks) > 1 else ""
    first, second = verdict.runs
    runs = f", {first} against {second} runs" if max(verdict.runs) > 1 else ""
    return f"{corrected}{verdict.resamples:,} paired resamples{runs}"


def _caution(runs: Sequence[Any], other_runs: Sequence[Any]) -> list[str]:
    if min(len(runs), len(other_runs)) > 1:
        return []
    return ["the interval is over test items, not over random seeds of the training"]
