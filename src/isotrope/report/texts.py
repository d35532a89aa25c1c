"""The sentences that the report is about, and the pairs among them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, open_corpus
from isotrope.data.held_out import hold_out
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.label_free import Pairs, natural_pairs
from isotrope.report.subjects import Cast, Subject

FEWEST = 10  # sentences that a map and its neighbours make sense for
LONGEST = 400  # letters of a sentence that are shown


@dataclass(frozen=True)
class Texts:
    """``sample``: different sentences in file order, ``pairs``: natural pairs of ``of`` (the held-out part of a run, or the whole text)."""

    name: str
    total: int
    duplicates: int
    sample: list[str]
    pairs: Pairs
    of: str


def read_texts(
    cast: Cast, encoder: Encoder, given: str | os.PathLike[str] | None, columns: Sequence[str] | None, most: int, seed: int
) -> Texts:
    """The given file, or the text of the first run. Pairs come from what that run held out, if this is its text."""
    run = next((one for one in cast.runs if one.source is not None), None)
    if given is None and run is None:
        raise InputError("Which sentences should be shown? Give a file of them with --text.")
    source = Path(given) if given is not None else _source(run)
    kinds = ("sentences",) if given is not None else (str(run.facts["data"]["kind"]), "sentences")  # type: ignore[union-attr]
    tokeniser = encoder.tokeniser
    corpus = open_corpus(source, kinds, tokeniser.flat, tokeniser.fingerprint(), tokeniser.vocabulary, columns, False)
    rows, of = _judged(corpus, cast)
    sample = _sample(corpus, most, seed)
    if len(sample) < FEWEST:
        raise InputError(f"{source}: {len(sample)} different sentence{'s' * (len(sample) != 1)} found; a report needs at least {FEWEST}.")
    return Texts(source.name, corpus.counts.records, corpus.counts.duplicates, sample, natural_pairs(corpus, rows), of)


def _source(run: Subject | None) -> Path:
    assert run is not None
    assert run.source is not None
    return run.source


def _judged(corpus: Corpus, cast: Cast) -> tuple[Rows, str]:
    for run in cast.runs:
        if run.facts.get("data", {}).get("fingerprint") == corpus.fingerprint:
            settings = run.facts["settings"]
            held = hold_out(corpus, int(settings["held_out"]), int(settings["seed"]))[1]
            if len(held):
                return held, f"the held-out part of {run.name}"
    return np.arange(len(corpus), dtype=np.int64), "the whole text"


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
