"""What a search of settings is to do: its ranges for each method, its trials, its sampler and its seed, all checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from isotrope.comparison.method_terms import ask_method, setting_types
from isotrope.comparison.samplers import choose_sampler
from isotrope.comparison.search_space import Dimension, Limits, parse_space
from isotrope.comparison.variants import check_free
from isotrope.errors import InputError

TRIALS = 20
APART = 1_000_000  # from the first seed of the runs to that of the search


@dataclass(frozen=True)
class Search:
    """``spaces`` is by label: what each method has of the settings that are searched."""

    dimensions: tuple[Dimension, ...]
    spaces: dict[str, tuple[Dimension, ...]]
    trials: int
    sampler: str
    seed: int

    def __str__(self) -> str:
        how = "random values" if self.sampler == "random" else "optuna's TPE"
        return (
            f"Settings by search: {self.trials} trials of each method ({how}; seed and held-out set of the trials: "
            f"{self.seed}), each as long as a run, over {', '.join(map(str, self.dimensions))}."
        )


def plan_search(
    given: Mapping[str, Limits],
    trials: int,
    sampler: str,
    compared: Mapping[str, str],
    own: Mapping[str, Mapping[str, Any]],
    common: Mapping[str, Any],
    first_seed: int,
) -> Search:
    """The search, or what is wrong with it. Both ends of each range must be values that the methods take."""
    if trials < 1:
        raise InputError(f"trials must be at least 1; {trials} was given.")
    dimensions = parse_space(given)
    for one in dimensions:
        check_free(one.name, compared, own, common)
    spaces = {}
    for label, method in compared.items():
        types = setting_types(method)
        spaces[label] = tuple(_typed(one, types[one.name]) for one in dimensions if one.name in types)
        if not spaces[label]:
            names = ", ".join(one.name for one in dimensions)
            raise InputError(f"{label} has none of the settings that are searched ({names}); leave it out.", "search")
        for values in _ends(spaces[label]):
            ask_method(method, {**own.get(label, {}), **values}, common)
    return Search(dimensions, spaces, trials, choose_sampler(sampler), (first_seed + APART) % (1 << 32))


def _typed(one: Dimension, kind: str) -> Dimension:
    if not one.choices and "number" not in kind:
        raise InputError(f"{one.name} takes no numbers; search it over words joined by |, such as a|b.", "search")
    return replace(one, whole=kind.startswith("whole number") and not one.choices)


def _ends(dimensions: Sequence[Dimension]) -> list[dict[str, Any]]:
    """Every choice, and the ends of every range, one setting at a time."""
    return [{one.name: value} for one in dimensions for value in (one.choices or (one.low, one.high))]
