"""Verbs that find: index, open_index, search, mine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isotrope.api.arguments import Place, holds_images, loaded
from isotrope.data.tables import check_file, check_source
from isotrope.errors import InputError, check_seed
from isotrope.files import check_overwrite

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder
    from isotrope.search.hits import Hit
    from isotrope.search.index_report import Indexed
    from isotrope.search.mining import Mined
    from isotrope.search.opened_index import SearchIndex


def index(
    model: Encoder | Place,
    text: Place | Sequence[Place] = (),
    output: Place | None = None,
    *,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    id_column: str | None = None,
    precision: str = "float32",
    dimensions: int | None = None,
    passages: int | None = None,
    tokens: bool = False,
    stemmer: str = "auto",
    update: bool = False,
    add: bool = False,
    delete: str | None = None,
) -> Indexed:
    """Build an index of text files, or of folders of documents, that ``search`` finds rows in, by vectors and by words.

    ``output``: a folder (exact search, memory-mapped), ``milvus:FILE`` (Milvus Lite) or ``http://HOST:PORT`` (a Milvus
    server). ``columns`` hold the text (several are joined); the other columns of a table are kept for filters and hits,
    or those that ``keep`` names. ``precision`` int8 or binary searches by codes and re-scores the best by the float
    vectors; ``dimensions`` keeps the leading ones; the answer says what either costs. ``passages`` splits texts into
    passages of at most so many words (80 suits `builtin`), of which a search finds the best one of each text; of
    several ``columns`` the last is split, and the others stand before each. ``tokens`` keeps the states of all tokens
    in a folder, so that ``rerank`` need not read the texts. ``stemmer``: words are compared by their stems (english) or
    as they are (none); auto takes the stems where the text is English. A build that was stopped goes on by the same
    call. Over an index that is there: ``update`` makes it one of exactly this text and encodes only what is new,
    ``add`` adds rows (one whose ``id_column`` is known replaces it), ``delete`` takes out the rows of a filter such as
    "year < 2000", and then ``text`` may be empty.
    """
    if output is None:
        raise InputError("index needs a place to write to: a folder, milvus:FILE or http://HOST:PORT.", "output")
    files = [text] if isinstance(text, str | os.PathLike) else list(text)
    for file in files:
        check_source(file)
    from isotrope.search.index_making import make_index

    return make_index(
        model,
        files,
        output,
        columns=columns,
        keep=keep,
        id_column=id_column,
        precision=precision,
        dimensions=dimensions,
        passages=passages,
        tokens=tokens,
        stemmer=stemmer,
        update=update,
        add=add,
        delete=delete,
    )


def open_index(place: Place, encoder: Encoder | None = None, *, stale: bool = False) -> SearchIndex:
    """Open an index for many queries; the model is loaded at the first one that needs it.

    ``encoder``: the model that made it, where it is in memory already. ``stale``: open it although its text changed.
    """
    from isotrope.search.opened_index import open_index as opened

    return opened(place, encoder, stale=stale)


def search(
    encoder: Encoder | Place,
    *words: Any,
    top: int = 10,
    mode: str = "hybrid",
    where: str | None = None,
    columns: Sequence[str] | None = None,
    truncate_dim: int | None = None,
    stale: bool = False,
    rerank: int = 0,
    passages: int | None = None,
    queries: Place | None = None,
) -> list[Hit] | list[list[Hit]]:
    """The ``top`` rows that answer a query: ``search(index, query)``, or ``search(model, file, query)``.

    The first is an index that ``index`` made. The second keeps an index next to the file, one for each model; a file
    that has changed is indexed again, and only its new lines are encoded. A list of queries, or several, give a list of
    hits for each, and so does a file of ``queries``, one a line. ``mode`` is hybrid, dense or lexical; ``where``
    filters by kept columns, such as "year > 2020".
    ``rerank`` (at least ``top``; 30 is a good start) orders so many of the first rows anew by their tokens: each of
    them is read by the model once more. ``columns``, ``truncate_dim`` and ``passages`` (as in ``index``) belong to the
    second form; ``stale`` to the first: search it although its text has changed. Images are searched by the file of
    one, with a model that reads images.
    """
    if queries is not None:
        from isotrope.search.querying import read_queries

        words = (*words, read_queries(queries))
    if len(words) == 2 and isinstance(words[0], str | os.PathLike) and holds_images(words[0]):
        from isotrope.data.image_sources import check_images
        from isotrope.search.picture_search import search_images

        check_images(words[0])
        return search_images(loaded(encoder, truncate_dim=truncate_dim), words[0], words[1], top)
    from isotrope.search.querying import answer

    return answer(
        encoder,
        words,
        top=top,
        mode=mode,
        where=where,
        columns=columns,
        truncate_dim=truncate_dim,
        stale=stale,
        rerank=rerank,
        passages=passages,
    )


def mine(
    pairs: Place | Sequence[Any],
    model: Place | Encoder = "builtin",
    output: Place | None = None,
    *,
    first: int | None = None,
    last: int = 50,
    margin: float | None = None,
    fill: bool = False,
    seed: int = 42,
    columns: Sequence[str] | None = None,
) -> Mined:
    """Find one hard negative for each pair among the positives of all pairs, by cosine under ``model``.

    Candidates of an anchor are ranked from the nearest; the anchor itself, its positives and the anchors it is a
    positive of are excluded. One of the ranks ``first`` to ``last`` is drawn at random. ``margin`` is the minimum gap
    between positive and negative cosine; with it ``first`` is 1 unless given, without it 10. A pair without a hard
    negative is left out; with ``fill`` it has a random one. With ``output`` (.tsv) the triples are written.
    """
    if isinstance(pairs, str | os.PathLike):
        check_file(pairs)
    check_seed(seed)
    check_overwrite(output, pairs, model)
    from isotrope.search.mining import mine as find_negatives

    return find_negatives(
        pairs, model, output, first=first, last=last, margin=margin, fill=fill, seed=seed, columns=columns
    )
