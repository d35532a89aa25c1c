"""The sentences that the report is about, and the pairs among them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, open_corpus
from isotrope.data.held_out import hold_out
from isotrope.errors import InputError
from isotrope.evaluation.label_free import Pairs, natural_pairs
from isotrope.report.subjects import Cast, Subject

FEWEST = 10  # sentences that a map and its neighbours make sense for
LONGEST = 400  # letters of a sentence that are shown


@dataclass(frozen=True)
class Texts:
    """``sample``: different sentences, in file order; ``pairs``: natural pairs of the part that ``of`` names.

    That part is what a run held out, or the whole text.
    """

    name: str
    total: int
    duplicates: int
    sample: list[str]
    pairs: Pairs
    of: str
    elsewhere: list[str]  # runs whose own measures are of other pairs


def read_texts(
    cast: Cast, given: str | os.PathLike[str] | None, columns: Sequence[str] | None, most: int, seed: int
) -> Texts:
    """The given file, or the text of the first run. Pairs come from what a run held out, if this is its text."""
    source, record_types = (Path(given), ["sentences"]) if given is not None else _own_text(cast)
    tokenizer = (cast.runs or cast.subjects)[0].open().text_tokenizer  # a run's corpus is known by its tokenizer too
    corpus = open_corpus(source, record_types, tokenizer, columns, False)
    judged = _judged(corpus, cast)
    if judged is None:
        rows, of, same = np.arange(len(corpus), dtype=np.int64), "the whole text", []
    else:
        rows, run = judged
        of, same = f"the held-out part of {run.name}", [other.name for other in cast.runs if _held(other) == _held(run)]
    elsewhere = [other.name for other in cast.runs if other.name not in same]
    sample = _sample(corpus, most, seed)
    if len(sample) < FEWEST:
        raise InputError(
            f"{source}: {len(sample)} different sentence{'s' * (len(sample) != 1)} found; "
            f"a report needs at least {FEWEST}."
        )
    return Texts(
        source.name, corpus.counts.records, corpus.counts.duplicates, sample, natural_pairs(corpus, rows), of, elsewhere
    )


def _own_text(cast: Cast) -> tuple[Path, list[str]]:
    for run in cast.runs:
        if run.source is not None:
            return run.source, [str(run.facts.get("data", {}).get("record_type", "sentences")), "sentences"]
    raise InputError("Which sentences or images should be shown? Give their file or folder as text.")


def _judged(corpus: Corpus, cast: Cast) -> tuple[Rows, Subject] | None:
    """What a run on this text held out, and the run."""
    for run in cast.runs:
        fingerprint, count, seed = _held(run)
        if fingerprint == corpus.fingerprint:
            held = hold_out(corpus, int(count), int(seed))[1]
            if len(held):
                return held, run
    return None


def _held(run: Subject) -> tuple[Any, Any, Any]:
    """All that decides which texts a run holds out."""
    settings = run.facts.get("settings", {})
    return run.facts.get("data", {}).get("fingerprint"), settings.get("held_out", 0), _draw_seed(settings)


def _draw_seed(settings: Mapping[str, Any]) -> Any:
    drawn = settings.get("held_out_seed")
    return settings.get("seed", 0) if drawn is None else drawn


def _sample(corpus: Corpus, most: int, seed: int) -> list[str]:
    """At most ``most`` different texts, in file order."""
    order = np.random.default_rng(seed).permutation(len(corpus))
    texts: dict[str, int] = {}
    for row in order:
        text = corpus.text(int(row))
        if text:
            texts.setdefault(text, int(row))
        if len(texts) == most:
            break
    return sorted(texts, key=texts.__getitem__)
