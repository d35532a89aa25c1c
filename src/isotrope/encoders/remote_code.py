"""Code that a model folder brings along: never run, unless the user names that folder.

A folder may name classes of its own (``auto_map`` in config.json and tokenizer_config.json). transformers would ask on
standard input and run them at a "y". Here nobody is asked: ``trust_remote_code`` holds the folder, or the hub id, whose
code may run, so trust in one model is no trust in another. Code of a second repository is never fetched.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from isotrope.encoders.stored_files import read_facts
from isotrope.errors import InputError

VARIABLE = "ISOTROPE_TRUST_REMOTE_CODE"  # the same for a whole process and those it starts: folders, joined as in PATH
_trusted: ContextVar[tuple[Path, ...]] = ContextVar("trusted", default=())


class CodeNotRunWarning(UserWarning):
    """The folder brings code of its own, and transformers' class of that name was taken in its place."""


def named_as_trusted(name: str | os.PathLike[str], given: Any) -> bool:
    """Whether ``given``, or the variable, names this model."""
    if given is not None and not isinstance(given, str | os.PathLike):  # True would trust whatever comes
        raise InputError(
            f"trust_remote_code takes the folder whose code may run, not {given!r}; give it the model's folder."
        )
    if given is not None and not _same(name, given):
        raise InputError(
            f"trust_remote_code names {os.fspath(given)!r}, and the model is {os.fspath(name)!r}; name that folder if "
            "you trust it."
        )
    variable = os.environ.get(VARIABLE, "")
    return given is not None or any(_same(name, one) for one in variable.split(os.pathsep) if one)


def trust_in_process(names: list[str]) -> None:
    """Add to what this process, and every process that it starts, may run."""
    before = [one for one in os.environ.get(VARIABLE, "").split(os.pathsep) if one]
    os.environ[VARIABLE] = os.pathsep.join([*before, *names])


@contextmanager
def trusting(folder: Path | None) -> Iterator[None]:
    """The code of ``folder`` may run inside the block; None: no code may."""
    token = _trusted.set(() if folder is None else (folder.resolve(),))
    try:
        yield
    finally:
        _trusted.reset(token)


def is_trusted(folder: Path) -> bool:
    place = folder.resolve()
    return any(place == one or one in place.parents for one in _trusted.get())


def check_code(folder: Path, known_model: bool) -> None:
    """Refuse a model that needs code of its own, or say that it is not run; ``known_model``: transformers has a class
    for its model_type.
    """
    for name in ("config.json", "tokenizer_config.json"):
        classes = _classes(read_facts(folder / name))
        foreign = next((one for one in classes if "--" in one), None)
        if foreign is not None:
            raise InputError(
                f"{folder / name}: auto_map names code of another repository ({foreign}); it is never run."
            )
        if not classes or is_trusted(folder):
            continue
        if name == "config.json" and not known_model:
            raise code_refusal(folder / name, classes[0])
        warnings.warn(
            f"{folder / name}: the model brings code of its own ({classes[0]}), which is not run; transformers' own "
            "class is taken, and its vectors may differ.",
            CodeNotRunWarning,
            stacklevel=2,
        )


def code_refusal(file: Path, named: str) -> InputError:
    return InputError(
        f"{file}: the model needs code of its own ({named}), which is not run; if you have read it and trust it, give "
        f"{file.parent} as trust_remote_code."
    )


def _classes(facts: Mapping[str, Any]) -> list[str]:
    """The classes that auto_map names: a mapping to names or to lists of names, or one such list."""
    listed = facts.get("auto_map") or {}
    values = listed.values() if isinstance(listed, Mapping) else [listed]
    return [str(one) for value in values for one in (value if isinstance(value, list) else [value]) if one]


def _same(name: str | os.PathLike[str], given: str | os.PathLike[str]) -> bool:
    if os.fspath(name) == os.fspath(given):
        return True
    first, second = (Path(one).expanduser() for one in (name, given))
    return first.is_dir() and second.is_dir() and first.resolve() == second.resolve()
