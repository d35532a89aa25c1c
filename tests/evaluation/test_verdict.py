"""Verdicts: the draws are those of a plain loop, equal encoders are called equal, a known difference is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, spearmanr
from scipy.stats import t as student

from isotrope.errors import InputError
from isotrope.evaluation.items import Items
from isotrope.evaluation.verdict import NO_DIFFERENCE, TaskVerdict, Verdict, decide, spoken_interval
from isotrope.measures.multiple_tests import holm, sign_p
from isotrope.measures.paired_draws import paired_draws, resampled_counts


def ranked(rng: np.random.Generator, count: int, noise: float, gold: np.ndarray) -> Items:
    return Items(gold + noise * rng.normal(size=count), gold)


def test_draws_are_those_of_a_loop_over_the_same_rows() -> None:
    rng = np.random.default_rng(0)
    gold = rng.integers(6, size=40).astype(float)  # ties
    sides = [np.round(gold + rng.normal(size=40), 1), rng.normal(size=40)]
    drawn = paired_draws(sides, gold, 30, np.random.default_rng(5))
    means = paired_draws(sides, None, 30, np.random.default_rng(5))
    counts = np.concatenate(list(resampled_counts(40, 30, np.random.default_rng(5))))
    assert counts.sum(axis=1).tolist() == [40] * 30
    for draw, one in enumerate(counts):
        rows = np.repeat(np.arange(40), one)
        for side, values in enumerate(sides):
            assert drawn[side, draw] == pytest.approx(spearmanr(values[rows], gold[rows]).statistic)
            assert means[side, draw] == pytest.approx(values[rows].mean())


def test_several_runs_add_the_error_of_their_mean() -> None:
    """Each item of a run is alike, so the resampled items say nothing, and the interval is Student's over the runs."""
    scores = (0.50, 0.52, 0.57, 0.61)
    runs = [{"task": Items(np.full(30, score))} for score in scores]
    found = decide("made", ("a", "b"), runs, [{"task": Items(np.full(30, 0.5))}], resamples=200_000).tasks[0]
    half = 100 * student.ppf(0.975, 3) * np.std(scores, ddof=1) / 2
    assert found.difference == pytest.approx(5.0)
    assert (found.low, found.high) == pytest.approx((5 - half, 5 + half), abs=0.2)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    values, gold = rng.normal(size=20), rng.normal(size=20)
    whole = paired_draws([values], gold, 50, np.random.default_rng(1))
    monkeypatch.setattr("isotrope.measures.paired_draws.AT_ONCE", 60)
    assert np.array_equal(whole, paired_draws([values], gold, 50, np.random.default_rng(1)))


def test_values_that_are_all_alike_rank_nothing() -> None:
    gold = np.arange(10.0)
    assert not paired_draws([np.ones(10)], gold, 5, np.random.default_rng(0)).any()
    found = decide("sts", ("constant", "good"), [{"a": Items(np.ones(10), gold)}], [{"a": Items(gold, gold)}])
    assert found.tasks[0].score == 0.0
    assert found.tasks[0].verdict == "worse"


def test_p_and_holm_by_hand() -> None:
    draws = np.array([1.0] * 97 + [-1.0, 0.0, 2.0])
    assert sign_p(draws) == pytest.approx(2 * 3 / 101)
    assert sign_p(np.zeros(10)) == 1.0
    assert sign_p(np.ones(1999)) == pytest.approx(0.001)
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.5]) == [1.0, 1.0]
    assert holm([]) == []


def nominal(calls: int, trials: int) -> None:
    """Exact: the count of a fair test at 5 % lies here in all but one of ten thousand simulations."""
    low, high = binom.ppf([0.00005, 0.99995], trials, 0.05)
    assert low <= calls <= high, f"{calls} of {trials}"


@pytest.mark.parametrize("ranking", [True, False])
def test_equal_encoders_are_called_different_at_the_nominal_rate(ranking: bool) -> None:
    rng = np.random.default_rng(7)
    calls, trials = 0, 400
    for trial in range(trials):
        gold = rng.normal(size=100) if ranking else None
        shared = rng.normal(size=100)  # what makes an item hard for both
        if gold is None:
            sides = [Items((shared + rng.normal(size=100) > 0).astype(float)) for _ in range(2)]
        else:
            sides = [Items(gold + shared + rng.normal(size=100), gold) for _ in range(2)]
        found = decide("sts", ("a", "b"), [{"one": sides[0]}], [{"one": sides[1]}], seed=trial, resamples=400)
        calls += found.tasks[0].verdict != NO_DIFFERENCE
    nominal(calls, trials)


