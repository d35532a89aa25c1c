"""The plan of a comparison: who runs on which text under which terms, checked before anything else is touched.

What needs no file is refused first (names, settings, suites), then the output folder, then the data. The model is not
loaded here and nothing is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isotrope.comparison.common_set import FILE as HELD_OUT
from isotrope.comparison.judges import choose_judges, judged_on
from isotrope.comparison.method_terms import ask_method, loop_settings, loop_values
from isotrope.comparison.search_space import Limits
from isotrope.comparison.search_terms import TRIALS, Search, plan_search
from isotrope.comparison.terms import Contestant, Data, Files, MethodTerms, Place, Task, Terms
from isotrope.comparison.text_choice import choose_text, read_through, text_files
from isotrope.comparison.variants import vary_settings
from isotrope.data.tables import check_file
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.pooling import parse
from isotrope.encoders.read_out import named, with_read_out
from isotrope.errors import InputError, check_between, nearest
from isotrope.evaluation.eval_data import read_eval_data
from isotrope.files import dated_folder, file_digest, names_in

FILE = "comparison.json"  # what a comparison writes into its folder, and is known by


@dataclass(frozen=True)
class Plan:
    """Everything that a comparison will do, but for the fingerprint of the start, which only the loaded model has."""

    contestants: list[Contestant]
    terms: Terms
    seeds: list[int]
    folder: Path
    parallel: int
    search: Search | None = None

    @property
    def labels(self) -> list[str]:
        return [one.label for one in self.contestants]

    def reading_out(self, start: Encoder) -> Plan:
        """The plan with the pooling of each paper, for the methods that read this start out by another than its own."""
        return replace(self, contestants=[_reading_out(one, start, self.terms.pooling) for one in self.contestants])

    def tasks(self, fingerprint: str) -> list[Task]:
        """A task for each contestant and seed, seed after seed."""
        return [
            Task(one, seed, self.terms, fingerprint, self.folder / f"{one.folder_name}-seed-{seed}")
            for one in self.contestants
            for seed in self.seeds
        ]


def plan_comparison(
    data: Data,
    methods: str | Sequence[str],
    output: Place | None = None,
    *,
    model: Place = "builtin-base",
    pooling: str | None = None,
    seeds: int = 3,
    eval_data: Files | None = None,
    data_dir: Place | None = None,
    aggregation: str = "all",
    suite: str | Sequence[str] | None = None,
    parallel: int = 1,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    budget: str | float | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    search: Mapping[str, Limits] | None = None,
    trials: int = TRIALS,
    sampler: str = "auto",
    **settings: Any,
) -> Plan:
    """The plan, or the first thing that is wrong with it. The parameters are those of ``isotrope.compare``."""
    for name, value in (("seeds", seeds), ("parallel", parallel), ("trials", trials)):
        if not hasattr(value, "__index__"):
            raise InputError(f"{name} is a whole number, how many there are, not {value!r}.", name)
        check_between(name, value, 1, 100_000)
    named_methods = labelled(methods.split(",") if isinstance(methods, str) else methods)
    common = loop_settings(settings, named_methods, budget)
    first_seed = loop_values(common)["seed"]
    common = {"held_out_seed": first_seed, **common}
    compared, chosen = vary_settings(named_methods, own or {}, vary or {}, common)
    asked = ask_methods(compared, chosen, common)
    hunt = plan_search(search, trials, sampler, compared, chosen, common, first_seed) if search is not None else None
    pooling = named(pooling)
    if pooling is not None:
        parse(pooling)  # refuses an unknown one
    place = data_dir or os.environ.get("ISOTROPE_DATA")
    benchmarks = str(place) if place else None
    judges = choose_judges(suite, benchmarks, aggregation)
    folder = _check_folder(Path(output) if output is not None else dated_folder("compare"))
    scored = [str(file) for file in ([eval_data] if isinstance(eval_data, str | os.PathLike) else eval_data or ())]
    read_eval_data([check_file(file) for file in scored])
    loop = loop_values(common)
    terms = Terms(
        model=str(model),
        pooling=pooling,
        settings=common,
        loop=loop,
        eval_data=tuple(scored),
        eval_content=tuple(file_digest(file) for file in scored),
        data_dir=benchmarks,
        aggregation=aggregation,
        judges=judges,
        retrieval_sets=judged_on(judges, benchmarks),
    )
    return Plan(enter(asked, data), terms, [*range(first_seed, first_seed + seeds)], folder, parallel, hunt)


def labelled(methods: Sequence[str]) -> dict[str, str]:
    """Label → method. ``methods`` are names, or LABEL=NAME for a method that stands in the table twice."""
    found: dict[str, str] = {}
    for name in methods:
        label, equals, method = name.strip().partition("=")
        if not re.fullmatch(r"[\w-]+", label):
            raise InputError(f"Unusable label '{label}' for a row of the table: letters, digits, - and _ only.")
        named = method if equals else label
        if label in found and found[label] == named:
            raise InputError(f"{label} is named twice; give one of the two a label, as in other={named}.")
        if label in found:
            raise InputError(f"Two methods have the label '{label}': {found[label]} and {named}; give one another.")
        found[label] = named
    if not found:
        raise InputError("No method was named; methods takes names that `isotrope methods` lists, joined by commas.")
    return found


def ask_methods(
    compared: Mapping[str, str], own: Mapping[str, Mapping[str, Any]], common: Mapping[str, Any]
) -> dict[str, MethodTerms]:
    """Each method under its own settings (``own``, by label) and everybody's."""
    unknown = next((label for label in own if label not in compared), None)
    if unknown is not None:
        raise InputError(f"Settings were given for '{unknown}', which is not compared{nearest(unknown, compared)}")
    return {label: ask_method(method, own.get(label, {}), common) for label, method in compared.items()}


def enter(asked: Mapping[str, MethodTerms], data: Data) -> list[Contestant]:
    """Each method with its text. The files are read after every method has found one: what is wrong with a text is
    said before the first run, not after each.
    """
    files = text_files(data)
    chosen = {label: choose_text(label, method.record_types, files) for label, method in asked.items()}
    for text, record_types in dict.fromkeys((chosen[label], method.record_types) for label, method in asked.items()):
        read_through(text, record_types)
    digests = {text: file_digest(check_file(text)) for text in dict.fromkeys(chosen.values())}
    return [
        Contestant(
            label=label,
            method=method,
            data=chosen[label],
            content=digests[chosen[label]],
            setting_files={setting: file_digest(file) for setting, file in method.files.items()},
        )
        for label, method in asked.items()
    ]


def _reading_out(contestant: Contestant, start: Encoder, given: str | None) -> Contestant:
    method = contestant.method
    if method.pooling or method.from_scratch:
        return contestant
    pooling = with_read_out(start, given, method.read_out, method.name)[1].pooling
    if pooling == start.pooling.name:
        return contestant
    return replace(contestant, method=replace(method, pooling=pooling))


def _check_folder(folder: Path) -> Path:
    """A folder that a comparison was begun in, or one that is empty, or one that can be made."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise InputError(f"{there}: a file stands where the comparison's folder should be; choose another output.")
    if not os.access(there, os.W_OK):
        raise InputError(f"{there}: permission to write was refused; choose another output.")
    holds = names_in(folder) - {HELD_OUT}  # alone it was left by a comparison that was killed early
    if holds and FILE not in holds:
        raise InputError(f"{folder}: the folder holds something else ({min(holds)}); choose another output.")
    return folder
