"""What a comparison asks of a method and of the loop: equal lengths, settings resolved and checked, special needs.

The only file of this room that knows the classes of methods and settings.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from os.path import isfile
from typing import Any

from isotrope.comparison.terms import MethodTerms
from isotrope.encoders.pooling import parse
from isotrope.encoders.read_out import named
from isotrope.errors import InputError
from isotrope.methods.frame.from_scratch import FromScratch
from isotrope.methods.frame.method_registry import find, registry
from isotrope.methods.frame.outside_methods import outside_files
from isotrope.methods.frame.settings import check, describe, resolve
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.plan import setting_classes, shared_setting_classes

STEPS = 200  # where nothing is given
LENGTHS = ("max_steps", "epochs", "max_seconds")
UNITS = {"s": 1, "m": 60, "h": 3600}


def equal_length(settings: Mapping[str, Any], budget: str | float | None = None) -> dict[str, Any]:
    """The settings of the loop, of which one says how long a run is. ``budget`` is a time such as 90s, 10m or 2h."""
    given = [*(name for name in LENGTHS if settings.get(name) is not None), *(["budget"] if budget is not None else [])]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} were given; all runs are equal in one of them, so give one.")
    if budget is not None:
        return {**settings, "max_steps": None, "max_seconds": seconds_of(budget)}
    if given and given != ["max_steps"]:
        return {**settings, "max_steps": None}  # a method may have a number of its own
    return {"max_steps": STEPS, **settings}


def seconds_of(budget: str | float) -> float:
    """Of a number of seconds, or of a number with s, m or h behind it."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", str(budget))
    seconds = float(found[1]) * UNITS[found[2] or "s"] if found else math.nan
    if not seconds > 0:
        raise InputError(f"budget must be a time above 0, such as 90s, 10m or 2h; '{budget}' was given.", "budget")
    return seconds


COMPARED = {"keep_start": False}  # a method that harms must show it: the start has its own row
EQUAL = (*LENGTHS, "seed", "eval_steps", "patience", "held_out", "held_out_seed")  # the same for every method


def ask_method(name: str, given: Mapping[str, Any], common: Mapping[str, Any]) -> MethodTerms:
    """A method with its own settings (``given``) and everybody's (``common``), or what is wrong with them."""
    method = find(name)
    settings = {setting.replace("-", "_"): value for setting, value in given.items()}
    pooling = named(settings.pop("pooling", None))
    if pooling is not None:
        parse(pooling)  # refuses an unknown one
    equal = next((setting for setting in EQUAL if setting in settings), None)
    if equal is not None:
        raise InputError(f"{equal} is the same for every method that is compared; give it once, for all of them.")
    chosen, loop, *others = resolve({**COMPARED, **method.defaults, **common, **settings}, *setting_classes(method))
    for each in (chosen, loop, *others):
        check(each)
    assert isinstance(loop, LoopSettings)
    chosen.check_batch(loop.batch_size)
    return MethodTerms(
        name=name,
        given=settings,
        pooling=pooling,
        resolved={name: value for each in (chosen, loop, *others) for name, value in asdict(each).items()},
        loop_defaults={setting: value for setting, value in method.defaults.items() if setting not in common},
        files={**_files_in(asdict(chosen)), **outside_files(method)},
        record_types=tuple(method.record_types(chosen)),
        from_scratch=issubclass(method, FromScratch),
        keeps_last=method.keeps == "last",
        read_out=method.card.read_out,
    )


def loop_settings(
    given: Mapping[str, Any], compared: Mapping[str, str] | None = None, budget: str | float | None = None
) -> dict[str, Any]:
    """The settings of the loop, for all methods, with the length of the runs.

    A setting that only methods have is refused; the message names one of ``compared`` (label → method) that has it.
    """
    settings = {name.replace("-", "_"): value for name, value in given.items()}
    shared = {name for each in shared_setting_classes() for name in _fields(each)}
    for name in settings:
        having = [] if name in shared else owners(name)
        if having:
            owner = next((label for label, method in (compared or {}).items() if method in having), having[0])
            raise InputError(
                f"{name} is a setting of single methods; give it to one of them: "
                f"own={{'{owner}': {{'{name}': VALUE}}}}, or --set {owner}.{name.replace('_', '-')}=VALUE."
            )
    found = equal_length(settings, budget)
    for checked in resolve(found, *shared_setting_classes()):
        check(checked)
    return found


def loop_values(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Every setting of the loop, with the defaults filled in."""
    return {
        name: value for each in resolve(settings, *shared_setting_classes()) for name, value in asdict(each).items()
    }


def setting_types(method: str) -> dict[str, str]:
    """Every setting that a run of a method takes, and its type in words."""
    return {one.name: one.type for each in setting_classes(find(method)) for one in describe(each)}


def has_setting(method: str, setting: str) -> bool:
    """Whether a run of this method takes the setting: its own, or one of the loop's."""
    return setting in setting_types(method)


def owners(setting: str) -> list[str]:
    """The methods whose own setting it is."""
    return [name for name, method in registry().items() if setting in _fields(method.Settings)]


def _files_in(settings: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if isinstance(value, str) and isfile(value)}


def _fields(settings: type) -> set[str]:
    return {field.name for field in dataclasses.fields(settings)}
