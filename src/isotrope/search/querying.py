"""``isotrope search``: an index and queries, or a model, a file and queries."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.data.tables import check_file, check_source
from isotrope.encoders.cut_texts import counting_cut
from isotrope.errors import InputError
from isotrope.search.cut_rows import say_cut
from isotrope.search.hits import Hit
from isotrope.search.index_place import is_index
from isotrope.search.opened_index import SearchIndex, check_query, open_index
from isotrope.search.passages import check_passages

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

Place = str | os.PathLike[str]


def answer(
    subject: Encoder | Place,
    words: Sequence[Any],
    *,
    top: int,
    mode: str,
    where: str | None,
    columns: Sequence[str] | None,
    truncate_dim: int | None,
    stale: bool,
    rerank: int,
    passages: int | None,
) -> list[Hit] | list[list[Hit]]:
    """Hits of the only query, or of each of several."""
    named = isinstance(subject, str | os.PathLike)
    first = named and is_index(subject)  # type: ignore[arg-type]
    if not first and len(words) < 2:
        raise InputError(
            f"{subject if named else 'the encoder'}: no index is here; give an index and a query, or a model, a file "
            "of text and a query. `isotrope index MODEL TEXT --output PLACE` builds an index."
        )
    if first and not words:
        raise InputError("search needs a query.")
    given = words if first else words[1:]
    alone = len(given) == 1 and isinstance(given[0], str)
    queries = list(given) if len(given) != 1 or isinstance(given[0], str) else list(given[0])
    check_query(queries, top, mode, rerank)
    passages = check_passages(passages)
    if first:
        fixed = {"columns": columns, "truncate_dim": truncate_dim, "passages": passages}
        for name in (name for name, value in fixed.items() if value is not None):
            raise InputError(f"{name} is fixed in an index; leave it out.", name)
        with counting_cut() as counted, open_index(str(subject), stale=stale) as index:
            say_cut(index.manifest)
            found = index.search(queries, top, mode, where, rerank)
        counted.say()
    else:
        ask = partial(SearchIndex.search, queries=queries, top=top, mode=mode, where=where, rerank=rerank)
        found = _of_file(subject, check_source(words[0]), ask, columns, truncate_dim, passages)
    return found[0] if alone else found


def read_queries(file: Place) -> list[str]:
    """The queries of a file, one a line or row; empty ones are left out."""
    source = check_file(file)
    found = [record.texts[0] for record in read(source, record_type_named("sentences")) if record.texts[0]]
    if not found:
        raise InputError(f"{source}: no query is in the file.", "queries")
    return found


def _of_file(
    subject: Encoder | Place,
    file: Path,
    ask: Callable[[SearchIndex], list[list[Hit]]],
    columns: Sequence[str] | None,
    truncate_dim: int | None,
    passages: int | None,
) -> list[list[Hit]]:
    from isotrope.encoders.encoder import Encoder
    from isotrope.encoders.loading import load
    from isotrope.encoders.truncation import truncated
    from isotrope.search.kept_index import kept_index

    encoder = subject if isinstance(subject, Encoder) else load(subject)
    with counting_cut():  # what is cut while it is indexed is counted in the index
        index = kept_index(truncated(encoder, truncate_dim), file, columns, passages=passages)
    with index, counting_cut() as counted:
        say_cut(index.manifest)
        found = ask(index)
    counted.say()
    return found
