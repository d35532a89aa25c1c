"""Adapting a finished sentence encoder, such as ``builtin``, to one's own text: the defaults differ.

A paper's settings are those for a raw language model, and thousands of steps long. A finished encoder is near its best
already: it is looked at after a few steps, again and again, the start is kept where nothing is better, and the run ends
after minutes. Methods name what else differs for them (``Method.adapting``). What the user names wins.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.folder_reader import own_facts
from isotrope.encoders.loading import BUILTIN
from isotrope.encoders.read_out import is_finished
from isotrope.errors import InputError
from isotrope.methods.frame.from_scratch import FromScratch
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.method_registry import registry
from isotrope.methods.frame.own_task import OwnTask

LOOP = {"first_eval": 10, "eval_steps": 40, "patience": 5, "time_limit": 900.0}
LENGTHS = {"max_steps", "epochs", "max_seconds", "time_limit"}  # whoever names one of these says how long the run is
# A table of token vectors takes large steps, and a pass over the data costs it seconds.
STATIC = {"learning_rate": 0.01, "batch_size": 256, "epochs": 3.0, "eval_steps": 100}
RAW_BUILTIN, STATIC_BUILTIN = "builtin-base", "builtin-static"


def adapting_defaults(
    method: type[Method[Any]], model: str | os.PathLike[str] | Encoder, given: Collection[str]
) -> dict[str, Any]:
    """The defaults that differ; none where the start is a raw language model, or scores do not choose."""
    chooses = issubclass(method, OwnTask) and method.chooses
    if method.keeps != "best" or issubclass(method, FromScratch) or chooses or not known_finished(model):
        return {}
    loop = {name: value for name, value in LOOP.items() if name != "time_limit" or not LENGTHS & set(given)}
    return {**loop, **method.adapting, **(STATIC if is_static(model) else {})}


def known_finished(model: str | os.PathLike[str] | Encoder) -> bool:
    """Whether a model is a finished encoder, as far as its name or its folder's small files say; nothing is loaded."""
    if isinstance(model, Encoder):
        return is_finished(model.facts)
    if str(model) in BUILTIN:
        return str(model) != RAW_BUILTIN
    try:
        return is_finished(own_facts(_model_folder(model)))
    except InputError:
        return False


def is_static(model: str | os.PathLike[str] | Encoder) -> bool:
    """Whether a model is a table of token vectors, as far as its name or its folder's small files say."""
    if isinstance(model, Encoder):
        return model.backbone.config.num_hidden_layers == 0
    if str(model) in BUILTIN:
        return str(model) == STATIC_BUILTIN
    modules = _model_folder(model) / "modules.json"
    return modules.is_file() and "StaticEmbedding" in modules.read_text(encoding="utf-8", errors="replace")


def _model_folder(model: str | os.PathLike[str]) -> Path:
    folder = Path(model).expanduser()
    return folder / "model" if (folder / "run.json").is_file() else folder


def advised_method(record_types: Collection[str]) -> str:
    """The method that the docs advise for adapting, given the record types that the data can be read as."""
    advised = {record_type: name for name, one in registry().items() for record_type in one.advised_for}
    found = next((advised[name] for name in ORDER if name in record_types and name in advised), None)
    if found is None:
        raise InputError("No method is advised for such data; name one that `isotrope methods` lists.")
    return found


ORDER = ("scored-pairs", "triples", "pairs", "sentences")  # the more a record says, the earlier
