"""Colours of a whole batch: brightness, contrast, saturation, hue, grey; images are [n, 3, height, width] in [0, 1].

    brightness, contrast, saturation    x ← clip(f·x + (1 − f)·r)      r = 0, the mean grey of the image, its grey
    hue                                 the hue of HSV turns by δ (1 is a full turn)

Definitions and order of clipping are torchvision's.
"""

from __future__ import annotations

import torch
from torch import Tensor

LUMA = (0.2989, 0.587, 0.114)
BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)


def grey_of(images: Tensor) -> Tensor:
    """[n, 1, height, width]"""
    red, green, blue = images.unbind(dim=1)
    return (LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue).unsqueeze(1)


def blended(images: Tensor, factors: Tensor, kinds: Tensor) -> Tensor:
    """One of the first three, for each image its own: ``factors`` [n] and ``kinds`` [n] say which and how much."""
    grey = grey_of(images)
    shape = (-1, 1, 1, 1)
    level = grey.mean(dim=(2, 3), keepdim=True)
    reference = grey * (kinds == SATURATION).view(shape) + level * (kinds == CONTRAST).view(shape)
    return torch.lerp(reference, images, factors.view(shape)).clamp_(0, 1)


def turned(images: Tensor, shifts: Tensor) -> Tensor:
    """The hue of each image turned by its ``shifts`` [n]."""
    high, low = images.amax(dim=1), images.amin(dim=1)
    chroma = high - low
    red, green, blue = images.unbind(dim=1)
    safe = torch.where(chroma == 0, torch.ones_like(chroma), chroma)
    sixth = torch.where(
        high == red,
        (green - blue) / safe,
        torch.where(high == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    sixth = sixth + 6 * shifts.view(-1, 1, 1)
    # f(k) = v − c · clip(min(k, 4 − k), 0, 1), k = (n + h/60°) mod 6; n is 5, 3, 1 for red, green, blue
    parts = ((sixth + offset) % 6 for offset in (5, 3, 1))
    return torch.stack([high - chroma * torch.minimum(k, 4 - k).clamp_(0, 1) for k in parts], dim=1)


def jittered(images: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """``factors`` [n, 4] of brightness, contrast, saturation and hue (a shift); ``order`` [n, 4] says which of them
    comes first for each image. A factor of 1 (a shift of 0) changes nothing."""
    order = order.long()
    shifts = factors[:, HUE]
    plain = torch.cat([factors[:, :HUE], torch.ones_like(factors[:, HUE:])], dim=1)
    for turn in range(4):
        kinds = order[:, turn]
        turns = kinds == HUE
        blend = blended(images, plain.gather(1, kinds.unsqueeze(1)).squeeze(1), kinds)
        if images.device.type == "cpu":
            rows = turns.nonzero().squeeze(1)
            images = blend.index_copy(0, rows, turned(images[rows], shifts[rows])) if len(rows) else blend
        else:  # all of them: what they are is known to the device alone, and nobody waits for it
            images = torch.where(turns.view(-1, 1, 1, 1), turned(images, shifts), blend)
    return images
