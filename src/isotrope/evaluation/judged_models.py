"""What is judged: a model, a run folder, or several runs of one method that differ in their random seed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import BUILTIN, find_folder, load
from isotrope.encoders.truncation import truncated
from isotrope.errors import InputError

Place = str | os.PathLike[str]
Given = Encoder | Place | Sequence["Encoder | Place"]
MODEL_FILES = ("config.json", "modules.json", "packed.safetensors")


class Form(NamedTuple):
    """How a model is opened: another pooling than its own, its leading dimensions alone, in int8."""

    pooling: str | None = None
    truncate_dim: int | None = None
    int8: bool = False


@dataclass(frozen=True)
class JudgedModel:
    """A name, and one encoder or place of a model for each run."""

    name: str
    runs: tuple[Encoder | Place, ...]
    labels: tuple[str, ...]

    def opened(self, number: int, form: Form = Form()) -> Encoder:  # noqa: B008 - it cannot be changed
        """The encoder of a run."""
        encoder = self._loaded(self.runs[number], form)
        if not form.int8:
            return encoder
        from isotrope.encoders.onnx_export import int8_copy

        return int8_copy(encoder)

    @staticmethod
    def _loaded(run: Encoder | Place, form: Form) -> Encoder:
        if not isinstance(run, Encoder):
            return load(run, form.pooling, truncate_dim=form.truncate_dim)
        if form.pooling is not None:
            raise InputError("The pooling of an encoder in memory is fixed; load it with the pooling you want.")
        return truncated(run, form.truncate_dim)

    def place(self, number: int) -> Place | None:
        run = self.runs[number]
        return None if isinstance(run, Encoder) else run


def find_models(given: Sequence[Given]) -> list[JudgedModel]:
    """Each under a name that differs from the others; refuses what is not there before anything is loaded."""
    found = [_found(one, number) for number, one in enumerate(given, 1)]
    names = _numbered([one.name for one in found])
    return [JudgedModel(name, one.runs, one.labels) for name, one in zip(names, found, strict=True)]


def run_folder_of(model: Place) -> Path | None:
    """The run folder that a model folder lies in; None for any other model."""
    if str(model) in BUILTIN or not Path(model).is_dir():
        return None
    folder = Path(model).resolve().parent
    return folder if (folder / "run.json").is_file() else None


def run_facts(folder: Path) -> dict[str, Any]:
    """What run.json says."""
    try:
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / 'run.json'}: cannot be read as JSON ({error}).") from error
    if not isinstance(facts, dict):
        raise InputError(f"{folder / 'run.json'}: this is not what `isotrope train` writes.")
    return facts


def _found(given: Given, number: int) -> JudgedModel:
    if isinstance(given, Encoder) or (hasattr(given, "encode") and not isinstance(given, str)):
        name = "encoder" if number == 1 else f"encoder {number}"
        return JudgedModel(name, (given,), (name,))  # type: ignore[arg-type]
    if not isinstance(given, str | os.PathLike):
        return _group([_found(one, place) for place, one in enumerate(given, 1)], "")
    place = Path(given).expanduser()
    if str(given) in BUILTIN:
        return JudgedModel(str(given), (given,), (str(given),))
    if "," in str(given) and not place.exists():
        return _group([_found(part, row) for row, part in enumerate(str(given).split(","), 1)], "")
    if str(given) and place.is_dir():
        return _of_folder(place)
    if not place.is_file():
        find_folder(str(given))
    return JudgedModel(place.name or str(given), (given,), (place.name,))


def _of_folder(folder: Path) -> JudgedModel:
    if (folder / "run.json").is_file():
        return _of_run(folder)
    if any((folder / name).is_file() for name in MODEL_FILES):
        inside = run_folder_of(folder)
        name = folder.resolve().name if inside is None or folder.name != "model" else inside.name
        return JudgedModel(name, (folder,), (name,))
    runs = sorted(file.parent for file in folder.glob("*/run.json"))
    if not runs:
        return JudgedModel(folder.resolve().name, (folder,), (folder.name,))  # load says what is missing
    return _group([_of_run(run) for run in runs], folder.resolve().name)


def _of_run(folder: Path) -> JudgedModel:
    if not (folder / "model").is_dir():
        raise InputError(f"{folder}: this run has no model yet; finish it with resume, or leave it out.")
    name = folder.resolve().name
    return JudgedModel(name, (folder / "model",), (name,))


def _group(models: Sequence[JudgedModel], name: str) -> JudgedModel:
    """Several runs as one model; runs that differ in more than their seed, or in their text, are refused."""
    if not models:
        raise InputError("No run was given; name at least one.")
    runs = [run for model in models for run in model.runs]
    _check_different(runs)
    kinds = {json.dumps(_kind(run), sort_keys=True): _kind(run) for run in runs}
    if len(kinds) > 1:
        methods = sorted({str(kind.get("method")) for kind in kinds.values()})
        texts = {str(kind.get("text")) for kind in kinds.values()}
        found = "different texts" if len(texts) > 1 else "settings that differ in more than the seed"
        found = f"the methods {', '.join(methods)}" if len(methods) > 1 else found
        raise InputError(
            f"{name or models[0].name}: runs of {found} cannot stand for one model; name those of one alone."
        )
    method = next(iter(kinds.values())).get("method")
    label = name or (f"{method}" if method and len(runs) > 1 else models[0].name)
    return JudgedModel(label, tuple(runs), _numbered([one for model in models for one in model.labels]))


def _check_different(runs: Sequence[Encoder | Place]) -> None:
    """A run that stands for two seeds would make a verdict look surer than it is."""
    places = [run if isinstance(run, Encoder) else Path(run).expanduser().resolve() for run in runs]
    for number, (run, place) in enumerate(zip(runs, places, strict=True)):
        if places.index(place) < number:
            said = "an encoder" if isinstance(run, Encoder) else run
            raise InputError(f"{said} was given twice; name each run of a model once.")


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with a number where one stood before: two runs may lie in folders of one name."""
    before = [names[:place].count(name) for place, name in enumerate(names)]
    return tuple(f"{name} ({count + 1})" if count else name for name, count in zip(names, before, strict=True))


def _kind(run: Encoder | Place) -> dict[str, Any]:
    """What all runs of a group share; nothing is known of a plain model."""
    folder = None if isinstance(run, Encoder) else run_folder_of(run)
    if folder is None:
        return {}
    facts = run_facts(folder)
    settings = {name: value for name, value in (facts.get("settings") or {}).items() if name != "seed"}
    start, text = (facts.get("model") or {}).get("name"), (facts.get("data") or {}).get("fingerprint")
    shared = {name: facts.get(name) for name in ("method", "mixture", "eval_content")}
    return {**shared, "settings": settings, "start": start, "text": text}
