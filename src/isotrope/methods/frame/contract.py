"""What a method must hand on from step to step, checked where it does: a slip in a new file is one plain sentence.

A wrong type would fail far from the file that made it, and a weight under another name than its term's would not fail
at all: the term would count once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

from torch import Tensor

from isotrope.encoders.pooling import parse
from isotrope.errors import InputError, nearest
from isotrope.methods.frame.batch import View
from isotrope.methods.frame.method import FAMILIES, Method
from isotrope.methods.frame.settings import Settings

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def check_class(method: type[Method[Any]]) -> None:
    """Refuse a card that no command could use, and a method that does not name its settings."""
    card = method.card
    where = method.__qualname__
    if not NAME.fullmatch(card.name):
        raise InputError(f"{where}: the card's name '{card.name}' must be small letters and digits, joined by hyphens.")
    if card.family not in FAMILIES:
        raise InputError(f"{where}: unknown family '{card.family}' on the card{nearest(card.family, FAMILIES)}")
    if card.read_out is not None:
        parse(card.read_out)
    for base in getattr(method, "__orig_bases__", ()):
        for named in get_args(base):
            if isinstance(named, type) and issubclass(named, Settings) and not issubclass(method.Settings, named):
                raise InputError(f"{where} takes {named.__name__}; add the line `Settings = {named.__name__}` to it.")


def check_views(method: Method[Any], views: Any) -> None:
    """``views`` gives rows that can be cut and moved, by name."""
    if not isinstance(views, Mapping):
        raise InputError(f"{_step(method, 'views')} must return a dictionary of views, not a {type(views).__name__}.")
    for name, view in views.items():
        if not all(hasattr(view, member) for member in ("to", "rows", "__len__")):
            raise InputError(
                f"{_step(method, 'views')} returned a {type(view).__name__} as '{name}', which is no view; "
                "self.frame makes one of token ids, Numbers.of one of numbers."
            )


def check_shared(method: Method[Any], shared: Mapping[str, View]) -> None:
    """An auxiliary loss needs one of the views that the method says it shares."""
    if not shared:
        named = ", ".join(method.shared_views)
        raise InputError(f"{_step(method, 'views')} returned none of its shared_views ({named}).")


def check_representations(method: Method[Any], found: Any, records: int) -> None:
    """``represent`` gives tensors, by name, with as many rows for each record, but for those named ``ragged``."""
    if not isinstance(found, Mapping) or not all(isinstance(each, Tensor) for each in found.values()):
        raise InputError(f"{_step(method, 'represent')} must return a dictionary of tensors.")
    for name, tensor in found.items():
        if name not in method.ragged and (not tensor.dim() or not len(tensor) or len(tensor) % records):
            raise InputError(
                f"{_step(method, 'represent')} returned '{name}' of shape {tuple(tensor.shape)} for {records} records; "
                "each record needs its row, or as many rows as every other one. Where rows are no records, such as "
                "masked tokens, name it in ragged."
            )


def check_terms(method: Method[Any], terms: Any) -> None:
    """``loss`` gives numbers, by name, and no weight belongs to a term that the method never has."""
    if not isinstance(terms, Mapping):
        raise InputError(
            f"{_step(method, 'loss')} must return a dictionary of named terms, such as "
            f"{{'contrastive': …}}, not a {type(terms).__name__}."
        )
    for name, term in terms.items():
        if term.dim():
            raise InputError(
                f"{_step(method, 'loss')} returned '{name}' of shape {tuple(term.shape)}; a term is one number, "
                "such as the mean over anchors."
            )
    known = {*terms, *getattr(method, "terms", ())}
    for name, weight in method.weights().items():
        if weight and name not in known:
            raise InputError(
                f"{_step(method, 'weights')} names '{name}', which is no term of the loss{nearest(name, known)}"
            )


def _step(method: Method[Any], name: str) -> str:
    return f"{method.card.name}: {name}"
