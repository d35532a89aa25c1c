"""Write a model folder in the sentence-transformers layout: modules.json, a folder for each part, and our own facts.

Parts with a stock twin in sentence-transformers are written as that; the others name a class of ours, which other
readers load only where they are allowed to (parts/st_modules.py). No part is known here by name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isotrope.encoders.classifier import FOLDER
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.encoder_uses import PROMPTS
from isotrope.encoders.model_card import write_card
from isotrope.encoders.parts.part import Backbone, Part, Stage
from isotrope.encoders.parts.part_registry import known_parts
from isotrope.errors import InputError
from isotrope.files import write_json, written_folder
from isotrope.version import __version__

# The names in a model's folder; one that holds anything else is never replaced.
OURS = re.compile(
    r"(config|modules|isotrope|generation_config|sentence_\w+_config|config_sentence_transformers|tokenizer\w*"
    r"|special_tokens_map|added_tokens|vocab|model\.safetensors\.index)\.json"
    r"|model[\w-]*\.safetensors|vocab\.txt|merges\.txt|\w+\.model|README\.md|\d+_\w+|second|classifier"
)


def save(encoder: Encoder, folder: str | os.PathLike[str]) -> None:
    """Write ``encoder`` to ``folder``; what cannot be saved is refused before anything is written."""
    target = check_target(folder)
    parts = saved_parts(encoder)
    with written_folder(target) as temporary:
        _write(encoder, parts, temporary)
        write_card(encoder, parts, temporary, target)


def check_target(folder: str | os.PathLike[str]) -> Path:
    """Refuse a place that holds anything but a model, before the work is done."""
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InputError(f"{target}: a file stands where the model's folder should be; choose another name.")
    strange = (
        sorted(entry.name for entry in target.iterdir() if not OURS.fullmatch(entry.name)) if target.is_dir() else []
    )
    if strange:
        raise InputError(
            f"{target}: the folder holds something else ({strange[0]}); choose a new folder for the model."
        )
    return target


def check_new_folder(folder: str | os.PathLike[str]) -> Path:
    """As ``check_target``, and a model that is there already is not replaced either."""
    target = check_target(folder)
    if target.is_dir() and any(target.iterdir()):
        raise InputError(f"{target}: a model is here already; choose another output.")
    return target


def saved_parts(encoder: Encoder) -> list[Part]:
    """The parts of an encoder in the order of modules.json: every known class is asked for its own."""
    found = [part for known in known_parts().values() if (part := known.of(encoder)) is not None]
    chain = sorted(found, key=lambda part: part.stage)
    first = chain[0] if chain else None
    if not isinstance(first, Backbone):
        raise InputError(f"A {type(encoder.backbone).__name__} cannot be written: no saved part holds such a backbone.")
    if first.own_pooling:
        chain = [first]
    elif [part.stage for part in chain].count(Stage.POOLING) != 1:
        raise InputError(f"The pooling '{encoder.pooling.name}' cannot be written: one saved part must hold it.")
    return [*chain, *_vector_parts(encoder)]


def _vector_parts(encoder: Encoder) -> Iterator[Part]:
    for part in encoder.parts:
        if not isinstance(part, Part) or not part.type_name:
            raise InputError(f"A {type(part).__name__} cannot be written as a stock module.")
        yield part


def _write(encoder: Encoder, parts: list[Part], folder: Path) -> None:
    modules: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        path = f"{number}_{part.type_name}" if number else ""
        modules.append({"idx": number, "name": str(number), "path": path, "type": part.package + part.type_name})
        (folder / path).mkdir(exist_ok=True)
        part.write(folder / path)
    write_json(folder / "modules.json", modules)
    default = {"default": encoder.prompt} if encoder.prompt else {}
    write_json(
        folder / "config_sentence_transformers.json",
        {
            "__version__": {"isotrope": __version__},
            "prompts": {**encoder.facts.get(PROMPTS, {}), **default},
            "default_prompt_name": "default" if default else None,
            "similarity_fn_name": "cosine",
        },
    )
    facts = {
        **encoder.facts,
        "pooling": encoder.pooling.name,
        "max_length": encoder.max_length,
        "isotrope": __version__,
    }
    facts |= {"causal": True} if encoder.causal else {}  # config.json has it as is_decoder; here it is said to a person
    write_json(folder / "isotrope.json", facts)
    if encoder.classifier is not None:
        encoder.classifier.write(folder / FOLDER)
