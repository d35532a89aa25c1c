"""Read a model folder: the sentence-transformers layout, old and new, or a plain Hugging Face folder.

modules.json lists the parts; each reads its own folder and joins the assembly. No part is known here by name, except
that a folder without modules.json is one Transformer. Only the class name of a ``type`` counts, so folders whose
classes have moved since still load.
"""

from __future__ import annotations

from pathlib import Path

from isotrope.encoders.assembly import Assembly
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.part import Backbone, Part, Stage
from isotrope.encoders.parts.part_registry import known_parts
from isotrope.encoders.parts.transformer import Transformer
from isotrope.encoders.stored_files import read_facts, read_json
from isotrope.errors import InputError

READ_OUT = (Stage.LAYERS, Stage.TOKENS, Stage.POOLING)


def read_folder(folder: Path, pooling: str | None, language_head: bool) -> Encoder:
    """The encoder of a folder; ``pooling`` replaces the stored one, ``language_head`` keeps the language head."""
    listed = listed_parts(folder)
    # Folders of the first sentence-transformers keep the backbone in 0_Transformer.
    backbones = [(part, place) for part, place in listed if issubclass(part, Backbone)] or [(Transformer, folder)]
    if len(backbones) > 1:
        names = " and a ".join(part.type_name for part, _ in backbones)
        raise InputError(f"{folder}: modules.json lists a {names}; isotrope knows models of one backbone.")
    backbone, inner = backbones[0]
    first = backbone.open(inner, pooling, language_head)
    assembly = Assembly(folder, first, prompt_of(folder), read_facts(folder / "isotrope.json"))
    for part, place in listed:
        if issubclass(part, Backbone):
            continue
        if first.own_pooling and part.stage in READ_OUT:
            raise InputError(
                f"{folder}: modules.json has a {part.type_name} module behind a {first.type_name}, which is read out "
                f"by its {first.own_pooling}; isotrope does not know such a model."
            )
        part.read(place, read_facts(place / "config.json")).join(assembly, place)
    return assembly.encoder(pooling)


def listed_parts(folder: Path) -> list[tuple[type[Part], Path]]:
    """The class and the folder of each part that modules.json lists; none for a plain Hugging Face folder."""
    listing, known = folder / "modules.json", known_parts()
    if not listing.is_file():
        return []
    try:
        entries = [(str(entry["type"]).rsplit(".", 1)[-1], str(entry["path"])) for entry in read_json(listing)]
    except (KeyError, TypeError) as error:
        raise InputError(f"{listing}: a list of modules, each with its type and path, was expected.") from error
    for name, _ in entries:
        if name not in known:
            raise InputError(f"{folder}: modules.json names a {name} module, which isotrope does not know.")
    return [(known[name], folder / path) for name, path in entries]


def prompt_of(folder: Path) -> str:
    """The prompt that is put before each text unless another is named; empty where there is none."""
    facts = read_facts(folder / "config_sentence_transformers.json")
    return str((facts.get("prompts") or {}).get(facts.get("default_prompt_name") or "", "") or "")
