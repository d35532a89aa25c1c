"""The service, opened: its models, and the index that one of them made."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.progress import say
from isotrope.serving.served_model import ServedModel, open_models
from isotrope.serving.service import Index, Service
from isotrope.serving.service_limits import CPU_TOKENS, GPU_TOKENS, Limits

Place = str | os.PathLike[str]


def open_service(
    models: Sequence[Encoder | Place],
    index: Place | None = None,
    batch_tokens: int | None = None,
    limits: Mapping[str, Any] | None = None,
) -> Service:
    """Load the models, then open the index with the one that made it."""
    opened = open_models(models)
    on_cpu = opened[0].encoder.device.type == "cpu"
    tokens = batch_tokens or (CPU_TOKENS if on_cpu else GPU_TOKENS)
    found = None if index is None else open_index_of(index, opened)
    return Service(opened, Limits(batch_tokens=tokens, **dict(limits or {})), found)


def open_index_of(place: Place, models: Sequence[ServedModel]) -> Index:
    """The index with the first model that fits it; where none does, the sentence about the first."""
    from isotrope.search.cut_rows import say_cut
    from isotrope.search.opened_index import open_index

    refused: InputError | None = None
    for model in models:
        try:
            index = open_index(place, model.encoder, stale=True)
        except InputError as error:
            refused = refused or error
            continue
        say_cut(index.manifest)
        for source in index.manifest.changed_sources():  # somebody edits the text; whoever starts the server is told
            say(f"warning: {source.path} has changed since it was indexed; the index answers as it is.")
        return index
    assert refused is not None
    raise refused
