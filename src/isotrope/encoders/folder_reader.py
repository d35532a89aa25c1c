"""Read a model folder: the sentence-transformers layout, old and new, or a plain Hugging Face folder.

modules.json lists the parts; each reads its own folder and joins the assembly. No part is known here by name, except
that a folder without modules.json is one Transformer. Only the class name of a ``type`` counts, so folders whose
classes have moved since still load.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isotrope.encoders.assembly import Assembly
from isotrope.encoders.classifier import FOLDER, Classifier
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.encoder_uses import PROMPTS
from isotrope.encoders.parts.part import STOCK, Backbone, Part, Stage
from isotrope.encoders.parts.part_registry import known_parts
from isotrope.encoders.parts.transformer import Transformer
from isotrope.encoders.read_out import FINISHED
from isotrope.encoders.stored_fields import Fields
from isotrope.encoders.stored_files import inside, read_facts, read_json
from isotrope.encoders.truncation import truncated
from isotrope.errors import InputError

PACKAGES = ("sentence_transformers", "isotrope", "")  # another package that names a stock module is code of the folder
SETTINGS = "config_sentence_transformers.json"
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
    prompt, prompts = prompts_of(folder)
    assembly = Assembly(folder, first, prompt, {**own_facts(folder), **({PROMPTS: prompts} if prompts else {})})
    _check_order(folder, [part for part, _ in listed])
    for part, place in listed:
        if issubclass(part, Backbone):
            continue
        if first.own_pooling and part.stage in READ_OUT:
            raise InputError(
                f"{folder}: modules.json has a {part.type_name} module behind a {first.type_name}, which is read out "
                f"by its {first.own_pooling}; isotrope does not know such a model."
            )
        if part.needs_config and not (place / "config.json").is_file():
            raise InputError(f"{place / 'config.json'}: the file is missing; copy the model's folder again.")
        part.read(place, read_facts(place / "config.json")).join(assembly, place)
    encoder = _truncated(folder, assembly.encoder(pooling))
    if (folder / FOLDER).is_dir() and (pooling is None or pooling == own_facts(folder).get("pooling")):
        encoder.classifier = Classifier.read(folder / FOLDER, encoder.dimension)
    return encoder


def _truncated(folder: Path, encoder: Encoder) -> Encoder:
    """With the leading dimensions that the folder asks for; more than there are means all."""
    file = folder / SETTINGS
    fields = Fields(file, read_facts(file))
    if fields.facts.get("truncate_dim") is None:
        return encoder
    return truncated(encoder, min(fields.count("truncate_dim"), encoder.dimension))


def listed_parts(folder: Path) -> list[tuple[type[Part], Path]]:
    """The class and the folder of each part that modules.json lists; none for a plain Hugging Face folder."""
    listing, known = folder / "modules.json", known_parts()
    if not listing.is_file():
        return []
    found = []
    for entry in _entries(listing):
        package, _, name = entry["type"].rpartition(".")
        part = known.get(name)
        if package.split(".")[0] not in PACKAGES and (part is None or part.package == STOCK):
            raise InputError(
                f"{listing}: it names {entry['type']}, code of its own, which is not run; take a model of stock "
                "modules."
            )
        if part is None:
            raise InputError(f"{listing}: it names a {name} module, which isotrope does not know.")
        found.append((part, inside(folder, entry["path"], listing)))
    return found


def _entries(listing: Path) -> list[dict[str, str]]:
    """The entries of modules.json, each with its type and path."""
    entries = read_json(listing)
    if not isinstance(entries, list):
        raise InputError(f"{listing}: a list of modules was expected, not a {type(entries).__name__}.")
    if not entries:
        raise InputError(f"{listing}: it lists no module; remove it from a plain Hugging Face folder.")
    for entry in entries:
        if not isinstance(entry, dict) or not all(isinstance(entry.get(name), str) for name in ("type", "path")):
            raise InputError(f"{listing}: a list of modules, each with its type and path as words, was expected.")
    return entries


def _check_order(folder: Path, parts: list[type[Part]]) -> None:
    """Refuse a chain that is none: two poolings, vectors before the pooling or without one."""
    stages = [part.stage for part in parts if not issubclass(part, Backbone)]
    if any(issubclass(part, Backbone) and part.own_pooling for part in parts):
        return
    if stages.count(Stage.POOLING) > 1:
        raise InputError(f"{folder / 'modules.json'}: it lists a second pooling; a model has one.")
    if Stage.POOLING not in stages and stages:
        raise InputError(f"{folder / 'modules.json'}: it lists no pooling before its other modules; add one.")
    place = stages.index(Stage.POOLING) if stages else 0
    if any(stage == Stage.VECTORS for stage in stages[:place]) or any(
        stage < Stage.POOLING for stage in stages[place:]
    ):
        raise InputError(
            f"{folder / 'modules.json'}: the order of its modules is not layers, tokens, pooling, vectors; isotrope "
            "does not know such a model."
        )


def own_facts(folder: Path) -> dict[str, Any]:
    """What isotrope.json says; the spaces that were fitted have names. Without it, listed modules are an encoder's."""
    file = folder / "isotrope.json"
    facts = read_facts(file) or ({FINISHED: True} if (folder / "modules.json").is_file() else {})
    spaces = facts.get("spaces", [])
    if not isinstance(spaces, list) or not all(isinstance(one, dict) and "name" in one for one in spaces):
        raise Fields(file, facts).refusal("spaces", "a list of spaces, each with its name,")
    return facts


def prompts_of(folder: Path) -> tuple[str, dict[str, str]]:
    """The prompt that is put before each text unless another is named, and the others by name; empty where there is
    none."""
    file = folder / SETTINGS
    facts = read_facts(file)
    prompts, default = facts.get("prompts") or {}, facts.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(prompt, str) for prompt in prompts.values()):
        raise Fields(file, facts).refusal("prompts", "a mapping from names to texts")
    if default is None:
        return "", prompts
    if not isinstance(default, str) or default not in prompts:
        raise Fields(file, facts).refusal("default_prompt_name", "one of the names in prompts")
    return prompts[default], {name: text for name, text in prompts.items() if name != "default"}
