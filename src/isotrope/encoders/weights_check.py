"""The weights of a folder before they are read: each file is whole, holds numbers, and is large enough for the config.

Only the headers of the safetensors are looked at, so this costs nothing next to reading them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from isotrope.encoders.stored_files import REPAIR, TENSORS, gist, inside, read_facts
from isotrope.errors import InputError

INDEX = f"{TENSORS}.index.json"
PICKLED = "pytorch_model.bin"
FLOATS = {"F64", "F32", "F16", "BF16"}
SLACK = 10_000_000  # weights that a model may have besides twice those of the file: a pooler, a new head


def check_weights(folder: Path) -> int:
    """How many numbers the files hold; a file that is missing, cut, or of another dtype is refused."""
    return sum(_numbers(file) for file in weight_files(folder))


def weight_files(folder: Path) -> list[Path]:
    if (folder / TENSORS).is_file():
        return [folder / TENSORS]
    if not (folder / INDEX).is_file():
        pickled = (folder / PICKLED).is_file()
        hint = (
            f"only {PICKLED}, which is not read for safety; convert it to safetensors" if pickled else f"no {TENSORS}"
        )
        raise InputError(f"{folder}: the weights are missing: {hint}.")
    names = read_facts(folder / INDEX).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(name, str) for name in names.values()):
        raise InputError(f"{folder / INDEX}: a weight_map from tensors to files was expected; {REPAIR}.")
    files = [inside(folder, name, folder / INDEX) for name in sorted(set(names.values()))]
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: this part of the weights is missing; copy the model's folder again.")
    return files


def _numbers(file: Path) -> int:
    total = 0
    try:
        with safe_open(file, framework="pt") as held:
            for name in held.keys():  # noqa: SIM118 - it is no mapping
                tensor = held.get_slice(name)
                shape, dtype = tensor.get_shape(), str(tensor.get_dtype())
                if dtype not in FLOATS and (len(shape) > 1 or dtype.startswith("F")) and "position_ids" not in name:
                    raise InputError(
                        f"{file}: {name} holds {dtype}, and floating point of 16 bits or more was expected; take the "
                        "model before it was quantised."
                    )
                total += torch.Size(shape).numel()
    except (OSError, SafetensorError) as error:
        raise InputError(f"{file}: cannot be read ({gist(error)}); {REPAIR}.") from error
    return total


def check_size(folder: Path, build: Any, held: int) -> None:
    """Refuse a config whose model is far larger than its weights, before memory is taken for it.

    ``build`` makes the model; on the meta device it has shapes and no numbers.
    """
    with torch.device("meta"):
        model = build()
    needed = sum(weight.numel() for weight in model.parameters())
    if needed > 2 * held + SLACK:
        raise InputError(
            f"{folder / 'config.json'}: it describes a model of {needed:,} weights, and the folder holds {held:,}; "
            f"{REPAIR}."
        )
