"""Who is compared, on which text, under which terms. Everything is read and checked before the first step is taken."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from isotrope.data.record_types import RECORD_TYPES
from isotrope.data.sources import fits
from isotrope.data.tables import check_file, header_of
from isotrope.encoders.pooling import Pooling
from isotrope.errors import InputError, nearest
from isotrope.files import file_digest
from isotrope.methods.frame.method_registry import find, registry
from isotrope.methods.frame.settings import resolve
from isotrope.training.loop_settings import LoopSettings

STEPS = 200  # where none are given; an epoch would give each text its own number
EQUAL = ("max_steps", "epochs", "seed", "eval_steps", "patience", "held_out")  # the same for every method
SUITES = ("sts", "transfer", "label-free", "own")
Place = str | os.PathLike[str]
Data = Place | Sequence[Place] | Mapping[str, Place]


@dataclass(frozen=True)
class Terms:
    """What is the same for every method."""

    model: str
    pooling: str | None
    fingerprint: str  # of the start
    settings: dict[str, Any]  # of the loop, as given
    eval_data: tuple[str, ...] = ()
    eval_content: tuple[str, ...] = ()  # digests of them
    data_dir: str | None = None  # None: judged without labels
    aggregation: str = "all"
    suites: tuple[
        str, ...
    ] = ()  # what the encoders are judged by; empty: STS where there are benchmarks, else the label-free score

    @property
    def judges(self) -> tuple[str, ...]:
        return self.suites or (("label-free",) if self.data_dir is None else ("sts",))


@dataclass(frozen=True)
class Contestant:
    """``label`` is the name in the table: the method's own, or the one given to it under other settings."""

    label: str
    method: str
    data: str
    content: str  # a digest of the data
    settings: dict[str, Any]  # its own, as given
    pooling: str | None = None  # its own; else that of the terms


@dataclass(frozen=True)
class Task:
    """One run: a contestant and a seed."""

    contestant: Contestant
    seed: int
    terms: Terms
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.contestant.label}-seed-{self.seed}"

    @property
    def pooling(self) -> str | None:
        return self.contestant.pooling or self.terms.pooling

    def settings(self) -> dict[str, Any]:
        return {**self.terms.settings, **self.contestant.settings, "seed": self.seed}

    def facts(self) -> dict[str, Any]:
        """What decides the outcome: a finished run is kept where these are the same."""
        kind = find(self.contestant.method)
        own, loop = resolve({**kind.loop, **self.settings()}, kind.Settings, LoopSettings)
        terms = self.terms
        named = {name: value for name, value in asdict(own).items() if isinstance(value, str) and os.path.isfile(value)}
        return {
            "method": self.contestant.method,
            "data": self.contestant.content,
            "model": {"fingerprint": terms.fingerprint, "pooling": self.pooling},
            "settings": {**asdict(own), **asdict(loop)},
            **({"files of the settings": {name: file_digest(file) for name, file in named.items()}} if named else {}),
            "eval_data": list(terms.eval_content),
            "judge": " + ".join(f"sts, {terms.aggregation}" if suite == "sts" else suite for suite in terms.judges),
        }


def contestants(
    methods: Sequence[str], data: Data, own: Mapping[str, Mapping[str, Any]], common: Mapping[str, Any]
) -> list[Contestant]:
    """``methods`` are names, or LABEL=NAME for a method that stands twice; each takes the first file of a kind it
    needs.
    """
    files = _files(data)
    named = dict(_labelled(name) for name in methods)
    if not named:
        raise InputError(
            "No method was named; give --methods with names that `isotrope methods` lists, joined by commas."
        )
    unknown = next((label for label in own if label not in named), None)
    if unknown is not None:
        raise InputError(f"Settings were given for '{unknown}', which is not compared{nearest(unknown, named)}")
    found, digests = [], dict[str, str]()
    for label, method in named.items():
        kind = find(method)
        settings = {name.replace("-", "_"): value for name, value in own.get(label, {}).items()}
        pooling = settings.pop("pooling", None)
        if pooling is not None:
            Pooling.named(pooling, 1)  # refuses what it does not know
        equal = next((name for name in EQUAL if name in settings), None)
        if equal is not None:
            raise InputError(
                f"{equal} is the same for every method that is compared; give it as --{equal.replace('_', '-')}."
            )
        chosen, loop = resolve({**kind.loop, **common, **settings}, kind.Settings, LoopSettings)
        kind.check(chosen)
        loop.check()
        kind.check_batch(chosen, loop.batch_size)
        text = _text_for(label, kind.record_types(chosen), files)
        if text not in digests:
            digests[text] = file_digest(text)
        found.append(Contestant(label, method, text, digests[text], settings, pooling))
    return found


