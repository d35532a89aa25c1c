"""What ``train DATA`` does where no method is named: a finished encoder is adapted by the method that fits the data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from isotrope.data.sources import find_records, fits
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.progress import say
from isotrope.training.adapting import ORDER, advised_method, known_finished
from isotrope.training.plan import DEFAULT_MODEL, Place

ADVISED_MODEL = "builtin"


def advise(data: Any, columns: Sequence[str] | None, model: Place | Encoder) -> tuple[str, Place | Encoder]:
    """The method and the start. A raw language model is refused: which method makes an encoder of it must be said."""
    start = ADVISED_MODEL if isinstance(model, str) and model == DEFAULT_MODEL else model
    if not known_finished(start):
        raise InputError(f"{start} is no finished sentence encoder; name the method that is to make one of it.")
    found = _record_type(data, columns)
    method = advised_method([found])
    say(f"method: {method}, the advised one for {found}; start: {start if isinstance(start, str) else 'as given'}")
    return method, start


def _record_type(data: Any, columns: Sequence[str] | None) -> str:
    if columns is None and isinstance(data, str | os.PathLike):
        return next((name for name in ORDER if fits(data, name)), ORDER[-1])
    return find_records(data, ORDER, columns, split=False).record_type.name
