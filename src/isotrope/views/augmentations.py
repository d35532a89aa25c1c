"""The published augmentations of images, drawn on the host and applied to a whole batch on its device.

    crop:LOW:HIGH               a part of that share of the area, 3/4 to 4/3 in shape, resized to the network's side
    flip[:P]                    left and right
    jitter:B:C:S:H[:P]          brightness, contrast, saturation, hue, in an order of each image's own
    gray[:P]                    no colour
    blur[:P]                    Gaussian, σ from 0.1 to 2, a tenth of the side

A comma is "then". Everything random is drawn by ``draw`` from a generator that is keyed by seed, step and process;
``apply`` draws nothing, so a resumed run, or the second pass of a chunk, sees the same views. Names for whole papers
are in ``PRESETS``; the order is theirs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.errors import InputError, nearest
from isotrope.views.colours import grey_of, jittered
from isotrope.views.resampling import blur_weights, crop_weights, mixed

Floats = npt.NDArray[np.float32]
Draws = Mapping[str, Tensor]  # one row an image
NONE = "none"
TRIES = 10  # at a crop that fits into the image, as torchvision
RATIOS = (3 / 4, 4 / 3)
PRESETS = {
    # SimCLR, appendix A and B.9: ImageNet, and CIFAR with half the colours and no blur
    "simclr-large": "crop:0.08:1,flip,jitter:0.8:0.8:0.8:0.2:0.8,gray:0.2,blur:0.5",
    "simclr-small": "crop:0.08:1,flip,jitter:0.4:0.4:0.4:0.1:0.8,gray:0.2",
    "moco-v1": "crop:0.2:1,gray:0.2,jitter:0.4:0.4:0.4:0.4:1,flip",
    "moco-v2": "crop:0.2:1,jitter:0.4:0.4:0.4:0.1:0.8,gray:0.2,blur:0.5,flip",
    # MoCo's notebook for CIFAR-10: torchvision's default crop, from 0.08 on
    "moco-v2-small": "crop:0.08:1,flip,jitter:0.4:0.4:0.4:0.1:0.8,gray:0.2",
    "supcon-small": "crop:0.2:1,flip,jitter:0.4:0.4:0.4:0.1:0.8,gray:0.2",
    "crop-flip": "crop:0.2:1,flip",
}


class Augmentation(ABC):
    """One step: what it draws for each image, and what it does with it."""

    @abstractmethod
    def draw(self, count: int, side: int, rng: np.random.Generator) -> dict[str, npt.NDArray[np.float32]]:
        """A row of numbers for each of ``count`` images of that side."""

    @abstractmethod
    def apply(self, images: Tensor, draws: Draws, size: int) -> Tensor:
        """Images [n, 3, side, side] in [0, 1] → the same, or of another side."""


@dataclass(frozen=True)
class Crop(Augmentation):
    low: float
    high: float = 1.0

    def draw(self, count: int, side: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Boxes as torchvision draws them: ten tries, then the whole (a square always fits the shapes asked for)."""
        area = side * side * rng.uniform(self.low, self.high, (count, TRIES))
        ratio = np.exp(rng.uniform(math.log(RATIOS[0]), math.log(RATIOS[1]), (count, TRIES)))
        width, height = np.rint(np.sqrt(area * ratio)), np.rint(np.sqrt(area / ratio))
        fits = (width > 0) & (width <= side) & (height > 0) & (height <= side)
        chosen = fits.argmax(axis=1)
        rows = np.arange(count)
        found = fits.any(axis=1)
        w, h = (np.where(found, sizes[rows, chosen], side) for sizes in (width, height))
        dice = rng.random((count, 2))
        left, top = np.floor(dice[:, 0] * (side - w + 1)), np.floor(dice[:, 1] * (side - h + 1))
        return {"box": np.stack([top, left, h, w], axis=1).astype(np.float32)}

    def apply(self, images: Tensor, draws: Draws, size: int) -> Tensor:
        top, left, height, width = draws["box"].unbind(dim=1)
        side = images.shape[-1]
        return mixed(images, crop_weights(top, height, side, size), crop_weights(left, width, side, size))


@dataclass(frozen=True)
class Flip(Augmentation):
    share: float = 0.5

    def draw(self, count: int, side: int, rng: np.random.Generator) -> dict[str, Floats]:
        return {"flipped": (rng.random(count) < self.share).astype(np.float32)}

    def apply(self, images: Tensor, draws: Draws, size: int) -> Tensor:
        return torch.where(draws["flipped"].view(-1, 1, 1, 1) > 0, images.flip(-1), images)


