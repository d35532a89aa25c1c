"""Where an index is: a folder, a file of Milvus Lite, or a Milvus server.

runs/index                          a folder: exact, memory-mapped
milvus:docs.db[#collection]         Milvus Lite
http://host:19530[#collection]      a Milvus server or cluster
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from isotrope.errors import InputError
from isotrope.files import check_name

MANIFEST, BUILDING = "index.json", "building.json"
COLLECTION = "isotrope"
LITE, SERVERS = "milvus:", ("http://", "https://")


@dataclass(frozen=True)
class IndexPlace:
    """``engine`` is folder or milvus; ``target`` the folder, the file or the address."""

    engine: str
    target: str
    collection: str = ""

    def __str__(self) -> str:
        if self.engine == "folder":
            return self.target
        lite = "" if self.target.startswith(SERVERS) else LITE
        return f"{lite}{self.target}" + ("" if self.collection == COLLECTION else f"#{self.collection}")


def parse_place(place: str | os.PathLike[str]) -> IndexPlace:
    written = str(place)
    check_name(written)
    if not written.strip():
        raise InputError("The place of the index is empty; give a folder, milvus:FILE or http://HOST:PORT.")
    if not written.startswith((LITE, *SERVERS)):
        return IndexPlace("folder", written)
    address, _, collection = written.removeprefix(LITE).partition("#")
    if not address or address in SERVERS:
        raise InputError(f"{written}: no file or host follows; write milvus:docs.db or http://localhost:19530.")
    if collection and not re.fullmatch(r"[A-Za-z_]\w{0,200}", collection, re.ASCII):
        raise InputError(f"{written}: '{collection}' is no name of a collection; use letters, digits and _.")
    return IndexPlace("milvus", address, collection or COLLECTION)


def is_index(place: str | os.PathLike[str]) -> bool:
    """Whether a word of the command line names an index: by its form, or by what the folder holds."""
    written = str(place)
    if written.startswith((LITE, *SERVERS)):
        return True
    folder = Path(written)
    try:
        return any((folder / name).is_file() for name in (MANIFEST, BUILDING))
    except OSError:  # a text for a name
        return False
