"""The plan of a run: everything that can be refused before a model or the data are touched.

plan → open → build → run → export
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.pooling import check_order, parse
from isotrope.encoders.read_out import named
from isotrope.errors import InputError
from isotrope.files import dated_folder
from isotrope.methods.frame.auxiliary import AddedSettings, Auxiliary
from isotrope.methods.frame.from_scratch import FromScratch
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.method_registry import auxiliaries, find
from isotrope.methods.frame.own_task import OwnTask
from isotrope.methods.frame.settings import Settings, check, resolve
from isotrope.training.adapting import adapting_defaults
from isotrope.training.half_precision import check_processor
from isotrope.training.image_opening import image_defaults
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.run_folder import RunFolder
from isotrope.training.tactics.tactic import Tactic, TacticSettings, tactics

Place = str | os.PathLike[str]
Files = Place | Sequence[Place]
DEFAULT_MODEL = "builtin-base"


@dataclass(frozen=True)
class Plan:
    """What was asked for, resolved and checked. ``given`` are the names of the settings that the user set, ``made`` the
    values that a run before this one gave to settings of the method. ``final_table`` is asked for by `train` alone."""

    method: type[Method[Any]]
    settings: Settings
    loop: LoopSettings
    added: tuple[tuple[type[Auxiliary[Any]], AddedSettings], ...]
    tactics: tuple[tuple[type[Tactic[Any]], TacticSettings], ...]
    given: frozenset[str]
    data: Place | Sequence[Any]
    model: Place | Encoder
    pooling: str | None
    columns: Sequence[str] | None
    split: bool
    eval_data: tuple[Place, ...]
    folder: RunFolder
    resume: bool
    final_table: bool = True
    made: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.method.card.name

    @property
    def from_scratch(self) -> bool:
        return issubclass(self.method, FromScratch)

    @property
    def language_head(self) -> bool:
        return self.method.language_head or any(auxiliary.language_head for auxiliary, _ in self.active)

    @property
    def unasked_head(self) -> tuple[str, ...]:
        """Weights that need the masked-language head only because the method's defaults set them."""
        if self.method.language_head:
            return ()
        needing = [settings.setting() for one, settings in self.added if one.language_head and settings.weight > 0]
        return () if set(needing) & self.given else tuple(needing)

    @property
    def active(self) -> tuple[tuple[type[Auxiliary[Any]], float], ...]:
        """Auxiliary losses that are added, with their weights."""
        return tuple((auxiliary, settings.weight) for auxiliary, settings in self.added if settings.weight > 0)

    def resolved(self, loop: LoopSettings) -> dict[str, Any]:
        """Every setting of the run by name, with the loop's as the data made them."""
        parts = (self.settings, loop, *(settings for _, settings in (*self.added, *self.tactics)))
        return {name: value for part in parts for name, value in asdict(part).items()}


def setting_classes(method: type[Method[Any]]) -> list[type[Settings]]:
    """Whose settings a run of a method takes: its own, the loop's, the auxiliary losses', the tactics'."""
    return [method.Settings, *shared_setting_classes()]


def shared_setting_classes() -> list[type[Settings]]:
    """Whose settings a run takes whatever its method is."""
    added = [one.Added for one in auxiliaries().values() if one.Added is not None]
    return [LoopSettings, *added, *(tactic.Settings for tactic in tactics().values())]


