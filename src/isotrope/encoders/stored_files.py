"""The files of a saved model as data: JSON objects and safetensors; what cannot be read is one sentence.

Nothing here is pickled or executed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from isotrope.errors import InputError

TENSORS = "model.safetensors"
REPAIR = "repair it, or copy the model's folder again"


def read_tensors(place: Path, name: str = TENSORS) -> dict[str, Tensor]:
    """The weights in a module's folder, by name."""
    file = place / name
    if not file.is_file():
        raise InputError(f"{place}: {name} is missing (pickled weights are not read).")
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{file}: cannot be read ({gist(error)}); {REPAIR}.") from error


def read_facts(path: Path) -> dict[str, Any]:
    """A JSON object, empty where there is no such file."""
    facts = read_json(path) if path.is_file() else {}
    if not isinstance(facts, dict):
        raise InputError(f"{path}: a JSON object was expected, not a {type(facts).__name__}; {REPAIR}.")
    return facts


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({gist(error)}); {REPAIR}.") from error


def inside(folder: Path, path: str, file: Path) -> Path:
    """The place that ``file`` names by ``path``; one that leaves the folder is refused."""
    plain = os.path.normpath(path.replace("\\", "/")) if path else "."
    if "\0" in path or os.path.isabs(plain) or ":" in plain or plain.split("/")[0] == "..":
        raise InputError(f"{file}: {path!r} leaves the folder; a model is read from its own folder alone.")
    return folder / plain


@contextmanager
def loaded_by_others(place: Path, what: str) -> Iterator[None]:
    """Whatever a library raises while it reads a folder becomes one sentence: it may raise anything, and documents
    little of it.
    """
    try:
        yield
    except InputError:
        raise
    except ImportError as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise InputError(
            f"{place}: {what} cannot be loaded, for a library cannot be imported ({gist(cause)}); repair the "
            "installation."
        ) from error
    except Exception as error:
        raise InputError(f"{place}: {what} cannot be loaded ({gist(error)}); {REPAIR}.") from error


def gist(error: BaseException) -> str:
    """The first sentence of another library's message, to stand inside one of ours."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line.split(". ")[0].rstrip(".")
