"""Images as a view: pixels as they are stored, and what was drawn for each; augmented on the device, when looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.data.image_corpus import ImageCorpus
from isotrope.tokens.padded import moved
from isotrope.views.augmentations import Augmentation, Draws, draw_all


@dataclass(frozen=True)
class ImageView:
    """``pixels`` uint8 [n, side, side, 3]; ``images()`` are the augmented ones, [n, 3, size, size] in [0, 1]."""

    pixels: Tensor
    steps: tuple[Augmentation, ...]
    draws: tuple[Draws, ...]
    size: int

    def __len__(self) -> int:
        return len(self.pixels)

    def tensors(self) -> list[Tensor]:
        """Pixels, then what was drawn, in a fixed order."""
        return [self.pixels, *(values for one in self.draws for values in one.values())]

    def with_tensors(self, tensors: Sequence[Tensor]) -> ImageView:
        """The same view of others in that order."""
        pixels, *values = tensors
        rest = iter(values)
        return replace(self, pixels=pixels, draws=tuple({name: next(rest) for name in one} for one in self.draws))

    def to(self, device: torch.device) -> ImageView:
        return self.with_tensors([moved(one, device) for one in self.tensors()])

    def rows(self, rows: slice) -> ImageView:
        cut = tuple({name: values[rows] for name, values in one.items()} for one in self.draws)
        return replace(self, pixels=self.pixels[rows], draws=cut)

    @torch.no_grad()
    def images(self) -> Tensor:
        """Float32 whatever the mixed precision: half of it would not keep 256 levels apart."""
        with torch.autocast(self.pixels.device.type, enabled=False):
            images = self.pixels.permute(0, 3, 1, 2).float().div_(255.0).contiguous()
            for step, draws in zip(self.steps, self.draws, strict=True):
                images = step.apply(images, draws, self.size)
            return centred(images, self.size)


def centred(images: Tensor, size: int) -> Tensor:
    """The middle square of side ``size``; images of that side stay as they are."""
    edge = (images.shape[-1] - size) // 2
    return images if edge == 0 else images[:, :, edge : edge + size, edge : edge + size].contiguous()


def augmented(
    corpus: ImageCorpus,
    rows: Sequence[int] | npt.NDArray[np.int64],
    steps: Sequence[tuple[Augmentation, ...]],
    size: int,
    rng: np.random.Generator,
) -> list[ImageView]:
    """One view for each list of steps, all of the same images; no steps: the images as an evaluation sees them."""
    pixels = torch.from_numpy(corpus.pixels(rows))
    return [ImageView(pixels, one, draw_all(one, len(pixels), corpus.side, rng), size) for one in steps]
