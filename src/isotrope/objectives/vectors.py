"""What every objective does first: widen, normalise, and refuse tensors that do not fit together."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from isotrope.errors import InputError


def wide(tensor: Tensor) -> Tensor:
    """Float32 at least: half precision cannot hold exp(20)."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def unit(tensor: Tensor) -> Tensor:
    """Rows of length 1, in float32 at least."""
    return normalize(wide(tensor), dim=-1)


def mean(losses: Tensor) -> Tensor:
    """Mean over the anchors; 0 with a gradient of 0 where there are none, so that an empty batch does no harm."""
    return losses.sum() / max(losses.numel(), 1)


def check_temperature(temperature: float | Tensor) -> None:
    """Refuse a temperature of 0 or below.

    A tensor is a learned temperature, which its own module keeps above 0: to look at it here would make the host wait
    for the device.
    """
    if not isinstance(temperature, Tensor) and not temperature > 0:
        raise InputError(f"temperature must be above 0; {temperature} was given.")


def check_shapes(**given: tuple[Tensor, str]) -> None:
    """Refuse tensors whose axes do not agree: ``check_shapes(anchors=(anchors, "N d"), noise=(noise, "k d"))``.

    An axis of the same name has the same size everywhere; the first tensor that has it says which.
    """
    sizes: dict[str, int] = {}
    for name, (tensor, axes) in given.items():
        names, shape = axes.split(), list(tensor.shape)
        known = {axis: sizes[axis] for axis in names if axis in sizes}
        if len(shape) != len(names) or any(
            sizes.setdefault(axis, size) != size for axis, size in zip(names, shape, strict=True)
        ):
            where = " with " + ", ".join(f"{axis} = {size}" for axis, size in known.items()) if known else ""
            raise InputError(f"{name} must be [{', '.join(names)}]{where}; a tensor of shape {shape} was given.")
