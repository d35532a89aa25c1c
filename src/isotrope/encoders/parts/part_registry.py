"""Every saved part, found by its file being in this folder."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from isotrope.encoders import parts
from isotrope.encoders.parts.part import KNOWN, Part


def known_parts() -> dict[str, type[Part]]:
    """Each part by its name in modules.json: those of this folder, and others whose class was imported."""
    _import_folder()
    return KNOWN


@cache
def _import_folder() -> None:
    for module in pkgutil.iter_modules(parts.__path__):
        importlib.import_module(f"{parts.__name__}.{module.name}")
