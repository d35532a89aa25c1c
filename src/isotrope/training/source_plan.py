"""The plan of a run of several sources: a plan for each, and what they must agree on, before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError, nearest
from isotrope.files import dated_folder
from isotrope.methods.frame.method_registry import find
from isotrope.methods.frame.own_task import OwnTask
from isotrope.methods.frame.settings import Settings
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.plan import DEFAULT_MODEL, Files, Place, Plan, make_plan, setting_classes
from isotrope.training.source_list import Source, about, read_sources
from isotrope.training.tactics.tactic import tactics

OF_A_SOURCE = ("batch_size", "max_length", "held_out")  # settings of the loop that a source may have of its own


@dataclass(frozen=True)
class SourcesPlan:
    """``plans`` has one for each of ``sources``; all have the same model, folder and settings of the run."""

    sources: tuple[Source, ...]
    plans: tuple[Plan, ...]

    @property
    def first(self) -> Plan:
        """Where what is alike for all can be read."""
        return self.plans[0]

    @property
    def name(self) -> str:
        """The methods, each once."""
        return " + ".join(dict.fromkeys(plan.name for plan in self.plans))

    @property
    def loader(self) -> Plan:
        """The plan that the model is loaded for: one that needs the masked-language head, where there is one."""
        needing = [plan for plan in self.plans if plan.language_head]
        asked = [plan for plan in needing if not plan.unasked_head]
        return (asked or needing or list(self.plans))[0]

    def common(self) -> dict[str, Any]:
        """The settings of the run: those of the loop that are no source's own."""
        return {name: getattr(self.first.loop, name) for name in _names(LoopSettings) if name not in OF_A_SOURCE}


def plan_sources(
    given: Sequence[Mapping[str, Any]],
    model: Place | Encoder = DEFAULT_MODEL,
    output: Place | None = None,
    *,
    pooling: str | None = None,
    eval_data: Files | None = None,
    resume: bool = False,
    final_table: bool = True,
    **settings: Any,
) -> SourcesPlan:
    sources = read_sources(given)
    settings = {name.replace("-", "_"): value for name, value in settings.items()}
    folder = Path(output) if output is not None else dated_folder("sources")
    _check_run_settings(sources, settings)
    plans = []
    for source in sources:
        with about(source.name):
            _check_own_settings(source)
            plans.append(
                make_plan(
                    source.method,
                    source.data,
                    model,
                    folder,
                    pooling=pooling,
                    columns=source.columns,
                    split=source.split,
                    eval_data=eval_data,
                    resume=resume,
                    final_table=final_table,
                    adapts=False,  # methods adapt in different ways, and the sources of a run share one loop
                    **{**settings, **source.settings},
                )
            )
    plan = SourcesPlan(sources, tuple(plans))
    if len(sources) > 1:
        _check_together(plan)
    return plan


def _check_run_settings(sources: Sequence[Source], given: Mapping[str, Any]) -> None:
    """The settings of a run are those of the loop and of the tactics."""
    known = {*_names(LoopSettings), *_tactic_names()}
    for name in given:
        if name in known:
            continue
        owner = next((source for source in sources if _takes(source, name)), None)
        if owner is not None:
            raise InputError(f"{name} belongs to a source; put it under the settings of '{owner.name}'.")
        raise InputError(f"Unknown setting '{name}'{nearest(name, known)}")


def _takes(source: Source, setting: str) -> bool:
    return any(setting in _names(one) for one in setting_classes(find(source.method)))


def _check_own_settings(source: Source) -> None:
    """A source sets what its method and its batches have, nothing of the loop that all sources share."""
    shared = ({*_names(LoopSettings)} - {*OF_A_SOURCE}) | _tactic_names()
    for name in source.settings:
        if name in shared:
            raise InputError(f"{name} belongs to the whole run; put it under the settings of the run, not of a source.")


def _check_together(plan: SourcesPlan) -> None:
    """Refuse methods that cannot share one encoder and one loop."""
    for source, one in zip(plan.sources, plan.plans, strict=True):
        if one.from_scratch:
            raise InputError(
                f"Source '{source.name}': {one.name} initialises an encoder of its own from the data, and the sources "
                "of a run share one; give it a run of its own."
            )
        if issubclass(one.method, OwnTask) and one.method.chooses:
            raise InputError(
                f"Source '{source.name}': {one.name} selects its checkpoint by its own task, which the other sources "
                "do not have; give it a run of its own."
            )
    for tactic, chosen in plan.first.tactics:
        if chosen.active:
            raise InputError(f"{tactic.card.name} takes a run of one source, and this one has {len(plan.sources)}.")
    for name in _names(LoopSettings):
        if name not in OF_A_SOURCE:
            _check_alike(
                plan, name, {s.name: getattr(p.loop, name) for s, p in _both(plan)}, f"give {name} for the run"
            )
    dropouts = {s.name: p.settings.dropout for s, p in _both(plan) if hasattr(p.settings, "dropout")}
    _check_alike(plan, "dropout", dropouts, "they share one encoder, so give all of them the same dropout")


def _check_alike(plan: SourcesPlan, setting: str, values: Mapping[str, Any], advice: str) -> None:
    if len(set(values.values())) > 1:
        found = ", ".join(f"'{source}' {value}" for source, value in values.items())
        raise InputError(f"The sources differ in {setting} ({found}); {advice}.")


def _both(plan: SourcesPlan) -> list[tuple[Source, Plan]]:
    return list(zip(plan.sources, plan.plans, strict=True))


def _names(settings: type[Settings]) -> list[str]:
    return [field.name for field in fields(settings)]


def _tactic_names() -> set[str]:
    return {name for tactic in tactics().values() for name in _names(tactic.Settings)}
