"""Read and write the folder of an image encoder: config.json, model.safetensors, isotrope.json.

The weights have the names that the network gives them, so timm loads them too: make the network with ``num_classes=0``
(and the small stem, where config.json says so), then ``load_state_dict`` of the file.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from isotrope.encoders.image_encoder import ImageEncoder
from isotrope.encoders.stored_fields import Fields
from isotrope.encoders.vision_networks import VisionConfig, VisionNetwork, is_network_name
from isotrope.errors import InputError
from isotrope.files import write_json, written_folder
from isotrope.version import __version__

KEY = "image_encoder"


def save_images(encoder: ImageEncoder, folder: str | os.PathLike[str]) -> None:
    """Write ``encoder`` to ``folder``."""
    from isotrope.encoders.saving import check_target  # who reads does not need the writer

    target = check_target(folder)
    if len(encoder.parts):
        raise InputError("An image encoder with maps behind its network cannot be written yet; save it without them.")
    network = encoder.backbone.network
    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    with written_folder(target) as temporary:
        save_file(weights, temporary / "model.safetensors", metadata={"format": "pt"})
        write_json(temporary / "config.json", {KEY: encoder.config.to_dict()})
        write_json(temporary / "isotrope.json", {**encoder.facts, "isotrope": __version__})


def is_image_folder(folder: Path) -> bool:
    return KEY in _facts(folder / "config.json")


def read_image_folder(folder: Path) -> ImageEncoder:
    """The encoder that ``save_images`` wrote."""
    file = folder / "config.json"
    try:
        config = _config(file)
        backbone = VisionNetwork(replace(config, hidden_size=0))
        if config.hidden_size not in (0, backbone.config.hidden_size):
            raise ValueError(f"hidden_size is {config.hidden_size}, and the network's {backbone.config.hidden_size}")
    except (TypeError, ValueError, RuntimeError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file}: what builds the network cannot be read ({error}); copy the folder again.") from error
    weights = folder / "model.safetensors"
    try:
        backbone.network.load_state_dict(load_file(weights))
    except (OSError, SafetensorError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{weights}: the weights cannot be read, or do not fit {config.network} ({reason})."
        ) from error
    facts = {name: value for name, value in _facts(folder / "isotrope.json").items() if name != "isotrope"}
    return ImageEncoder(backbone, facts=facts)


def _config(file: Path) -> VisionConfig:
    """What config.json says of the network, each field with the type and the range that it must have."""
    stored: Any = _facts(file)[KEY]
    given: dict[str, Any] = dict(stored)
    fields = Fields(file, given)
    for name in ("mean", "std"):
        colours = given.get(name, [1.0] * 3)
        numbers = isinstance(colours, list) and all(
            isinstance(one, int | float) and not isinstance(one, bool) and isfinite(one) for one in colours
        )
        if not numbers or len(colours) != 3 or (name == "std" and min(colours) <= 0):
            raise fields.refusal(name, "a list of three numbers" + (" above 0" if name == "std" else ""))
    fields.count("size", 8, 1024)
    if not is_network_name(fields.word("network")):
        raise fields.refusal("network", "timm:NAME or conv:WIDTH")
    fields.count("hidden_size", 0, 1_000_000, default=0)
    given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return VisionConfig(**given)


def _facts(file: Path) -> dict[str, Any]:
    """What the file says; nothing where it is no file (a pipe would be waited for) or cannot be read."""
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
