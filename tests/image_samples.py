"""Small images for tests: coloured shapes of a few classes, as an .npz, a folder or arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

CLASSES = ("dots", "rows", "columns")


def shapes(count: int = 90, side: int = 16, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """[n, side, side, 3] uint8 and labels: noise, horizontal and vertical stripes, in random colours and phases."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    places = np.arange(side)
    found = np.empty((count, side, side, 3), dtype=np.uint8)
    for row, label in enumerate(labels):
        colour = rng.uniform(80, 255, 3)
        wave = 0.5 + 0.5 * np.sin(places * rng.uniform(1.2, 2.2) + rng.uniform(0, 6))
        pattern = {
            0: rng.random((side, side)),
            1: np.tile(wave[:, None], (1, side)),
            2: np.tile(wave[None, :], (side, 1)),
        }[int(label)]
        noisy = pattern[..., None] * colour + rng.normal(0, 12, (side, side, 3))
        found[row] = np.clip(noisy, 0, 255).astype(np.uint8)
    return found, labels


@pytest.fixture(scope="session")
def image_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """90 labelled images of three classes, 16 pixels a side."""
    path = tmp_path_factory.mktemp("images") / "shapes.npz"
    images, labels = shapes()
    np.savez(path, images=images, labels=labels, classes=np.array(CLASSES))
    return path


@pytest.fixture(scope="session")
def image_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 30 of them as .png, a sub-folder a class."""
    image_module = pytest.importorskip("PIL.Image", reason="images are decoded by Pillow")
    folder = tmp_path_factory.mktemp("folder") / "images"
    images, labels = shapes(30)
    for row, (pixels, label) in enumerate(zip(images, labels, strict=True)):
        place = folder / CLASSES[label]
        place.mkdir(parents=True, exist_ok=True)
        image_module.fromarray(pixels).save(place / f"{row:03}.png")
    return folder
