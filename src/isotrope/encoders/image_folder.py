"""Read and write the folder of an image encoder: config.json, model.safetensors, isotrope.json.

The weights have the names that the network gives them, so timm loads them too: make the network with ``num_classes=0``
(and the small stem, where config.json says so), then ``load_state_dict`` of the file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from isotrope.encoders.image_encoder import ImageEncoder
from isotrope.encoders.vision_networks import VisionConfig, VisionNetwork
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
        given: dict[str, Any] = dict(_facts(file)[KEY])
        given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        config = VisionConfig(**given)
        backbone = VisionNetwork(config)
    except (TypeError, ValueError) as error:
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


def _facts(file: Path) -> dict[str, Any]:
    """What the file says; nothing where it is no file (a pipe would be waited for) or cannot be read."""
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
