"""The files of a saved model as data: JSON objects and safetensors; what cannot be read is one sentence.

Nothing here is pickled or executed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from isotrope.errors import InputError

TENSORS = "model.safetensors"


def read_tensors(place: Path) -> dict[str, Tensor]:
    """The weights in a module's folder, by name."""
    file = place / TENSORS
    if not file.is_file():
        raise InputError(f"{place}: {TENSORS} is missing (pickled weights are not read).")
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{file}: cannot be read ({gist(error)}).") from error


def read_facts(path: Path) -> dict[str, Any]:
    """A JSON object, empty where there is no such file."""
    facts = read_json(path) if path.is_file() else {}
    if not isinstance(facts, dict):
        raise InputError(f"{path}: a JSON object was expected, not a {type(facts).__name__}.")
    return facts


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}).") from error


def gist(error: Exception) -> str:
    """The first sentence of another library's message, to stand inside one of ours."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line.split(". ")[0].rstrip(".")
