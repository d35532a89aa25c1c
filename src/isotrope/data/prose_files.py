"""The documents of a folder: .md, .markdown, .rst and .txt files, in it and below, in the order of their names.

Left out: what is hidden, what programs put there (packages, caches, builds), our own runs, models and cache, and links
to folders, which may lead in a circle.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from isotrope.data.prose_blocks import PROSE
from isotrope.data.text_lines import lines_of
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, file_digest

TEXTS = (*PROSE, ".txt")
MADE = frozenset("node_modules __pycache__ venv site-packages build dist _build".split())
OURS = frozenset(("run.json", "modules.json"))  # a folder with one of them is a run, or a saved model
NAMED = 5  # files that a message names


@dataclass
class LeftOut:
    """What cannot be read: how many, and the first of them with the reason."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, name: str, path: Path, error: Exception) -> None:
        self.count += 1
        if len(self.first) < NAMED:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            reason = reason.removeprefix(str(path)).lstrip(":0123456789 ").partition(";")[0].rstrip(".")
            self.first.append(f"{name} ({reason})")

    def join(self, others: LeftOut) -> None:
        self.count += others.count
        self.first = [*self.first, *others.first][:NAMED]

    def __str__(self) -> str:
        more = f" and {self.count - len(self.first):,} more" if self.count > len(self.first) else ""
        named = f"{self.count:,} files are" if self.count > 1 else "1 file is"
        return f"{named} no text and left out: {', '.join(self.first)}{more}" if self.count else ""


@dataclass(frozen=True)
class ProseFiles:
    """``paths`` of the documents, ``others``: the endings of what else is there; ``left_out``: folders that cannot be
    read, and names that cannot be written."""

    place: Path
    paths: list[Path]
    others: Counter[str]
    left_out: LeftOut = field(default_factory=LeftOut)

    @property
    def title(self) -> str:
        return self.place.resolve().name or "documents"

    def name(self, path: Path) -> str:
        """Below the folder that was given, from wherever that was."""
        below = "" if path == self.place else f"/{path.relative_to(self.place).as_posix()}"
        return f"{self.title}{below}".replace("\n", " ").encode(errors="backslashreplace").decode()

    def leave_out(self, path: Path, error: OSError) -> None:
        self.left_out.add(self.name(path), path, error)

    def state(self) -> tuple[tuple[str, int, int], ...]:
        """Changes with the files, without reading them."""
        return tuple((str(path), *size_and_time(path)) for path in self.paths)


def is_prose(place: str | os.PathLike[str]) -> bool:
    """Whether it is read as documents: a folder, or a file with their endings but .txt, whose lines are texts."""
    return os.path.isdir(place) or Path(place).suffix.lower() in PROSE


def prose_files(place: Path) -> ProseFiles:
    """The documents of a folder, or the one file; a folder without any is a sentence with what is there."""
    if not place.is_dir():
        return ProseFiles(place, [place], Counter())
    found = ProseFiles(place, [], Counter())
    for path in _walk(place, lambda error: found.leave_out(Path(error.filename), error)):
        is_text, written = path.suffix.lower() in TEXTS, _can_be_written(path.relative_to(place))
        if is_text and written:
            found.paths.append(path)
        elif is_text:
            found.leave_out(path, OSError(0, "its name is not UTF-8"))
        elif not written:
            found.others["with a name that is not UTF-8"] += 1
        else:
            found.others[path.suffix.lower() or "without an ending"] += 1
    if not found.paths:
        there = ", ".join(f"{count:,} {ending}" for ending, count in found.others.most_common(NAMED)) or "no file"
        left_out = f" {found.left_out}." if found.left_out.count else ""
        raise InputError(
            f"{place}: this is a folder without text ({', '.join(TEXTS)}) and with {there}; give a folder of documents "
            f"or a file (.txt, .tsv, .csv, .jsonl, .parquet).{left_out}"
        )
    found.paths.sort()
    return found


def check_document(path: Path) -> None:
    """Refuse what is no text to its end, what leads nowhere (``OSError``) and what a reader would wait for."""
    _check_regular(path)
    for _ in lines_of(path):
        pass


def holds_prose(folder: Path) -> bool:
    return any(path.suffix.lower() in TEXTS for path in _walk(folder))


def content_of_document(path: Path) -> str:
    """A digest of its bytes, or of why there are none."""
    try:
        _check_regular(path)
        return file_digest(path)
    except OSError as error:
        return digest("unreadable", str(error.strerror))


def _check_regular(path: Path) -> None:
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(0, "neither a file nor a link to one")


def _walk(folder: Path, refused: Callable[[OSError], None] | None = None) -> Iterator[Path]:
    cache = os.path.realpath(cache_folder())  # it holds the texts of documents
    for place, folders, names in os.walk(folder, onerror=refused):
        if place != str(folder) and (OURS & set(names) or os.path.realpath(place) == cache):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in MADE)
        yield from (Path(place) / name for name in sorted(names) if not name.startswith("."))


def size_and_time(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (-1, -1)
    return (found.st_size, found.st_mtime_ns)


def _can_be_written(path: Path) -> bool:
    try:
        return bool(str(path).encode())
    except UnicodeEncodeError:
        return False
