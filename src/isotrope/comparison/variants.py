"""Rows that differ in a setting: each method once for every value, or for every combination of several settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from isotrope.comparison.method_terms import EQUAL, has_setting, owners
from isotrope.errors import InputError, nearest

Own = dict[str, dict[str, Any]]


def vary_settings(
    compared: Mapping[str, str],
    own: Mapping[str, Mapping[str, Any]],
    vary: Mapping[str, Sequence[Any]],
    common: Mapping[str, Any],
) -> tuple[dict[str, str], Own]:
    """Label → method, and label → its own settings, with a label for each value: ``simcse temperature=0.05``."""
    settings = {name.replace("-", "_"): _values(name, values) for name, values in vary.items()}
    plain = {label: {name.replace("-", "_"): v for name, v in given.items()} for label, given in own.items()}
    unknown = next((label for label in plain if label not in compared), None)
    if unknown is not None:
        raise InputError(f"Settings were given for '{unknown}', which is not compared{nearest(unknown, compared)}")
    if not settings:
        return dict(compared), plain
    for name in settings:
        check_free(name, compared, plain, common)
        lacking = [label for label, method in compared.items() if not has_setting(method, name)]
        if lacking:
            raise InputError(f"{_they_have_no(lacking, name)}; {_who_has(name, compared)}")
    methods: dict[str, str] = {}
    chosen: Own = {}
    for label, method in compared.items():
        for values in product(*settings.values()):
            combined = dict(zip(settings, values, strict=True))
            row = " ".join([label, *(f"{name}={value}" for name, value in combined.items())])
            methods[row], chosen[row] = method, {**plain.get(label, {}), **combined}
    return methods, chosen


def check_free(
    name: str, compared: Mapping[str, str], own: Mapping[str, Mapping[str, Any]], common: Mapping[str, Any]
) -> None:
    """Refuse a setting that is equal for all, that nobody has, or that was given already."""
    if name in EQUAL:
        raise InputError(f"{name} is the same for every run that is compared; it cannot vary.")
    if not any(has_setting(method, name) for method in compared.values()):
        raise InputError(f"No method that is compared has the setting {name}; {_who_has(name, compared)}")
    if name in common or any(name in given for given in own.values()):
        raise InputError(f"{name} was given a value and is to vary as well; leave one of the two out.")


def _values(name: str, given: Sequence[Any]) -> list[Any]:
    values = list(dict.fromkeys(given.split(",") if isinstance(given, str) else given))
    if not values or any(str(value).strip() == "" for value in values):
        raise InputError(f"vary needs values for {name}, such as {name}=1,2.", "vary")
    return values


def _they_have_no(labels: Sequence[str], name: str) -> str:
    return f"{' and '.join(labels)} {'has' if len(labels) == 1 else 'have'} no setting {name}"


def _who_has(name: str, compared: Mapping[str, str]) -> str:
    having = [label for label, method in compared.items() if has_setting(method, name)]
    if having:
        return (
            f"of those compared, {' and '.join(having)} {'has' if len(having) == 1 else 'have'} it; leave out the rest."
        )
    others = owners(name)
    return f"methods that have it are {', '.join(others)}." if others else f"nor has any other{_meant(name, compared)}"


def _meant(name: str, compared: Mapping[str, str]) -> str:
    from isotrope.comparison.method_terms import setting_types

    return nearest(name, {known for method in compared.values() for known in setting_types(method)})
