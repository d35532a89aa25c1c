"""Good things that only some probes need, each made at its first use: a classifier, an index, an export, images …

What is made lies in the world of the probes, so the words of a command can name it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

LABELS = ("bakes", "steers", "lands")


def part(name: str) -> Path:
    """The place of one part of the world that ``make_world`` made last."""
    return _made(name, os.environ["PROBE_WORLD"])


@cache
def _made(name: str, world: str) -> Path:
    place = Path(world) / name
    MAKERS[name](Path(world), place)
    return place


def copied(folder: Path, name: str, change: Callable[[Path], Any]) -> None:
    """A copy of a part in the folder of a probe, under the name that it has there, and then changed."""
    shutil.copytree(part(name), folder / name)
    change(folder / name)


def _labelled(world: Path, place: Path) -> None:
    lines = (world / "sentences.txt").read_text(encoding="utf-8").splitlines()
    rows = [f"{line}\t{next(label for label in LABELS if label in line)}\t{row}" for row, line in enumerate(lines)]
    place.write_text("\n".join(["text\tlabel\tyear", *rows]) + "\n", encoding="utf-8")


def _head(world: Path, place: Path) -> None:
    import isotrope

    isotrope.train("head", part("labelled.tsv"), model=world / "tiny", output=world / "head-run")
    shutil.copytree(world / "head-run" / "model", place)


def _index(world: Path, place: Path) -> None:
    import isotrope

    isotrope.index(world / "tiny", part("labelled.tsv"), place, columns=["text"], precision="int8")


def _exported(world: Path, place: Path) -> None:
    import isotrope

    isotrope.export(world / "tiny", place, text=world / "sentences.txt")


def _shards(world: Path, place: Path) -> None:
    import isotrope

    isotrope.encode(world / "tiny", world / "sentences.txt", shards=place, shard_size=16)


def _pixels(count: int = 24, side: int = 16) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(0, 255, (count, side, side, 3), dtype=np.uint8)


def _images(world: Path, place: Path) -> None:
    from PIL import Image

    for row, pixels in enumerate(_pixels()):
        (place / f"class-{row % 2}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / f"class-{row % 2}" / f"{row:02}.png")


def _image_model(world: Path, place: Path) -> None:
    from isotrope.encoders.image_encoder import fresh_image_encoder

    fresh_image_encoder("conv:4@16", None, 0).save(place)


MAKERS: dict[str, Callable[[Path, Path], None]] = {
    "labelled.tsv": _labelled,
    "head": _head,
    "index": _index,
    "exported": _exported,
    "shards": _shards,
    "images": _images,
    "image-model": _image_model,
}
