"""The text that an encoder was trained on, as far as its run folder and those of its starts say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from isotrope.data.packed_streams import unpacking
from isotrope.data.protected_sentences import cells_of
from isotrope.data.tables import check_file, format_of, is_here, table_of
from isotrope.evaluation.judged_models import run_facts, run_folder_of

IN_MEMORY = ("an encoder in memory", "a list in memory")


@dataclass
class TrainingText:
    """``files``: what was trained on and is still here; ``unknown``: the models whose text is not."""

    files: list[Path] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def training_text(model: str | os.PathLike[str] | None) -> TrainingText:
    """Follow a run to its start, and that one's run to its own."""
    found = TrainingText()
    place = model
    seen: set[Path] = set()
    while True:
        run = None if place is None else run_folder_of(place)
        if run is None or run in seen:
            found.unknown.append("the encoder" if place is None else _name(place))
            return found
        seen.add(run)
        facts = run_facts(run)
        if str((facts.get("data") or {}).get("record_type")).endswith("images"):
            return found  # there is no text
        sources = facts.get("sources") or [facts.get("source")]
        for source in map(str, sources):
            if source not in IN_MEMORY and is_here(Path(source)):
                found.files.append(check_file(source))
            else:
                found.unknown.append(f"{run.name} ({source} is not here)")
        place = (facts.get("model") or {}).get("name", "none")
        if place in ("none", *IN_MEMORY):
            if place != "none":
                found.unknown.append(str(place))
            return found


def texts_of(file: Path) -> Iterator[list[str]]:
    """The texts of each line or row; a cell without a blank is a name or a number."""
    if format_of(file) in (".txt", ".tsv"):
        for _, texts in cells_of(file):
            yield texts
        return
    with unpacking(file):
        for _, row in table_of(file)[1]:
            yield [text for cell in row.values() for text in _strings(cell) if " " in text or not text.isascii()]


def _strings(cell: object) -> list[str]:
    return (
        [cell]
        if isinstance(cell, str)
        else [one for one in cell if isinstance(one, str)]
        if isinstance(cell, list)
        else []
    )


def _name(place: str | os.PathLike[str]) -> str:
    path = Path(place)
    return path.parent.name if path.name == "model" else path.name