@dataclass(frozen=True)
class Jitter(Augmentation):
    brightness: float
    contrast: float
    saturation: float
    hue: float
    share: float = 0.8

    def draw(self, count: int, side: int, rng: np.random.Generator) -> dict[str, Floats]:
        strengths = np.array([self.brightness, self.contrast, self.saturation, self.hue])
        middle = np.array([1.0, 1.0, 1.0, 0.0])
        low = np.maximum(middle - strengths, [0.0, 0.0, 0.0, -0.5])
        drawn = rng.uniform(low, middle + strengths, (count, 4))
        factors = np.where(rng.random((count, 1)) < self.share, drawn, middle)
        order = rng.permuted(np.tile(np.arange(4), (count, 1)), axis=1)
        return {"factors": factors.astype(np.float32), "order": order.astype(np.float32)}

    def apply(self, images: Tensor, draws: Draws, size: int) -> Tensor:
        return jittered(images, draws["factors"], draws["order"])


@dataclass(frozen=True)
class Gray(Augmentation):
    share: float = 0.2

    def draw(self, count: int, side: int, rng: np.random.Generator) -> dict[str, Floats]:
        return {"gray": (rng.random(count) < self.share).astype(np.float32)}

    def apply(self, images: Tensor, draws: Draws, size: int) -> Tensor:
        return torch.where(draws["gray"].view(-1, 1, 1, 1) > 0, grey_of(images), images)


@dataclass(frozen=True)
class Blur(Augmentation):
    share: float = 0.5

    def draw(self, count: int, side: int, rng: np.random.Generator) -> dict[str, Floats]:
        deviations = rng.uniform(0.1, 2.0, count) * (rng.random(count) < self.share)
        return {"deviation": deviations.astype(np.float32)}

    def apply(self, images: Tensor, draws: Draws, size: int) -> Tensor:
        weights = blur_weights(draws["deviation"], images.shape[-1], max(images.shape[-1] // 20, 1))
        return mixed(images, weights, weights)


STEPS: dict[str, tuple[type[Augmentation], int, int]] = {  # the class, and how few and how many numbers it takes
    "crop": (Crop, 1, 2),
    "flip": (Flip, 0, 1),
    "jitter": (Jitter, 4, 5),
    "gray": (Gray, 0, 1),
    "blur": (Blur, 0, 1),
}


def parse_augmentations(text: str) -> tuple[Augmentation, ...]:
    """The steps of a preset, or of a list of them; "none" has none."""
    written = PRESETS.get(text.strip().lower(), text.strip().lower())
    return () if written == NONE else tuple(_step(part.strip()) for part in written.split(","))


def _step(text: str) -> Augmentation:
    name, *numbers = text.split(":")
    if name not in STEPS:
        raise InputError(f"Unknown augmentation '{name}'{nearest(name, [*STEPS, *PRESETS])}", setting="augmentations")
    made, fewest, most = STEPS[name]
    try:
        values = [float(number) for number in numbers]
    except ValueError as error:
        raise InputError(
            f"augmentations: '{text}' has something that is no number.", setting="augmentations"
        ) from error
    if not fewest <= len(values) <= most:
        raise InputError(f"augmentations: {name} takes {fewest} to {most} numbers; '{text}' was given.")
    limits = [
        0.5 if name == "jitter" and place == 3 else 10.0 if name == "jitter" and place < 3 else 1.0
        for place in range(most)
    ]
    for value, limit in zip(values, limits, strict=False):
        if not 0 <= value <= limit:
            raise InputError(f"augmentations: the numbers of {name} lie between 0 and {limit:g}; '{text}' was given.")
    if name == "crop" and (values[0] <= 0 or values[0] > (values[1] if len(values) > 1 else 1.0)):
        raise InputError(f"augmentations: crop takes a lowest share above 0, then the highest; '{text}' was given.")
    return made(*values)


def draw_all(
    steps: Sequence[Augmentation], count: int, side: int, rng: np.random.Generator
) -> tuple[dict[str, Tensor], ...]:
    """What every step needs for ``count`` images."""
    drawn = (step.draw(count, side, rng) for step in steps)
    return tuple({name: torch.from_numpy(values) for name, values in one.items()} for one in drawn)
