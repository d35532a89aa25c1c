"""What a search tries next: random values, or those that optuna's estimator finds most promising.

Random search needs no further package, and every method tries the same values. TPE (Bergstra et al. 2011, through
optuna) learns from the trials that ended: worth it from about ten trials on. Trial 0 is always the method as it was
given, where that lies in the ranges, so a search never ends below it on its own score.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isotrope.comparison.search_space import Dimension, draw
from isotrope.errors import InputError, nearest

SAMPLERS = ("auto", "random", "optuna")


@dataclass(frozen=True)
class Trial:
    """``score`` is none while it runs, and where it failed."""

    number: int
    settings: dict[str, Any]
    score: float | None = None
    failed: str = ""

    @property
    def ended(self) -> bool:
        return self.score is not None or bool(self.failed)


def choose_sampler(name: str) -> str:
    """``auto`` is optuna where it is installed."""
    if name not in SAMPLERS:
        raise InputError(f"Unknown sampler '{name}'{nearest(name, SAMPLERS)}")
    installed = importlib.util.find_spec("optuna") is not None
    if name == "optuna" and not installed:
        raise InputError(
            "The sampler optuna needs the package optuna: pip install 'isotrope[tune]', or choose sampler random."
        )
    return ("optuna" if installed else "random") if name == "auto" else name


def propose(
    sampler: str,
    dimensions: Sequence[Dimension],
    seed: int,
    number: int,
    given: Mapping[str, Any],
    trials: Sequence[Trial],
) -> dict[str, Any]:
    """The settings of trial ``number``; ``given`` are those that the method has now."""
    as_given = {one.name: one.found(given.get(one.name)) for one in dimensions}
    if number == 0 and None not in as_given.values():
        return as_given
    return by_optuna(dimensions, seed, number, trials) if sampler == "optuna" else draw(dimensions, seed, number)


def by_optuna(dimensions: Sequence[Dimension], seed: int, number: int, trials: Sequence[Trial]) -> dict[str, Any]:
    """The study is made again from the trials on disk each time: a killed search has nothing else to restore."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant_liar is marked experimental
        sampler = optuna.samplers.TPESampler(seed=(seed + number) % (1 << 32), constant_liar=True)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        space = {one.name: _distribution(one) for one in dimensions}
        for trial in trials:
            study.add_trial(
                optuna.trial.create_trial(
                    state=_state(trial), params=trial.settings, distributions=space, value=trial.score
                )
            )
        found = study.ask(space).params
    return {one.name: one.rounded(found[one.name]) for one in dimensions}


def _state(trial: Trial) -> Any:
    import optuna

    states = optuna.trial.TrialState
    if trial.failed:
        return states.FAIL
    return states.RUNNING if trial.score is None else states.COMPLETE


def _distribution(one: Dimension) -> Any:
    from optuna import distributions

    if one.choices:
        return distributions.CategoricalDistribution(one.choices)
    if one.whole:
        return distributions.IntDistribution(int(one.low), int(one.high), log=one.log)
    return distributions.FloatDistribution(one.low, one.high, log=one.log)
