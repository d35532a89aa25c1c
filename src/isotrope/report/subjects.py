"""What is reported on: runs with their models and their starts, and plain models."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isotrope.data.tables import check_file, is_here
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import BUILTIN, load
from isotrope.errors import InputError
from isotrope.report.compared import Compared, is_comparison, read_compared
from isotrope.training.run_folder import RunFolder

Place = str | os.PathLike[str]
IN_MEMORY = "an encoder in memory"  # what run.json calls a start that has no name


@dataclass(frozen=True)
class Checkpoint:
    """What was measured at a step of a run."""

    step: int
    measures: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        return {"step": self.step, **self.measures}


@dataclass
class Subject:
    """An encoder under its name.

    ``role``: "start" | "run" | "model"; a run has its history and its facts, and knows its start's name.
    """

    name: str
    role: str
    open: Callable[[], Encoder]
    place: str | None = None  # where the encoder lies, to see that two subjects are one
    history: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    start: str | None = None

    @property
    def trail(self) -> list[Checkpoint]:
        """What was measured during the run, in order."""
        return [Checkpoint(line["step"], line["evaluation"]) for line in self.history if "evaluation" in line]

    @property
    def source(self) -> Path | None:
        """The text of the run, where it still lies where it lay; of a folder of documents, the text made of them."""
        place, data = Path(str(self.facts.get("source", ""))), self.facts.get("data") or {}
        images = str(data.get("record_type")).endswith("images") and not place.is_file()
        if self.facts.get("source") and not images and is_here(place):
            with suppress(InputError):  # it is another one now: empty, or of another kind
                return check_file(place)
        return None


@dataclass(frozen=True)
class Cast:
    """All subjects in the order of the page, starts first, and what could not be shown."""

    subjects: list[Subject]
    remarks: list[str]
    compared: Compared | None = None

    @property
    def runs(self) -> list[Subject]:
        return [subject for subject in self.subjects if subject.role == "run"]


def find_subjects(given: Sequence[Place | Encoder]) -> Cast:
    """Folders of runs, of models and of a comparison, names of models, encoders in memory.

    The start of a run comes with it where it can be loaded. Of a comparison there is one run of each row, by its label.
    """
    if not given:
        raise InputError("Nothing to report on; name run folders or models.")
    places = [one if isinstance(one, Encoder) else Path(one) if _is_folder(one) else str(one) for one in given]
    comparisons = [place for place in places if isinstance(place, Path) and is_comparison(place.expanduser())]
    if len(comparisons) > 1:
        raise InputError(f"{comparisons[1]}: a page shows one comparison; report on the others apart.")
    compared, rows = read_compared(comparisons[0].expanduser()) if comparisons else (None, {})
    places = [place for place in places if place not in comparisons]
    names = [name if name not in rows else f"{name} (apart)" for name in _names(places)]
    asked = [_subject(name, place) for name, place in [*rows.items(), *zip(names, places, strict=True)]]
    starts: dict[str, Subject] = {}
    remarks: list[str] = []
    for run in [one for one in asked if one.role == "run"]:
        model = run.facts.get("model", {})
        mark = str(model.get("fingerprint"))
        found = starts.get(mark) or _start(
            model, asked, [*(one.name for one in asked), *(one.name for one in starts.values())]
        )
        if found is None:
            remarks.append(
                f"{run.name}: its start, {model.get('name')}, is not here as it was; there is no 'before' for this run."
            )
            continue
        starts[mark] = found
        run.start = found.name
    before = [one for one in starts.values() if one.role != "run"]
    return Cast([*before, *(one for one in asked if one not in before)], remarks, compared)


def _is_folder(place: Place) -> bool:
    return bool(str(place)) and Path(place).expanduser().is_dir() and str(place) not in BUILTIN


def _names(places: Sequence[Path | str | Encoder]) -> list[str]:
    """Short names that differ: the last part of a path, and as many parts before it as it takes."""
    parts = [_parts(place, number) for number, place in enumerate(places, 1)]
    names = []
    for number, own in enumerate(parts):
        for length in range(1, len(own) + 1):
            tail = own[-length:]
            if sum(other[-length:] == tail for other in parts) == 1:
                break
        else:
            raise InputError(f"{places[number]} was given twice; name each run or model once.")
        names.append("/".join(tail))
    return names


def _parts(place: Path | str | Encoder, number: int) -> tuple[str, ...]:
    if isinstance(place, Encoder):
        return (f"encoder {number}",)
    if isinstance(place, str):
        return (place,)
    whole = place.expanduser().resolve()
    return tuple(part for part in (whole.parent if whole.name == "model" else whole).parts if part != os.sep)


def _subject(name: str, place: Path | str | Encoder) -> Subject:
    if isinstance(place, Encoder):
        return Subject(name, "model", lambda: place)
    if isinstance(place, str):  # a built-in model or a hub id; load says what is wrong with it
        return Subject(name, "model", lambda: load(place), place)
    folder = place.expanduser()
    if not (folder / "run.json").is_file():
        if not any((folder / file).is_file() for file in ("config.json", "modules.json")):
            raise InputError(f"{place}: neither a run nor a model (no run.json, no modules.json, no config.json).")
        return Subject(name, "model", lambda: load(folder), _key(folder))
    run = RunFolder(folder)
    if not run.model.is_dir():
        raise InputError(f"{place}: this run has no model yet; finish it with resume, or leave it out.")
    return Subject(name, "run", lambda: load(run.model), _key(run.model), _history(run), _facts(folder / "run.json"))


def _history(run: RunFolder) -> list[dict[str, Any]]:
    """The log without what is not a number: a page cannot draw it, and an alarm says that it is missing."""
    return [_finite(line) for line in run.history()]


def _finite(line: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in line.items() if not isinstance(value, float) or math.isfinite(value)}
    if "evaluation" in line:
        found["evaluation"] = _finite(line["evaluation"])
    return found


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}).") from error
    if (
        not isinstance(facts, dict)
        or not isinstance(facts.get("model", {}), dict)
        or not isinstance(facts.get("data", {}), dict)
    ):
        raise InputError(f"{path}: this is not what `isotrope train` writes.")
    return facts


def _key(place: Path | str) -> str:
    return str(place) if str(place) in BUILTIN else str(Path(place).expanduser().resolve())


def _start(model: dict[str, Any], asked: Sequence[Subject], taken: Sequence[str]) -> Subject | None:
    """The model that a run began with, if it still is what it was; one that was asked for anyway is not shown twice."""
    name = str(model.get("name") or "")
    if not name or name == IN_MEMORY or (name not in BUILTIN and not Path(name).expanduser().is_dir()):
        return None
    try:
        encoder = next(
            (found for found in _readings(name, model) if found.fingerprint() == model.get("fingerprint")), None
        )
    except InputError:
        return None
    if encoder is None:
        return None
    same = next((one for one in asked if one.place == _key(name)), None)
    if same is not None and same.open().fingerprint() == model.get("fingerprint"):
        same.role = "start" if same.role == "model" else same.role
        return same
    label = _parts(name if name in BUILTIN else Path(name), 0)[-1]
    while label in taken:
        label += " (start)"
    return Subject(label, "start", lambda: encoder, _key(name))


def _readings(name: str, model: dict[str, Any]) -> Iterator[Encoder]:
    """With the pooling stored, and with the one that the run asked for."""
    yield load(name)
    yield load(name, model.get("pooling"))
