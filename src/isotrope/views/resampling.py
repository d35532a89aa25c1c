"""Resizing and blurring a whole batch at once, each image by its own matrices.

    Y_i = R_i · X_i · C_iᵀ        R_i [out, height], C_i [out, width]

A crop that is resized, and a Gaussian blur, are linear and separable: rows and columns are mixed by one small matrix
each. Two batched products do all images together, on any device, with no loop and no grid; a matrix product is what
processors do best. Weights are those of Pillow and torchvision (bilinear with antialiasing).
"""

from __future__ import annotations

import torch
from torch import Tensor


def crop_weights(starts: Tensor, lengths: Tensor, side: int, out: int) -> Tensor:
    """[n, out, side]: the pixels from ``starts`` on, ``lengths`` of them, resized to ``out``.

    A pixel of the result is the mean of those around its centre, by a triangle that is as wide as a source pixel or,
    where the crop shrinks, as a pixel of the result. Outside the crop nothing counts.
    """
    scale = (lengths / out).view(-1, 1, 1)
    places = torch.arange(out, device=starts.device, dtype=torch.float32).view(1, -1, 1) + 0.5
    pixels = torch.arange(side, device=starts.device, dtype=torch.float32).view(1, 1, -1)
    first, last = starts.view(-1, 1, 1), (starts + lengths).view(-1, 1, 1)
    centres = first + places * scale
    weights = (1 - (pixels + 0.5 - centres).abs() / scale.clamp(min=1.0)).clamp(min=0.0)
    weights = weights * ((pixels >= first) & (pixels < last))
    return weights / weights.sum(dim=2, keepdim=True)


def blur_weights(deviations: Tensor, side: int, radius: int) -> Tensor:
    """[n, side, side]: a Gaussian of ``2·radius + 1`` pixels; the border is mirrored. A deviation of 0 leaves as is."""
    radius = min(radius, side - 1)
    offsets = torch.arange(-radius, radius + 1, device=deviations.device)
    spread = deviations.clamp(min=1e-3).view(-1, 1)
    kernel = torch.exp(-0.5 * (offsets / spread) ** 2)
    kernel = kernel / kernel.sum(dim=1, keepdim=True)  # [n, 2·radius + 1]
    places = torch.arange(side, device=deviations.device).view(-1, 1) + offsets  # [side, 2·radius + 1]
    places = places.abs()
    places = torch.where(places >= side, 2 * (side - 1) - places, places)
    weights = kernel.new_zeros(len(kernel), side, side)
    return weights.scatter_add_(
        2, places.expand(len(kernel), -1, -1), kernel.unsqueeze(1).expand(-1, side, -1).contiguous()
    )


def mixed(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """[n, 3, out, out]: R · X · Cᵀ of each channel."""
    count, channels, height, width = images.shape
    first = torch.bmm(images.reshape(count, channels * height, width), columns.transpose(1, 2))
    first = first.view(count, channels, height, -1)
    return torch.matmul(rows.unsqueeze(1), first)