def make_plan(
    method: str,
    data: Place | Sequence[Any],
    model: Place | Encoder = DEFAULT_MODEL,
    output: Place | None = None,
    *,
    pooling: str | None = None,
    columns: Sequence[str] | None = None,
    split: bool = False,
    eval_data: Files | None = None,
    resume: bool = False,
    final_table: bool = True,
    adapts: bool = True,
    **settings: Any,
) -> Plan:
    """``adapts``: where ``model`` is a finished sentence encoder, the defaults are those of adapting one."""
    found = find(method)
    pictures = image_defaults(found, data, settings)
    named_by_user = {name.replace("-", "_") for name in settings}
    adapting = adapting_defaults(found, model, named_by_user) if adapts and not pictures else {}
    own, loop, *rest = resolve({**found.defaults, **adapting, **pictures, **settings}, *setting_classes(found))
    for each in (own, loop, *rest):
        check(each)
    assert isinstance(loop, LoopSettings)
    if "batch_size" in settings:
        own.check_batch(loop.batch_size)
    chosen = [one for one in auxiliaries().values() if one.Added is not None]
    added = tuple((one, each) for one, each in zip(chosen, rest, strict=False) if isinstance(each, AddedSettings))
    others = [each for each in rest if isinstance(each, TacticSettings)]
    kept = tuple(zip(tactics().values(), others, strict=True))
    given = frozenset(name.replace("-", "_") for name in settings)
    folder = RunFolder(Path(output) if output is not None else dated_folder(method))
    plan = Plan(
        found,
        own,
        loop,
        added,
        kept,
        given,
        data,
        model,
        named(pooling),
        columns,
        split,
        files_of(eval_data),
        folder,
        resume,
        final_table and not pictures,  # the table is about text
    )
    _check_parts(plan)
    return plan


def _check_parts(plan: Plan) -> None:
    """Refuse what does not go together."""
    for auxiliary, settings in plan.added:
        name = settings.setting()
        if settings.weight > 0 and set(auxiliary.terms) & set(getattr(plan.method, "terms", ())):
            raise InputError(f"{plan.name} has {auxiliary.card.title} among its own terms; leave {name} out.")
        if settings.weight > 0 and plan.from_scratch:
            raise InputError(f"{name} needs a transformer that reads the text, and {plan.name} has none; leave it out.")
    if plan.from_scratch and plan.model != DEFAULT_MODEL:  # the default model was not asked for, so it is not a mistake
        raise InputError(f"{plan.name} initialises its encoder from the data alone; leave model out.")
    if plan.from_scratch and plan.pooling not in (None, "mean"):
        raise InputError(f"{plan.name} makes vectors that are read out by their mean; leave pooling out.")
    if plan.pooling is not None:
        check_order(plan.pooling, parse(plan.pooling)[1])
    if isinstance(plan.model, Encoder):
        check_order(plan.model.pooling.name, plan.model.pooling.modes)
    if isinstance(plan.model, Encoder) and plan.pooling is not None:
        raise InputError("The pooling of an encoder in memory is fixed; load it with the pooling you want.")
    if isinstance(plan.model, Encoder) and plan.language_head and plan.model.language_model is None:
        instead = "".join(f", or set {name} 0" for name in plan.unasked_head)
        raise InputError(f"This needs the masked-language head; load the model with language_head=True{instead}.")
    if issubclass(plan.method, OwnTask) and plan.method.chooses and plan.eval_data:
        raise InputError(
            f"{plan.name} is scored by its own task; leave eval_data out. "
            f"`isotrope methods {plan.name}` says how to give a test."
        )
    for tactic, chosen in plan.tactics:
        clock = "max_seconds" if plan.loop.max_seconds is not None else "time_limit"
        if chosen.active and tactic.counts_steps and getattr(plan.loop, clock) is not None:
            raise InputError(
                f"{tactic.card.name} shares out the steps of a run, and how many fit into {clock} is not known before; "
                "give max_steps or epochs."
            )
    check_machine(plan.loop)


def check_machine(loop: LoopSettings) -> None:
    """Refuse what this installation or processor cannot do."""
    if loop.report_to != "none" and importlib.util.find_spec(loop.report_to) is None:
        raise InputError(
            f"report_to {loop.report_to} needs the package {loop.report_to}; pip install {loop.report_to}."
        )
    check_processor(loop.optimiser, loop.precision)


def files_of(given: Files | None) -> tuple[Place, ...]:
    return () if given is None else (given,) if isinstance(given, str | os.PathLike) else tuple(given)