def loop_settings(given: Mapping[str, Any], methods: Sequence[str] = ()) -> dict[str, Any]:
    """The loop's settings for all; a setting that only methods have is refused, for it is one method's (of ``methods``,
    if it can be).
    """
    settings = {name.replace("-", "_"): value for name, value in given.items()}
    if "epochs" in settings:
        raise InputError("Epochs would give each method its own number of steps; give --max-steps, the same for all.")
    for name in settings:
        owners = [method for method, kind in registry().items() if name in _names(kind.Settings)]
        if owners and name not in _names(LoopSettings):
            owner = next((label for label, method in map(_labelled, methods) if method in owners), owners[0])
            raise InputError(
                f"{name} is a setting of single methods; write --set {owner}.{name.replace('_', '-')}=VALUE."
            )
    (checked,) = resolve(settings, LoopSettings)
    checked.check()
    return {"max_steps": STEPS, **settings}


def suites(given: str | Sequence[str] | None, data_dir: str | None) -> tuple[str, ...]:
    names = tuple(given.split(",") if isinstance(given, str) else given or ())
    for name in names:
        if name not in SUITES:
            raise InputError(f"No suite of a comparison is called '{name}'{nearest(name, SUITES)}")
        if name in ("sts", "transfer") and data_dir is None:
            raise InputError(f"The suite {name} needs its benchmarks: give --data-dir, or set ISOTROPE_DATA.")
    return names


def _names(settings: type) -> set[str]:
    return {field.name for field in dataclasses.fields(settings)}


def _labelled(name: str) -> tuple[str, str]:
    label, given, method = name.strip().partition("=")
    if not re.fullmatch(r"[\w-]+", label):
        raise InputError(f"'{name}' is no name for a row: letters, digits, - and _ only.")
    return label, method if given else label


def _files(data: Data) -> list[tuple[str | None, str]]:
    """(kind, path): the kind is None where the columns decide."""
    if isinstance(data, Mapping):
        found: list[tuple[str | None, str]] = [(kind, str(path)) for kind, path in data.items()]
    else:
        given = [data] if isinstance(data, str | os.PathLike) else list(data)
        parts = [str(word).partition("=") for word in given]
        found = [
            (kind, path) if equals and kind in RECORD_TYPES else (None, kind + equals + path)
            for kind, equals, path in parts
        ]
    if not found:
        raise InputError("No data was given: name at least one file.")
    for kind, path in found:
        check_file(path)
        if kind is not None and not fits(path, kind):
            raise InputError(f"{path}: {_described(path)} cannot be {kind}.")
    return found


def _text_for(label: str, kinds: Sequence[str], files: list[tuple[str | None, str]]) -> str:
    for kind in kinds:
        named = [path for given, path in files if given == kind]
        fitting = [path for given, path in files if given is None and fits(path, kind)]
        if named or fitting:
            return (named or fitting)[0]
    given = ", ".join(f"{Path(path).name} ({kind or _described(path)})" for kind, path in files)
    wanted = "/".join(RECORD_TYPES[kinds[0]].known[0])
    raise InputError(
        f"{label} needs {' or '.join(kinds)}, and none of the files is that: {given}; add one, with columns such as {wanted}."
    )


def _described(path: str) -> str:
    header = header_of(path)
    return "plain text" if header is None else f"a table with columns {', '.join(header)}"
