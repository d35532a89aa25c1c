"""A folder of shards: the vectors of a text in numbered .npy files, each with its checksum, and the plan they follow.

    plan.json        the text, the encoder, the form of the vectors, records a shard: what decides every byte
    00000000.npy     the vectors of the first block of the text, without its blank records
    00000000.json    their size, CRC-32, rows and counts, and the digest of the plan; written last
    done.json        rows and shards of a folder that is whole

A shard is there when its .json is, fits its .npy and names the plan; anything else is made again.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.checksums import sum_of
from isotrope.encoders.cut_texts import CutTexts
from isotrope.errors import InputError
from isotrope.files import digest, explained, names_in, write_json, written_file
from isotrope.progress import bar

PLAN, DONE = "plan.json", "done.json"


@dataclass(frozen=True)
class ShardPlan:
    """What decides the bytes of every shard; processes that share a folder must agree on it."""

    text: str
    encoder: str
    shard_size: int
    columns: str
    dimension: int
    form: dict[str, Any]
    max_length: int
    versions: dict[str, str]

    def name(self) -> str:
        return digest(json.dumps(asdict(self), sort_keys=True))


@dataclass(frozen=True)
class ShardFacts:
    """One shard: its rows, the blank records that it left out, and the texts that were cut."""

    plan: str
    rows: int
    empty: int
    cut: int
    sum: list[int]


class ShardStore:
    """The shards of one plan in one folder."""

    def __init__(self, folder: Path, plan: ShardPlan) -> None:
        self.folder, self.plan, self.name = folder, plan, plan.name()

    def begin(self) -> None:
        """Make the folder and its plan, or refuse a folder of another plan or with other things in it."""
        with explained(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        written = read_json(self.folder / PLAN)
        if written is None:
            if others := {name for name in names_in(self.folder) if not _is_ours(name)}:
                raise InputError(
                    f"{self.folder}: the folder holds something else ({min(others)}); choose a new folder for the "
                    "shards.",
                    setting="shards",
                )
            write_json(self.folder / PLAN, asdict(self.plan))
            return
        now = json.loads(json.dumps(asdict(self.plan)))
        differing = [name for name in now if now[name] != written.get(name)]
        if differing:
            raise InputError(
                f"{self.folder}: these shards were begun with another {' and '.join(differing)} "
                f"({written.get(differing[0])} instead of {now[differing[0]]}); choose a new folder, or remove this "
                "one.",
                setting="shards",
            )

    def abandon(self) -> None:
        """Take the folder away again where it holds nothing but the plan: no shard, and nobody at work."""
        if names_in(self.folder) == {PLAN}:
            (self.folder / PLAN).unlink(missing_ok=True)
            with suppress(OSError):  # somebody else came into it
                self.folder.rmdir()

    def vectors_file(self, number: int) -> Path:
        return self.folder / f"{number:08d}.npy"

    def facts(self, number: int) -> ShardFacts | None:
        """What is written of a shard; None where it must be made. The content is not looked at."""
        written = read_json(self.folder / f"{number:08d}.json")
        try:
            found = ShardFacts(**(written or {}))
            whole = found.plan == self.name and self.vectors_file(number).stat().st_size == found.sum[0]
        except (TypeError, OSError, IndexError):
            return None
        return found if whole else None

    def damaged(self, number: int) -> bool:
        """Whether the content is not what was written."""
        found = self.facts(number)
        return found is None or sum_of(self.vectors_file(number)) != found.sum

    def write(self, number: int, vectors: npt.NDArray[Any], empty: int, cut: int) -> None:
        """Vectors first, then what says that they are there. The checksum is that of memory, not of the disk."""
        buffer = io.BytesIO()
        np.save(buffer, vectors)
        content = buffer.getvalue()  # no view: Python 3.13 complains of one that a failed write left open
        with written_file(self.vectors_file(number)) as temporary, open(temporary, "wb") as file:
            file.write(content)
        facts = ShardFacts(self.name, len(vectors), empty, cut, [len(content), zlib.crc32(content)])
        write_json(self.folder / f"{number:08d}.json", asdict(facts))

    def blocks(self, shards: int) -> Iterator[npt.NDArray[Any]]:
        """The vectors of each shard that has some, in order."""
        for number in range(shards):
            vectors = np.load(self.vectors_file(number), allow_pickle=False)
            if len(vectors):
                yield vectors


@dataclass(frozen=True)
class ShardedVectors:
    """A finished folder of shards: ``blocks`` gives its vectors in the order of the text, one shard at a time."""

    store: ShardStore
    shards: int
    rows: int
    empty: int
    cut: int

    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        return self.store.blocks(self.shards)

    def say_cut(self) -> None:
        """One line of the log where texts were cut, by whichever process."""
        CutTexts(self.rows, self.cut, self.store.plan.max_length).say()


def open_shards(place: Path) -> ShardedVectors:
    """The vectors that ``isotrope encode --shards`` left; every checksum is looked at first."""
    plan, done = read_json(place / PLAN), read_json(place / DONE)
    if plan is None:
        raise InputError(f"{place}: no shards of vectors (no {PLAN}).")
    try:
        store = ShardStore(place, ShardPlan(**plan))
        if done is None or done["plan"] != store.name:
            raise InputError(f"{place}: the shards are not finished; run the same `isotrope encode --shards` again.")
        found = ShardedVectors(store, done["shards"], done["rows"], done["empty"], done["cut"])
    except (TypeError, KeyError) as error:
        raise InputError(f"{place / PLAN}: damaged; encode into a new folder.") from error
    with bar("checking shards", found.shards) as advance:
        for number in range(found.shards):
            if store.damaged(number):
                raise InputError(
                    f"{store.vectors_file(number)}: missing, or not as it was written; run the same "
                    "`isotrope encode --shards` again, which makes it again."
                )
            advance()
    return found


def read_json(path: Path) -> dict[str, Any] | None:
    """What a file says; None where it is missing or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _is_ours(name: str) -> bool:
    stem = name.split(".")[0]
    return name in (PLAN, DONE) or stem.isdigit() or ".claim" in name
