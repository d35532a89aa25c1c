"""The client of Milvus, for a file (Milvus Lite) and for a server alike; its errors become one sentence.

The manifest of an index is a property of its collection. A server that asks for a token takes it from MILVUS_TOKEN.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.search.index_manifest import Manifest, manifest_of
from isotrope.search.index_place import SERVERS, IndexPlace

PROPERTY, BEGUN = "isotrope", "isotrope.building"
SECONDS = 30.0
OLDEST = (2, 5)  # of a server: BM25 made by Milvus, and columns without a value


@contextmanager
def milvus_errors(place: IndexPlace) -> Iterator[None]:
    """Turn what the client raises into a sentence."""
    try:
        from pymilvus.exceptions import MilvusException
    except ImportError as error:
        raise InputError(
            f"{place}: Milvus needs the extra search: pip install 'isotrope[search]'; a folder needs nothing more."
        ) from error
    try:
        yield
    except MilvusException as error:
        said = " ".join(str(error.message or error).split())[:300]
        raise InputError(f"{place}: Milvus answers: {said}.") from error


def connect(place: IndexPlace, make: bool = False) -> Any:
    """A client; ``make``: a file that is not there is made."""
    with milvus_errors(place):
        from pymilvus import MilvusClient

        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # its tracebacks; the sentence is ours
        if not place.target.startswith(SERVERS):
            _check_file(place, make)
        client = MilvusClient(uri=place.target, token=os.environ.get("MILVUS_TOKEN", ""), timeout=SECONDS)
        _check_version(place, str(client.get_server_version()))
        return client


def _check_version(place: IndexPlace, version: str) -> None:
    """Refuse a server without what an index needs; one that does not say a version is believed."""
    found = re.search(r"(\d+)\.(\d+)", version)
    if found is not None and (int(found[1]), int(found[2])) < OLDEST:
        raise InputError(
            f"{place}: Milvus {version} answers there, and an index needs {OLDEST[0]}.{OLDEST[1]} or newer, which has "
            "BM25; update the server, or use a folder."
        )


def _check_file(place: IndexPlace, make: bool) -> None:
    file = Path(place.target)
    if file.suffix != ".db":
        raise InputError(f"{place}: the name of a file of Milvus Lite ends with .db; write milvus:{file}.db.")
    if not make and not file.exists():
        raise InputError(f"{place}: no index is here; build one with `isotrope index MODEL TEXT --output {place}`.")
    if not file.parent.is_dir():
        raise InputError(f"{place}: the folder {file.parent} is not there; make it first.")


def properties_of(client: Any, place: IndexPlace) -> dict[str, str] | None:
    """Of the collection; None where there is none."""
    with milvus_errors(place):
        if not client.has_collection(place.collection):
            return None
        return dict(client.describe_collection(place.collection).get("properties") or {})


def load_collection(client: Any, place: IndexPlace) -> None:
    """A file that another process made answers only then; a collection that is loaded stays as it is."""
    with milvus_errors(place):
        client.load_collection(place.collection)


def field_names(client: Any, place: IndexPlace) -> frozenset[str]:
    """Of the collection; older ones have no ``plain``, ``cut`` or ``passage``."""
    with milvus_errors(place):
        return frozenset(str(field["name"]) for field in client.describe_collection(place.collection)["fields"])


def manifest_in(properties: Mapping[str, str] | None, place: IndexPlace) -> Manifest | None:
    """The manifest, or None where no build has ended; a collection of somebody else is refused."""
    if properties is None:
        return None
    written = properties.get(PROPERTY)
    if written:
        return manifest_of(json.loads(written), str(place))
    if BEGUN not in properties:
        raise InputError(f"{place}: the collection {place.collection} is not one of ours; name another with #NAME.")
    return None


def alter(client: Any, place: IndexPlace, **facts: Any) -> None:
    """Write properties: ``manifest`` and what is being ``begun``, as JSON."""
    names = {"manifest": PROPERTY, "begun": BEGUN}
    values = {names[name]: json.dumps(value) for name, value in facts.items()}
    with milvus_errors(place):
        client.alter_collection_properties(place.collection, properties=values)
