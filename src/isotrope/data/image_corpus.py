"""Images as a corpus: decoded once, kept as squares of 8-bit RGB in one memory-mapped file.

The loop, the orders of batches and the held-out split ask a corpus for its length, its keys and its labels; images
answer the same. A row is the number of an image. What only text has (tokens, documents) is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from isotrope.data.cache_folders import is_whole, write_facts
from isotrope.data.corpus import Corpus, Ids
from isotrope.data.corpus_files import Counts, Keys
from isotrope.data.image_sources import ImageSource, Skipped, Source, open_source
from isotrope.data.pictures import Pixels, squared, stored_side
from isotrope.data.record_types import RecordType
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, written_folder
from isotrope.progress import bar, say

FORMAT = "images-1"
LARGEST_NATURAL = 96  # images of one such size are kept as they are
LOOKED_AT = 32  # images whose sizes are looked at
IMAGES = RecordType("images", ("image",), None, (("image",),))
LABELLED_IMAGES = RecordType("labelled-images", ("image",), "label", (("image", "label"),))
IMAGE_TYPES = {one.name: one for one in (IMAGES, LABELLED_IMAGES)}


class ImageCounts(Counts):
    """What a source of images held. ``empty`` are files that could not be decoded."""

    def __str__(self) -> str:
        return (
            f"{self.records:,} images, {self.duplicates:,} duplicates (kept, never two in one batch), "
            f"{self.empty:,} not decoded"
        )


class ImageCorpus(Corpus):
    """Squares of one side, memory-mapped; with a label each where the source has labels."""

    def __init__(self, folder: Path) -> None:
        facts = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
        self.folder = folder
        self.fingerprint = facts["fingerprint"]
        self.record_type = IMAGE_TYPES[facts["record_type"]]
        self.counts = ImageCounts(**facts["counts"])
        self.skipped: str = facts["skipped"]
        self.side: int = facts["side"]
        count = self.counts.records
        self._files = {
            "pixels": np.memmap(folder / "pixels", dtype=np.uint8, mode="r", shape=(count, self.side, self.side, 3)),
            "keys": np.fromfile(folder / "keys", dtype="<u8"),  # asked for row by row: a plain array is quicker
        }
        if self.record_type.value is not None:
            self._files["values"] = np.memmap(folder / "values", dtype="<i4", mode="r")
        self.field_keys = self.keys = cast(Keys, self._files["keys"].reshape(-1, 1))
        self.documents = np.zeros(count, dtype=np.int64)
        self.starts = np.zeros(1, dtype=np.int64)

    def pixels(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """[rows, side, side, 3]"""
        return np.asarray(self._files["pixels"][np.asarray(rows, dtype=np.int64)])

    def text(self, row: int, field: str = "") -> str:
        """The name of an image: its file, or its place in one."""
        return self.image_names[row]

    @property
    def image_names(self) -> list[str]:
        return (self.folder / "image_names").read_text(encoding="utf-8").split("\n")

    def text_keys(self, row: int) -> set[int]:
        return set(self.keys[row].tolist())

    def tokens(self, row: int, field: str = "") -> Ids:
        raise InputError("The data are images, and text was wanted; take a method for images, or bring text.")

    def lengths(self) -> npt.NDArray[np.int64]:
        """Images have no tokens."""
        return np.zeros((len(self), 1), dtype=np.int64)

    def count_longer(self, tokens: int) -> tuple[int, int]:
        return 0, len(self)


def natural_side(source: Source) -> int | None:
    """The side of images that are all small squares of one size, as those of CIFAR; None for all others."""
    found = open_source(source)
    sides = {pixels.shape[:2] for _, _, pixels in _few(found)}
    if not sides:
        raise InputError(f"{found.where}: none of the first {LOOKED_AT} files is an image.")
    (height, width), *others = sides
    return int(height) if not others and height == width and height <= LARGEST_NATURAL else None


def _few(source: ImageSource) -> Any:
    count = len(source.entries)
    chosen = sorted({int(row) for row in np.linspace(0, count - 1, min(LOOKED_AT, count))})
    part = ImageSource(source.where, "", [source.entries[row] for row in chosen])
    return part.pictures(Skipped())


def open_images(source: Source, record_type: str, size: int) -> ImageCorpus:
    """The images of a source for a network of side ``size``; decoded on first use and found again afterwards.

    Images of just that size are kept whole; others are kept as squares a little larger, whose centre is what an
    evaluation looks at.
    """
    found = open_source(source)
    if record_type == LABELLED_IMAGES.name and not found.labelled:
        raise InputError(
            f"{found.where}: the images have no labels; put those of each class into a sub-folder of its name, or "
            "bring labels in the file."
        )
    side = size if natural_side(source) == size else stored_side(size)
    kept_type = LABELLED_IMAGES if found.labelled else IMAGES
    fingerprint = digest(FORMAT, found.content, str(side), kept_type.name)
    folder = cache_folder() / "corpora" / fingerprint
    if not is_whole(folder / "corpus.json", found.where):
        with written_folder(folder, whole="corpus.json") as temporary:
            _build(temporary, found, kept_type, side, fingerprint)
    corpus = ImageCorpus(folder)
    if corpus.skipped:
        say(f"{found.where}: {corpus.skipped}")
    return corpus


def _build(folder: Path, source: ImageSource, record_type: RecordType, side: int, fingerprint: str) -> None:
    names: list[str] = []
    labels: list[str] = []
    keys: list[int] = []
    skipped = Skipped()
    with open(folder / "pixels", "wb") as pixels, bar("reading images", len(source.entries)) as advance:
        for name, label, picture in source.pictures(skipped):
            square: Pixels = squared(picture, side)
            raw = square.tobytes()
            pixels.write(raw)
            names.append(name.replace("\n", " "))
            labels.append((label or "").replace("\n", " "))
            keys.append(int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little"))
            advance(1)
    if not names:
        raise InputError(f"{source.where}: no file is an image. {skipped}.")
    np.array(keys, dtype="<u8").tofile(folder / "keys")
    (folder / "image_names").write_text("\n".join(names), encoding="utf-8")
    if record_type.value is not None:
        classes, numbers = np.unique(labels, return_inverse=True)
        numbers.astype("<i4").tofile(folder / "values")
        (folder / "names").write_text("\n".join(classes.tolist()), encoding="utf-8")
    distinct = len(set(keys))
    counts = ImageCounts(len(names), skipped.count, len(names) - distinct, distinct, 1)
    write_facts(
        folder / "corpus.json",
        {
            "fingerprint": fingerprint,
            "record_type": record_type.name,
            "side": side,
            "counts": asdict(counts),
            "skipped": str(skipped) if skipped.count else "",
        },
    )
