"""Isotrope: text in, a sentence encoder out.

    encoder = isotrope.load("folder")
    run = isotrope.train("simcse", "sentences.txt", model="folder")
    isotrope.evaluate(run.encoder, suite="sts", data_dir="data").table()

Heavy libraries are imported when they are needed, not here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from isotrope.version import __version__

_PLACES = {
    "load": "isotrope.api",
    "train": "isotrope.api",
    "pretrain": "isotrope.api",
    "evaluate": "isotrope.api",
    "fit_space": "isotrope.api",
    "compare": "isotrope.comparison.compare",
    "mine": "isotrope.search.mining",
    "Encoder": "isotrope.encoders.encoder",
    "InputError": "isotrope.errors",
}
_ROOMS = (
    "data",
    "views",
    "encoders",
    "objectives",
    "methods",
    "training",
    "spaces",
    "evaluation",
    "search",
    "report",
    "comparison",
)
__all__ = ["__version__", "methods", "report", *_PLACES]

if TYPE_CHECKING:
    from isotrope import methods as methods
    from isotrope import report as report
    from isotrope.api import evaluate as evaluate
    from isotrope.api import fit_space as fit_space
    from isotrope.api import load as load
    from isotrope.api import pretrain as pretrain
    from isotrope.api import train as train
    from isotrope.comparison.compare import compare as compare
    from isotrope.encoders.encoder import Encoder as Encoder
    from isotrope.errors import InputError as InputError
    from isotrope.search.mining import mine as mine


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"isotrope.{name}")
    raise AttributeError(f"module 'isotrope' has no attribute '{name}'")