def test_seeds_of_equal_methods_are_called_different_at_the_nominal_rate_or_less() -> None:
    """Three runs a side, whose seeds move the score far more than the items do."""
    rng = np.random.default_rng(3)
    alone = together = 0
    trials = 300
    for trial in range(trials):
        sides = [
            [{"one": Items((rng.random(400) < 0.6 + 0.05 * rng.normal()).astype(float))} for _ in range(3)]
            for _ in range(2)
        ]
        found = decide("linear", ("a", "b"), sides[0], sides[1], seed=trial, resamples=200)
        together += found.tasks[0].verdict != NO_DIFFERENCE
        alone += (
            decide("linear", ("a", "b"), sides[0][:1], sides[1][:1], seed=trial, resamples=200).tasks[0].verdict
            != NO_DIFFERENCE
        )
    assert together <= binom.ppf(0.9999, trials, 0.05)
    assert alone > 0.2 * trials  # what one run a side would have said


def test_a_known_difference_is_found_and_quoted() -> None:
    rng = np.random.default_rng(0)
    gold = {f"task {number}": rng.normal(size=400) for number in range(3)}
    noises = {"task 0": (0.5, 2.0), "task 1": (0.5, 2.0), "task 2": (1.0, 1.0)}
    sides = [
        {task: ranked(np.random.default_rng([side, number]), 400, noises[task][side], values)}
        for side in (0, 1)
        for number, (task, values) in enumerate(gold.items())
    ]
    first, second = ({k: v for part in sides[s : s + 3] for k, v in part.items()} for s in (0, 3))
    found = decide("sts", ("mine", "old"), [first], [second])
    assert [task.verdict for task in found.tasks] == ["better", "better", NO_DIFFERENCE]
    assert found.average.difference == pytest.approx(np.mean([task.difference for task in found.tasks]))
    assert found.sentence.startswith("mine is better than old on 2 of 3 STS tasks (average +")
    assert found.sentence.endswith("; Holm-corrected, 2,000 paired resamples).")
    back = decide("sts", ("old", "mine"), [second], [first])
    assert back.sentence.startswith("old is worse than mine on 2 of 3 STS tasks (average -")
    assert decide("sts", ("mine", "old"), [first], [second]) == found  # seeded


def test_an_encoder_is_not_better_than_itself() -> None:
    rng = np.random.default_rng(0)
    items = {"one": ranked(rng, 50, 1.0, rng.normal(size=50))}
    found = decide("sts", ("a", "b"), [items], [items])
    assert (found.tasks[0].p, found.tasks[0].low, found.tasks[0].high) == (1.0, 0.0, 0.0)
    assert found.sentence.startswith("No difference between a and b can be shown on STS: one (+0.0 points")


def test_the_sentence_of_each_outcome() -> None:
    def verdict(*tasks: float, average: float = 1.0, sure: bool = True) -> str:
        rows = [one(f"t{n}", value, abs(value) > 1) for n, value in enumerate(tasks)]
        return Verdict("transfer", "A", "B", rows, one("average", average, sure), (1, 1), 2000).sentence

    def one(name: str, value: float, sure: bool) -> TaskVerdict:
        p = 0.001 if sure else 0.5
        spread = abs(value) / 2 if sure else 3 * abs(value)
        return TaskVerdict(name, 50 + value, 50, value, value - spread, value + spread, p, p, 100)

    assert verdict(2, 2, -2).startswith("A is better than B on 2 of 3 transfer tasks and worse on 1 (average +1.0")
    assert verdict(0.5, 0.5).startswith(
        "A is better than B on the average of 2 transfer tasks, and on none of them alone"
    )
    assert verdict(2, -2, average=0.1, sure=False).endswith("; A is better on 1 and worse on 1 of them.")
    assert verdict(-2, average=-2).startswith("A is worse than B on transfer: t0 (-2.0 points")


def test_an_interval_that_one_decimal_would_close_has_two() -> None:
    narrow = TaskVerdict("t", 50.3, 50, 0.3, 0.28, 0.33, 0.001, 0.001, 100)
    assert "+0.28 to +0.33" in narrow.row()
    assert "95 % interval 0.28 to 0.33" in Verdict("sts", "A", "B", [narrow], narrow, (1, 1), 2000).sentence
    assert spoken_interval(0.28, 1.33, "+") == "+0.3 to +1.3"


def test_many_tasks_leave_room_for_their_correction() -> None:
    rng = np.random.default_rng(0)
    first = {f"t{n}": Items(np.ones(20)) for n in range(60)}
    second = {f"t{n}": Items((rng.random(20) < 0.2).astype(float)) for n in range(60)}
    found = decide("bitext", ("a", "b"), [first], [second])
    assert found.resamples == 3000
    assert all(task.verdict == "better" for task in found.tasks)
    assert math.isclose(max(task.p_holm for task in found.tasks), 60 * 2 / 3001)


def test_what_cannot_be_paired_is_refused() -> None:
    gold = np.arange(5.0)
    one = {"a": Items(gold, gold)}
    for other, said in (
        ({"a": Items(gold[:4], gold[:4])}, "different items"),
        ({"a": Items(gold, gold[::-1])}, "different items"),
        ({"a": Items(gold)}, "different items"),
        ({"b": Items(gold, gold)}, "gives no items"),
        ({"a": Items(np.full(5, np.nan), gold)}, "NaN or infinity"),
    ):
        with pytest.raises(InputError, match=said):
            decide("sts", ("a", "b"), [one], [other])
