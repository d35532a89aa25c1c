"""``isotrope index``: refuse what cannot work, read the text, load the model, build."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isotrope.encoders.cut_texts import CutTexts, counting_cut
from isotrope.encoders.precision import check_precision
from isotrope.errors import InputError
from isotrope.progress import say
from isotrope.search.cut_rows import say_cut
from isotrope.search.folder_building import build_folder, delete_rows
from isotrope.search.folder_upkeep import check_free
from isotrope.search.index_manifest import read_manifest
from isotrope.search.index_place import IndexPlace, parse_place
from isotrope.search.index_report import Indexed, peak_memory
from isotrope.search.index_request import Changed, Wanted, check_added
from isotrope.search.index_rows import Reading, scan
from isotrope.search.milvus_schema import check_kept
from isotrope.search.passages import check_passages
from isotrope.search.row_filter import read_filter
from isotrope.search.word_stems import AUTO, check_stemmer

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

Place = str | os.PathLike[str]


def make_index(
    model: Place | Encoder,
    text: Sequence[Place],
    output: Place,
    *,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    id_column: str | None = None,
    precision: str = "float32",
    dimensions: int | None = None,
    passages: int | None = None,
    tokens: bool = False,
    stemmer: str = AUTO,
    update: bool = False,
    add: bool = False,
    delete: str | None = None,
) -> Indexed:
    """Build or change the index at ``output``; ``isotrope.index`` says what each parameter means."""
    begun = time.perf_counter()
    place = parse_place(output)
    check_precision(precision)
    passages = check_passages(passages)
    check_stemmer(stemmer)
    if place.engine != "folder":
        check_kept(place, precision, tokens)
    if update and add:
        raise InputError("update and add exclude each other: update leaves only the given rows.", "update")
    changed, wanted, cut, empty = None, None, CutTexts(), 0
    if delete is not None:
        if update:
            raise InputError("delete goes with add or alone; update leaves only the given rows anyway.", "delete")
        _check_deletion(place, delete)
    if text or delete is None:
        if place.engine == "folder":
            check_free(Path(place.target))
        scanned = scan(text, Reading(_named(columns), _named(keep), id_column, passages))
        from isotrope.encoders.encoder import Encoder
        from isotrope.encoders.loading import load
        from isotrope.search.vector_maker import VectorMaker

        encoder = model if isinstance(model, Encoder) else load(model)
        maker = VectorMaker(encoder, None if isinstance(model, Encoder) else _name(model), dimensions)
        if maker.is_cut:
            say(
                f"The leading {maker.dimension} of {maker.facts.width} dimensions are kept: for a model that was "
                "trained with matryoshka, or whose directions are sorted by strength; the table says what it costs."
            )
        action = "update" if update else "add" if add or delete is not None else "new"
        wanted = Wanted(maker, scanned, precision, action, tokens, stemmer)
    if delete is not None:  # after all that can be refused of what comes in place of these rows
        changed = _deleted(place, delete, wanted)
    if wanted is not None:
        with counting_cut() as cut:
            made = _built(place, wanted)
        if cut.cut:
            say_cut(made.manifest)
        made.deleted += 0 if changed is None else changed.deleted
        changed, empty = made, wanted.scanned.empty
    assert changed is not None
    return Indexed(
        place=str(place),
        engine=place.engine,
        rows=changed.manifest.rows,
        encoded=changed.encoded,
        reused=changed.reused,
        replaced=changed.replaced,
        deleted=changed.deleted,
        empty_left_out=empty,
        cut=cut.cut,
        dimension=changed.manifest.dimension,
        precision=changed.manifest.precision,
        stemmer=changed.manifest.stemmer,
        seconds=time.perf_counter() - begun,
        size=_size(place),
        memory=peak_memory(),
        columns=dict(changed.manifest.kinds),
        costs=changed.costs,
    )


def _built(place: IndexPlace, wanted: Wanted) -> Changed:
    if place.engine == "folder":
        return build_folder(Path(place.target), wanted)
    from isotrope.search.milvus_building import build_collection

    return build_collection(place, wanted)


def _check_deletion(place: IndexPlace, where: str) -> None:
    """Refuse what is no index, or no filter over it, before any text is read."""
    if place.engine == "folder":
        read_filter(where, read_manifest(Path(place.target)).kinds)


def _deleted(place: IndexPlace, where: str, wanted: Wanted | None) -> Changed:
    if place.engine == "folder":
        if wanted is not None:
            check_added(place.target, read_manifest(Path(place.target)), wanted)
        return delete_rows(Path(place.target), where)
    from isotrope.search.milvus_building import delete_entities

    return delete_entities(place, where)


def _named(columns: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if columns is None else tuple(columns)


def _name(model: Place) -> str:
    """A folder by its whole path: a query may come from another folder."""
    return str(Path(model).resolve()) if Path(model).is_dir() else str(model)


def _size(place: IndexPlace) -> int | None:
    """Bytes on this machine's disk; None for a server."""
    if place.target.startswith(("http://", "https://")):
        return None
    root = Path(place.target)
    return (
        sum(file.stat().st_size for file in root.rglob("*") if file.is_file()) if root.is_dir() else root.stat().st_size
    )
