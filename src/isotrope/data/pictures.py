"""One image as 8-bit RGB, whatever its file was: grey, with alpha, 16 bit, animated, turned by its camera.

Decoding needs Pillow (the extra ``images``); nothing else here does.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError

Pixels = npt.NDArray[np.uint8]  # [height, width, 3]
SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"))
CENTRE = 0.875  # share of the shorter side that an evaluation looks at, as SimCLR and MoCo do


class NotAnImageError(Exception):
    """A file that cannot be decoded; the sentence says why."""


def pillow() -> Any:
    """Pillow's Image module, or a sentence on how to get it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("Images need the package pillow; pip install 'isotrope[images]'.") from error
    return Image


def decoded(source: bytes | str | os.PathLike[str]) -> Pixels:
    """The pixels of a file, or of its bytes."""
    image_module = pillow()
    try:
        with image_module.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
            return _rgb(image)
    except (OSError, ValueError, SyntaxError, EOFError, image_module.DecompressionBombError) as error:
        raise NotAnImageError(str(error) or type(error).__name__) from error


def _rgb(image: Any) -> Pixels:
    """The first frame, upright; transparent pixels are white, 16 bits become 8."""
    from PIL import ImageOps

    image.seek(0)
    upright = ImageOps.exif_transpose(image)
    if upright.mode.startswith("I") or upright.mode == "F":
        deep = np.asarray(upright, dtype=np.float64)
        scale = 257.0 if deep.max(initial=0) > 255 else 1.0
        return _three(np.clip(deep / scale + 0.5, 0, 255).astype(np.uint8))
    if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
        layered = upright.convert("RGBA")
        white = pillow().new("RGBA", layered.size, (255, 255, 255, 255))
        upright = pillow().alpha_composite(white, layered)
    return np.array(upright.convert("RGB"), dtype=np.uint8)


def from_array(array: Any) -> Pixels:
    """Pixels of an array [height, width], [height, width, 1 | 3 | 4] or [3, height, width]; floats lie in [0, 1]."""
    values = np.asarray(array)
    if values.dtype.kind not in "buif":
        raise InputError(f"An image is an array of numbers; one of {values.dtype} was given.")
    if values.ndim == 3 and values.shape[0] in (1, 3) and values.shape[2] not in (1, 3, 4):
        values = values.transpose(1, 2, 0)
    if values.ndim not in (2, 3) or 0 in values.shape or (values.ndim == 3 and values.shape[2] not in (1, 3, 4)):
        raise InputError(f"An image is an array [height, width, 3]; one of the shape {values.shape} was given.")
    if values.dtype == np.uint16:
        values = (values / 257.0 + 0.5).astype(np.uint8)
    elif np.issubdtype(values.dtype, np.floating):
        if not np.isfinite(values).all() or values.min() < 0 or values.max() > 1:
            raise InputError("Pixels as fractions must lie in [0, 1]; divide by 255, or give uint8.")
        values = (values * 255 + 0.5).astype(np.uint8)
    elif values.dtype != np.uint8:
        if values.min(initial=0) < 0 or values.max(initial=0) > 255:
            raise InputError(f"Pixels of {values.dtype} must lie between 0 and 255; give uint8.")
        values = values.astype(np.uint8)
    if values.ndim == 3 and values.shape[2] == 4:
        alpha = values[..., 3:].astype(np.float32) / 255
        return np.asarray(values[..., :3] * alpha + 255 * (1 - alpha) + 0.5, dtype=np.uint8)
    return _three(values)


def _three(values: npt.NDArray[np.uint8]) -> Pixels:
    grey = values[..., 0] if values.ndim == 3 and values.shape[2] == 1 else values
    return np.ascontiguousarray(np.repeat(grey[..., None], 3, axis=2) if grey.ndim == 2 else grey)


def squared(pixels: Pixels, side: int) -> Pixels:
    """The shorter side becomes ``side``, and the middle square is kept; a square of that side stays as it is."""
    height, width = pixels.shape[:2]
    if (height, width) == (side, side):
        return pixels
    scale = side / min(height, width)
    size = max(round(width * scale), side), max(round(height * scale), side)
    image = pillow().fromarray(pixels).resize(size, pillow().Resampling.BICUBIC)
    left, top = (size[0] - side) // 2, (size[1] - side) // 2
    return np.asarray(image.crop((left, top, left + side, top + side)), dtype=np.uint8)


def seen(pixels: Pixels, side: int) -> Pixels:
    """What an evaluation shows a network of that side: the middle of the image, or all of it where the size fits."""
    if pixels.shape[:2] == (side, side):
        return pixels
    stored = stored_side(side)
    edge = (stored - side) // 2
    return np.ascontiguousarray(squared(pixels, stored)[edge : edge + side, edge : edge + side])


def stored_side(side: int) -> int:
    """The side at which images of other sizes are kept: the network's own is the centre of it."""
    return round(side / CENTRE)


def is_picture(path: str | os.PathLike[str]) -> bool:
    return Path(path).suffix.lower() in SUFFIXES
