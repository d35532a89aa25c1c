"""The search of settings: ranges, samplers, trials on disk, and the final runs under what was found."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.comparison import samplers
from isotrope.comparison.line_up import plan_comparison
from isotrope.comparison.samplers import Trial, choose_sampler, propose
from isotrope.comparison.search_space import Dimension, draw, parse_space
from isotrope.comparison.setting_search import _hunts
from isotrope.comparison.terms import Contestant
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.methods.simcse import SimCSE

pytestmark = pytest.mark.filterwarnings("ignore:Training did not improve")
Short = dict[str, Any]
RATE = {"learning_rate": "1e-5:1e-2:log"}
with_optuna = pytest.mark.skipif(importlib.util.find_spec("optuna") is None, reason="optuna is not installed")


def test_ranges_are_parsed_and_values_drawn_inside_them() -> None:
    rate, heat, layers = parse_space({"learning-rate": "1e-5:1e-3:log", "t": (0.01, 0.1), "optimiser": "adamw|muon"})
    assert rate == Dimension("learning_rate", 1e-5, 1e-3, log=True)
    assert (rate.at(0.0), rate.at(0.5), heat.at(0.5)) == (1e-5, 1e-4, 0.055)
    assert (layers.at(0.49), layers.at(0.51)) == ("adamw", "muon")
    whole = Dimension("queue", 1, 4, whole=True)
    assert [whole.at(share) for share in (0.0, 0.25, 0.5, 0.999)] == [1, 2, 3, 4]
    values = [draw((rate, heat), 7, number) for number in range(200)]
    assert all(1e-5 <= one["learning_rate"] <= 1e-3 and 0.01 <= one["t"] <= 0.1 for one in values)
    below = sum(one["learning_rate"] < 1e-4 for one in values)
    assert 70 < below < 130  # half of the factors
    assert draw((heat,), 7, 3) == {"t": values[3]["t"]}  # another method, without the other setting, tries the same
    assert draw((heat,), 8, 3) != {"t": values[3]["t"]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"search": {"learning_rate": "1e-3:1e-5"}}, "must run from a number to a higher one; 0.001 to 1e-05"),
        ({"search": {"learning_rate": "1e-3:1e-3"}}, "to a higher one"),
        ({"search": {"learning_rate": "nan:1"}}, "to a higher one"),
        ({"search": {"learning_rate": "1e-3"}}, "search takes LOW:HIGH, LOW:HIGH:log or words"),
        ({"search": {"learning_rate": "|"}}, "search takes LOW:HIGH, LOW:HIGH:log or words"),
        ({"search": {"learning_rate": "1:2:lin"}}, "search takes LOW:HIGH or LOW:HIGH:log"),
        ({"search": {"weight_decay": "0:1:log"}}, "needs a range above 0"),
        ({"search": {"learning_rate": "-1:1"}}, "learning_rate must be above 0; -1.0 was given"),
        ({"search": {"temprature": "1:2"}}, "No method that is compared has the setting temprature"),
        ({"search": {"max_steps": "1:2"}}, "max_steps is the same for every run"),
        ({"search": {"optimiser": "1:2"}}, r"optimiser takes no numbers; search it over words joined by \|"),
        ({"search": {"optimiser": "adamw|adan"}}, "optimiser is one of"),
        ({"search": {"temperature": "0.1:0.2"}}, "mlm has none of the settings that are searched"),
        ({"search": RATE, "learning_rate": 1e-4}, "was given a value and is to vary as well"),
        ({"search": RATE, "vary": {"learning_rate": "1"}}, "was given a value and is to vary as well"),
        ({"search": RATE, "trials": 0}, "trials must be at least 1, not 0"),
        ({"search": {}}, "search needs a setting and its range"),
        ({"search": RATE, "sampler": "randm"}, "Unknown sampler 'randm'; did you mean 'random'"),
    ],
)
def test_what_cannot_be_searched_is_refused(given: Short, said: str, sentences: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        plan_comparison(**{"data": sentences, "methods": "simcse,mlm", "output": tmp_path / "all", **given})


def test_without_optuna_values_are_random_and_asking_for_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(samplers.importlib.util, "find_spec", lambda name: None)
    assert choose_sampler("auto") == "random"
    with pytest.raises(InputError, match=r"pip install 'isotrope\[tune\]', or choose sampler random"):
        choose_sampler("optuna")


def test_the_first_trial_is_the_method_as_given_where_the_ranges_hold_it() -> None:
    (heat,) = parse_space({"temperature": "0.01:0.1"})
    assert propose("random", [heat], 1, 0, {"temperature": 0.05}, []) == {"temperature": 0.05}
    assert propose("random", [heat], 1, 0, {"temperature": 0.5}, []) == draw([heat], 1, 0)


@with_optuna
def test_optuna_learns_from_the_trials_that_ended() -> None:
    space = (*parse_space({"rate": "1e-5:1e-1:log", "kind": "a|b"}), Dimension("size", 1, 64, log=True, whole=True))
    failed = Trial(0, {"rate": 1e-2, "kind": "a", "size": 3}, failed="The loss is not a number.")
    late = {}
    for sampler in ("random", "optuna"):
        trials = [failed]
        for number in range(1, 41):
            tried = propose(sampler, space, 3, number, {}, trials)
            assert {one.name: one.found(tried[one.name]) for one in space} == tried
            trials.append(Trial(number, tried, score=-abs(math.log10(tried["rate"]) + 3) - (tried["kind"] == "b")))
        late[sampler] = sum(one.score or 0.0 for one in trials[-15:]) / 15
    assert late["optuna"] > late["random"] + 0.3
    running = [*trials, Trial(40, {"rate": 1e-3, "kind": "a", "size": 9})]
    assert propose("optuna", space, 3, 41, {}, running) == propose("optuna", space, 3, 41, {}, running)


def read(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "judgement.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("sampler", ["random", pytest.param("optuna", marks=with_optuna)])
def test_the_best_trial_is_what_the_final_seeds_run_with(
    short: Short, sentences: Path, tmp_path: Path, sampler: str
) -> None:
    given = {**{k: v for k, v in short.items() if k != "learning_rate"}, "max_steps": 2, "eval_steps": 2}
    asked = {**given, "search": RATE, "trials": 3, "sampler": sampler}
    found = isotrope.compare(sentences, "simcse", tmp_path / "all", **asked)
    assert not found.failures
    trials = [read(tmp_path / "all" / "search" / "simcse" / f"trial-{number}") for number in range(3)]
    assert trials[0]["facts"]["settings"]["learning_rate"] == 1e-4  # as given
    best = max(trials, key=lambda trial: trial["measures"]["score"])
    for run in found.runs:
        assert run.facts.settings["learning_rate"] == best["facts"]["settings"]["learning_rate"]
        assert (run.facts.settings["held_out_seed"], run.seed) in ((42, 42), (42, 43))
    assert {trial["facts"]["settings"]["seed"] for trial in trials} == {1_000_042}
    assert {trial["facts"]["settings"]["held_out_seed"] for trial in trials} == {1_000_042}
    assert not list((tmp_path / "all" / "search").rglob("model"))
    how = "random values" if sampler == "random" else "optuna's TPE"
    assert f"3 trials of each method ({how}" in found.table()
    assert f"simcse: learning_rate {best['facts']['settings']['learning_rate']}." in found.table()
    assert "learning_rate 0.0001, max_length" not in found.table()  # nobody's rate
    assert isotrope.compare(sentences, "simcse", tmp_path / "all", **asked).runs == found.runs


def test_a_killed_search_goes_on_where_it_was(
    short: Short, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**{k: v for k, v in short.items() if k != "learning_rate"}, "seeds": 1, "max_steps": 2}
    asked = {**given, "search": RATE, "trials": 3, "sampler": "random"}
    steps: list[int] = []

    def interrupt(self: Combined, representations: Any) -> None:
        steps.append(1)
        if len(steps) == 3:  # the first step of the second trial
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Combined, "after_update", interrupt)
    with pytest.raises(KeyboardInterrupt, match=rf"the same call with output {tmp_path / 'all'} goes on"):
        isotrope.compare(sentences, "simcse", tmp_path / "all", **asked)
    assert (tmp_path / "all" / "search" / "simcse" / "trial-1" / "checkpoints" / "step-1").is_dir()
    found = isotrope.compare(sentences, "simcse", tmp_path / "all", **asked)
    assert len(found.runs) == 1
    assert len(steps) == 3 * 2 + 2  # no step was made twice
    with pytest.raises(InputError, match=r"made by another search, learning_rate was 0\.0001"):
        isotrope.compare(sentences, "simcse", tmp_path / "all", **{**asked, "search": {"learning_rate": "0.1:0.2"}})
    assert isotrope.compare(tmp_path / "all" / "comparison.json").runs == found.runs  # a refusal loses nothing


def test_trials_that_fail_are_kept_and_a_method_without_any_is_reported(
    short: Short, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**{k: v for k, v in short.items() if k != "learning_rate"}, "seeds": 1, "max_steps": 2}
    asked = {**given, "search": RATE, "trials": 2, "sampler": "random"}
    tried: list[int] = []

    def broken(self: SimCSE, *_: Any) -> None:
        tried.append(1)
        raise InputError("The loss is not a number.")

    monkeypatch.setattr(SimCSE, "represent", broken)
    for _ in range(2):
        found = isotrope.compare(sentences, "simcse,mlm", tmp_path / "all", **asked)
        (failure,) = found.failures
        assert failure.name == "simcse"
        assert "none of the 2 trials of its search ended; the last one: The loss is not a number." in failure.sentence
        assert [run.name for run in found.runs] == ["mlm"]
    assert len(tried) == 2


def test_a_trial_whose_score_is_no_number_is_not_the_best(short: Short, sentences: Path, tmp_path: Path) -> None:
    """Nothing is greater than nan, so as the first of all it would stay the best."""
    given = {**{k: v for k, v in short.items() if k != "learning_rate"}, "seeds": 1, "max_steps": 2}
    asked = {**given, "search": RATE, "trials": 2, "sampler": "random"}
    isotrope.compare(sentences, "simcse", tmp_path / "all", **asked)
    file = tmp_path / "all" / "search" / "simcse" / "trial-0" / "judgement.json"
    judged = json.loads(file.read_text(encoding="utf-8"))
    judged["measures"]["score"] = math.nan
    file.write_text(json.dumps(judged), encoding="utf-8")
    plan = plan_comparison(sentences, "simcse", tmp_path / "all", **asked)
    start = isotrope.load(short["model"])
    (hunt,) = _hunts(plan.reading_out(start), start.fingerprint())
    assert [trial.score is None for trial in hunt.trials()] == [True, False]
    best = hunt.best(plan.terms)
    assert isinstance(best, Contestant)
    assert best.method.given["learning_rate"] == hunt.trials()[1].settings["learning_rate"]
