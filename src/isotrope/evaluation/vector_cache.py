"""Vectors by model and text: each text is encoded once a model, whatever the number of suites and of calls.

    key of a model = digest(everything that decides its vectors, device)      key of a text = digest(text)

While ``shared_vectors`` is open, suites share what they encode. With ``disk`` it is kept between calls too, under
ISOTROPE_CACHE, one file a batch of new texts. A file is named by the digest of its content, so a damaged one is seen,
removed and made anew. The folder has a limit; what was not used for longest goes first. Vectors are kept as encoded,
float32, and come back bit for bit. A text's vector hangs on its batch by rounding (1e-5; of an int8 export, whose
units are those of the batch, 1e-2): it is the one of the call that met the text first.
"""

from __future__ import annotations

import hashlib
import io
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isotrope.encoders.encoder import Encoder, Vectors
from isotrope.encoders.onnx_encoder import OnnxEncoder
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, file_digest, written_file
from isotrope.progress import say

LIMIT = 4 << 30  # bytes on disk, of all models together
FOLDER = "vectors"
WHOLE = "[!.]*.npy"  # a name with a dot before it is being written
Encode = Callable[[list[str]], Vectors]


class _Counts(threading.local):
    encoded = 0
    found = 0


class VectorCache:
    """What is known of some models. ``encoded`` and ``found`` count the texts that this thread asked for."""

    def __init__(self, folder: Path | None = None, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self._counts = _Counts()
        self._shelves: dict[str, dict[bytes, npt.NDArray[np.float32]]] = {}

    @property
    def encoded(self) -> int:
        return self._counts.encoded

    @encoded.setter
    def encoded(self, count: int) -> None:
        self._counts.encoded = count

    @property
    def found(self) -> int:
        return self._counts.found

    @found.setter
    def found(self, count: int) -> None:
        self._counts.found = count

    def vectors(self, model: str, texts: Sequence[str], encode: Encode) -> Vectors:
        """[texts, d]; those that are not known yet are encoded together, and kept."""
        shelf, keys = self._shelf(model), [key_of(text) for text in texts]
        missing = [text for text, key in zip(texts, keys, strict=True) if key not in shelf]
        self.encoded += len(missing)
        self.found += len(texts) - len(missing)
        if missing:
            self.keep(model, missing, encode(missing))
        return np.stack([shelf[key] for key in keys]) if keys else encode([])

    def known(self, model: str, texts: Sequence[str]) -> bool:
        shelf = self._shelf(model)
        return all(key_of(text) in shelf for text in texts)

    def share(self, model: str, texts: Sequence[str], vectors: Vectors) -> None:
        """Remember vectors of which some may be known; those are not replaced."""
        shelf, places = self._shelf(model), {text: place for place, text in enumerate(texts)}
        new = [text for text in places if key_of(text) not in shelf]
        self.encoded += len(new)
        if new:
            self.keep(model, new, vectors[[places[text] for text in new]])

    def keep(self, model: str, texts: Sequence[str], vectors: Vectors) -> None:
        """Remember vectors that are not known yet. Only finite ones go to disk: others are a mistake of today."""
        keys = [key_of(text) for text in texts]
        self._shelf(model).update(zip(keys, vectors, strict=True))
        if self.folder is not None and len(keys) and bool(np.isfinite(vectors).all()):
            self._write(self.folder / model, keys, vectors)

    def _shelf(self, model: str) -> dict[bytes, npt.NDArray[np.float32]]:
        if model not in self._shelves:
            shelf = self._shelves[model] = {}
            files = sorted((self.folder / model).glob(WHOLE)) if self.folder is not None else []
            for file in files:
                table = _read(file)
                if table is not None:
                    shelf.update(zip(map(bytes, table["key"]), np.asarray(table["vector"]), strict=True))
        return self._shelves[model]

    def _write(self, folder: Path, keys: Sequence[bytes], vectors: Vectors) -> None:
        """A disk that is full or read-only costs time the next time, not this result."""
        table = np.empty(len(keys), dtype=[("key", "u1", 16), ("vector", "<f4", vectors.shape[1])])
        table["key"] = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, 16)
        table["vector"] = vectors
        if table.nbytes > self.limit:
            return
        content = io.BytesIO()
        np.save(content, table)
        target = folder / f"{hashlib.blake2b(content.getbuffer(), digest_size=16).hexdigest()}.npy"
        try:
            with written_file(target) as temporary, open(temporary, "wb") as file:
                file.write(content.getbuffer())
                file.flush()
                os.fsync(file.fileno())
        except (InputError, OSError) as error:
            say(f"The vectors are not kept for the next call: {error}")
            return
        self._trim(target)

    def _trim(self, newest: Path) -> None:
        """Remove what was not used for longest until the limit holds."""
        assert self.folder is not None
        found = sorted((facts.st_mtime, facts.st_size, file) for file, facts in _files(self.folder))
        total = sum(size for _, size, _ in found)
        for _, size, file in found:
            if total <= self.limit:
                return
            if file != newest:
                file.unlink(missing_ok=True)
                total -= size


_active: ContextVar[VectorCache | None] = ContextVar("vectors", default=None)


@contextmanager
def shared_vectors(disk: bool = True) -> Iterator[VectorCache]:
    """Suites run inside share the vectors of their texts; inside another such block, those of that block."""
    outer = _active.get()
    if outer is not None:
        yield outer
        return
    cache = VectorCache(cache_folder() / FOLDER if disk else None)
    token = _active.set(cache)
    try:
        yield cache
    finally:
        _active.reset(token)


def active_cache(encoder: Encoder) -> VectorCache | None:
    """The open cache; none for what is an encoder by its ``encode`` alone, whose content nothing is known of."""
    plain = type(encoder) in (Encoder, OnnxEncoder) and not {"encode", "forward"} & vars(encoder).keys()
    return _active.get() if plain else None


def model_key(encoder: Encoder, fingerprint: str) -> str:
    """Another device rounds otherwise."""
    return digest(fingerprint, encoder.device.type)


def key_of(text: str) -> bytes:
    return bytes.fromhex(digest(text))


def _read(file: Path) -> npt.NDArray[np.void] | None:
    """The table of a file that is whole; a damaged one is removed."""
    try:
        if file_digest(file) == file.stem:
            with suppress(OSError):  # a cache that may only be read serves all the same
                os.utime(file)
            table: npt.NDArray[np.void] = np.load(file, mmap_mode="r", allow_pickle=False)
            return table
        say(f"{file}: damaged; its vectors are made anew.")
        file.unlink(missing_ok=True)
    except OSError:  # another process removed it meanwhile, or it cannot be read
        pass
    return None


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for file in folder.glob(f"*/{WHOLE}"):
        try:
            yield file, file.stat()
        except FileNotFoundError:
            continue
