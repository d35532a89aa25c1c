"""Isotrope: text in, a sentence encoder out.

    encoder = isotrope.load("folder")
    run = isotrope.train("simcse", "sentences.txt", model="folder")
    isotrope.evaluate(run.encoder, suite="sts", data_dir="data").table()

Every command of the command line is a function here, with the same name and the same parameters. Heavy libraries are
imported when they are needed, not here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from isotrope.version import __version__

_VERBS = (
    "check",
    "compare",
    "complete",
    "distil",
    "doctor",
    "encode",
    "evaluate",
    "export",
    "fit_space",
    "index",
    "leaks",
    "links",
    "load",
    "mine",
    "open_index",
    "paraphrase",
    "predict",
    "pretrain",
    "push",
    "serve",
    "train",
)
_CALLABLE_ROOMS = ("methods", "report", "search")  # verbs as well: see isotrope.callable_room
_TYPES = {
    "Encoder": "isotrope.encoders.encoder",
    "InputError": "isotrope.errors",
    "Results": "isotrope.evaluation.results",
    "Run": "isotrope.training.run",
}
_PLACES = {**dict.fromkeys(_VERBS, "isotrope.api"), **_TYPES}
_ROOMS = (
    *("data", "tokens", "lexicon", "views", "encoders", "towers", "objectives", "measures"),
    *("heads", "training", "spaces", "evaluation", "comparison", "serving", *_CALLABLE_ROOMS),
)
__all__ = ["__version__", *_VERBS, *_CALLABLE_ROOMS, *_TYPES]

if TYPE_CHECKING:
    from isotrope.api import check as check
    from isotrope.api import compare as compare
    from isotrope.api import complete as complete
    from isotrope.api import distil as distil
    from isotrope.api import doctor as doctor
    from isotrope.api import encode as encode
    from isotrope.api import evaluate as evaluate
    from isotrope.api import export as export
    from isotrope.api import fit_space as fit_space
    from isotrope.api import index as index
    from isotrope.api import leaks as leaks
    from isotrope.api import links as links
    from isotrope.api import load as load
    from isotrope.api import methods as methods
    from isotrope.api import mine as mine
    from isotrope.api import open_index as open_index
    from isotrope.api import paraphrase as paraphrase
    from isotrope.api import predict as predict
    from isotrope.api import pretrain as pretrain
    from isotrope.api import push as push
    from isotrope.api import report as report
    from isotrope.api import search as search
    from isotrope.api import serve as serve
    from isotrope.api import train as train
    from isotrope.encoders.encoder import Encoder as Encoder
    from isotrope.errors import InputError as InputError
    from isotrope.evaluation.results import Results as Results
    from isotrope.training.run import Run as Run


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"isotrope.{name}")
    raise AttributeError(f"module 'isotrope' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
