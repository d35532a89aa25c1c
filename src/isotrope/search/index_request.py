"""What is to be in an index, what was done to it, and whether it fits the index that is there."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from isotrope.errors import InputError
from isotrope.files import digest
from isotrope.search.column_kinds import agreed
from isotrope.search.index_manifest import Manifest
from isotrope.search.index_report import Cost
from isotrope.search.index_rows import Scanned
from isotrope.search.vector_maker import VectorMaker
from isotrope.search.word_stems import AUTO, chosen_stemmer


@dataclass(frozen=True)
class Wanted:
    """What is to be in the index. ``action``: new, update (exactly these rows) or add (these rows too)."""

    maker: VectorMaker
    scanned: Scanned
    precision: str = "float32"
    action: str = "new"
    tokens: bool = False  # whether token states are kept; an index that has them goes on keeping them
    stemmer: str = AUTO

    def stemmer_over(self, old: Manifest | None) -> str:
        """How words are compared: as in ``old`` where rows are added to it; else as asked for, or as the text is."""
        if old is not None and self.action == "add":
            return old.stemmer
        return chosen_stemmer(self.stemmer, self.scanned.sample)

    def name(self, generation: int) -> str:
        """The same for the same request over the same index."""
        facts = {
            "action": self.action,
            "model": self.maker.facts.fingerprint,
            "dimension": self.maker.dimension,
            "precision": self.precision,
            "reading": asdict(self.scanned.reading),
            "sources": [(source.path, source.digest) for source in self.scanned.sources],
            "over": generation,
            **({"tokens": True} if self.tokens else {}),
            **({"stemmer": self.stemmer} if self.stemmer != AUTO else {}),
        }
        return digest(json.dumps(facts, sort_keys=True))


@dataclass
class Changed:
    """What a build or a deletion did."""

    manifest: Manifest
    encoded: int = 0
    reused: int = 0
    replaced: int = 0
    deleted: int = 0
    costs: tuple[Cost, ...] = ()


def check_change(where: str, old: Manifest | None, wanted: Wanted) -> None:
    """Refuse what does not fit the index that is there."""
    if old is None:
        if wanted.action != "new":
            raise InputError(f"{where}: no index is here to {wanted.action}; leave {wanted.action} out to build one.")
        return
    old.check_model(wanted.maker.facts.fingerprint, where)
    if (old.dimension, old.precision) != (wanted.maker.dimension, wanted.precision):
        raise InputError(
            f"{where}: the index keeps {old.dimension} dimensions in {old.precision}; it takes no others "
            f"({wanted.maker.dimension} in {wanted.precision} were asked for). Choose another output."
        )
    if wanted.tokens and not old.tokens:
        raise InputError(f"{where}: the index was built without tokens; choose another output.", "tokens")
    if wanted.action != "update" and wanted.stemmer not in (AUTO, old.stemmer):
        raise InputError(
            f"{where}: the index has the stemmer {old.stemmer}, not {wanted.stemmer}; change it with update, or choose "
            "another output.",
            "stemmer",
        )
    if wanted.action == "new" and not _same_text(old, wanted.scanned):
        raise InputError(
            f"{where}: an index of other text is here already; with update it becomes one of this text, with add these "
            "rows come to those that are there; or choose another output.",
            "update",
        )
    if wanted.action == "new":
        return
    if old.reading.passages != wanted.scanned.reading.passages:
        size = old.reading.passages
        raise InputError(
            f"{where}: the index is one of {'whole texts' if size is None else f'passages of {size} words'}; "
            f"{wanted.action} rows with the same passages, or choose another output.",
            "passages",
        )
    if old.reading.id_column != wanted.scanned.reading.id_column:
        raise InputError(
            f"{where}: rows of the index are named by {old.reading.id_column or 'no column'}; {wanted.action} rows "
            "with the same id_column, or choose another output.",
            "id_column",
        )


def check_added(where: str, old: Manifest, wanted: Wanted) -> None:
    """Refuse rows that do not fit those that are there."""
    check_change(where, old, wanted)
    agreed(old.kinds, wanted.scanned.kinds, wanted.scanned.empty_columns, where)


def _same_text(old: Manifest, scanned: Scanned) -> bool:
    known = [(source.digest, source.rows) for source in old.sources]
    given = [(source.digest, source.rows) for source in scanned.sources]
    return (known, old.reading) == (given, scanned.reading) and not old.parts.get("deleted")
