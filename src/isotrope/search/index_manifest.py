"""What an index knows of itself: the model, the text, the columns, and where its parts are.

The manifest is written last and in one step. Parts that it does not name are left-overs of a build that was killed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.files import write_json
from isotrope.search.index_place import BUILDING, MANIFEST
from isotrope.search.index_rows import Reading, Source
from isotrope.search.part_sums import sums_of_parts
from isotrope.search.word_stems import ENGLISH, NONE

FORMAT = 1
CHECK = "check"  # the checksum of everything else in the file


@dataclass(frozen=True)
class ModelFacts:
    """``name`` is where the model is loaded from; None for an encoder that was in memory."""

    name: str | None
    fingerprint: str
    width: int  # of its vectors


@dataclass(frozen=True)
class Manifest:
    """``dimension`` is that of the kept vectors; ``parts`` are engine-specific names; ``measured`` what was printed;
    ``cut`` how many texts are longer than the model reads, None in an index that did not count them; ``tokens``
    whether token states are kept; ``stemmer`` how words are compared, as they are in an index that does not say.

    ``sums`` are those of the files of a folder (part_sums.py).
    """

    model: ModelFacts
    dimension: int
    precision: str
    reading: Reading
    kinds: Mapping[str, str]
    sources: tuple[Source, ...]
    rows: int
    parts: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    cut: int | None = None
    tokens: bool = False
    stemmer: str = NONE
    sums: Mapping[str, list[int]] = field(default_factory=dict)
    format: int = FORMAT

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def changed(self, **fields: Any) -> Manifest:
        return replace(self, **fields)

    def check_model(self, fingerprint: str, where: str) -> None:
        if fingerprint != self.model.fingerprint:
            raise InputError(
                f"{where}: the index was made by another model ({self.model.name or 'an encoder in memory'}, "
                f"{self.model.fingerprint[:8]}) than the one given ({fingerprint[:8]}); search with that one, or build "
                "an index of its own for this one."
            )

    def check_text(self, where: str) -> None:
        """Refuse an index whose files are there and not what was indexed."""
        for source in self.changed_sources():
            raise InputError(
                f"{where}: {source.path} has changed since it was indexed; bring the index up to date with "
                "`isotrope index … --update` (only new texts are encoded), or search it as it is with stale.",
                "stale",
            )

    def changed_sources(self) -> list[Source]:
        """Of a file that was added again, as documents are updated, the last state counts."""
        return [source for source in {source.path: source for source in self.sources}.values() if source.changed()]


def manifest_of(found: Any, where: str) -> Manifest:
    """From JSON values."""
    try:
        if found["format"] != FORMAT:
            raise InputError(
                f"{where}: the index has format {found['format']}, and this version reads {FORMAT}; build it again."
            )
        reading: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in found["reading"].items()
        }
        if int(found["rows"]) < 0 or int(found["dimension"]) < 1:
            raise ValueError(f"{found['rows']} rows of {found['dimension']} dimensions")
        return Manifest(
            model=ModelFacts(**found["model"]),
            dimension=int(found["dimension"]),
            precision=str(found["precision"]),
            reading=Reading(**reading),
            kinds=dict(found["kinds"]),
            sources=tuple(Source(**source) for source in found["sources"]),
            rows=int(found["rows"]),
            parts=dict(found["parts"]),
            measured=dict(found["measured"]),
            cut=None if found.get("cut") is None else int(found["cut"]),
            tokens=bool(found.get("tokens", False)),
            stemmer=_stemmer(found.get("stemmer", NONE), where),
            sums={str(name): [int(one) for one in sums] for name, sums in found.get("sums", {}).items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: not the manifest of an index ({error}); build the index again.") from error


def _stemmer(name: Any, where: str) -> str:
    if name not in (ENGLISH, NONE):
        raise InputError(f"{where}: the words have the stemmer '{name}', which this version lacks; build it again.")
    return str(name)


def read_manifest(folder: Path) -> Manifest:
    """Of a folder; what is no index is said."""
    file = folder / MANIFEST
    if not file.is_file():
        if (folder / BUILDING).is_file():
            raise InputError(
                f"{folder}: the index is half-written; the same `isotrope index` command goes on where it stopped."
            )
        raise InputError(f"{folder}: no index is here; build one with `isotrope index MODEL TEXT --output {folder}`.")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: not readable as JSON ({error}); build the index again.") from error
    if isinstance(found, dict) and found.get("format") == FORMAT and found.pop(CHECK, None) != _check(found):
        raise InputError(
            f"{file}: not as it was written, or of an earlier version; remove the index and build it again."
        )
    return manifest_of(found, str(file))


def write_manifest(folder: Path, manifest: Manifest, known: Mapping[str, list[int]] | None = None) -> None:
    """With the checksums of all parts and its own; ``known`` are those of the manifest that is replaced."""
    whole = manifest.changed(sums=sums_of_parts(folder, manifest.parts, known or {})).to_dict()
    write_json(folder / MANIFEST, {**whole, CHECK: _check(whole)})


def _check(facts: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode())
