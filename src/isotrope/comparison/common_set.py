"""One held-out set for every row of a comparison without labels, and the gain over the start record by record.

    query i: one side of held-out record i · candidates: the other sides of all records · MRR × 100
    gain = MRR of the run − MRR of the start on the same records; 95 % of 1,000 paired draws of the records

The records are those of the first text that are held out, and that no run trains on or chooses its checkpoint by,
whatever its own text is; where the held-out records are too few to be parted, those that choose are among them. The
start is the encoder as ``load`` gives it, so that all rows are held against the same figure. A text that is added later
may hold some of the records: the set is then made anew, and finished runs are judged on it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.comparison.terms import Contestant, Terms
from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, open_corpus
from isotrope.data.held_out import hold_out
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.held_out_parts import part_held_out
from isotrope.evaluation.label_free import partner_ranks
from isotrope.evaluation.worth import held_out_pairs
from isotrope.files import digest, write_json
from isotrope.measures.intervals import percentile_interval

FILE = "held_out.json"  # in the folder of the comparison
COMMON, LOW, HIGH = "common_mrr", "common_gain_low", "common_gain_high"
FEWEST = 10  # records; fewer say nothing
RESAMPLES = 1000


@dataclass(frozen=True)
class CommonSet:
    """``start`` has the reciprocal rank of each record under the encoder that all runs begin with; ``made_for``: the
    texts and the start that the records were chosen for.
    """

    origin: str
    first: list[str]
    second: list[str]
    start: list[float]
    made_for: str = ""

    @classmethod
    def read(cls, folder: Path) -> CommonSet | None:
        """What ``write`` wrote; None where a comparison has no common set."""
        file = folder / FILE
        if not file.is_file():
            return None
        try:
            return cls(**json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise InputError(f"{file}: damaged; remove it and run the same call again, which makes it anew.") from error

    def write(self, folder: Path) -> None:
        write_json(folder / FILE, asdict(self))

    def name(self) -> str:
        """Short; another one for other records."""
        return digest(json.dumps([self.origin, self.first, self.second]))

    def measures(self, encoder: Encoder) -> dict[str, float]:
        """MRR of an encoder, and the interval of its gain over the start."""
        own = reciprocal_ranks(encoder, self.first, self.second)
        draws = np.random.default_rng(0).integers(len(own), size=(RESAMPLES, len(own)))
        gain = percentile_interval(100 * (own - np.asarray(self.start))[draws].mean(axis=1))
        return {COMMON: 100 * float(own.mean()), LOW: gain[0], HIGH: gain[1]}

    def before(self) -> dict[str, float]:
        """What the start has."""
        return {COMMON: 100 * float(np.mean(self.start))}


def common_set(
    folder: Path, contestants: Sequence[Contestant], terms: Terms, start: Encoder, fingerprint: str
) -> CommonSet | None:
    """The set of a comparison's folder; made anew where it is damaged, or was made for other texts or another start."""
    texts = dict.fromkeys((one.content, one.method.record_types) for one in contestants)
    held_out = (terms.loop["held_out"], terms.loop["held_out_seed"])
    made_for = digest(json.dumps([fingerprint, *held_out, "parted", *texts]))
    with suppress(InputError):
        kept = CommonSet.read(folder)
        if kept is not None and kept.made_for == made_for:
            return kept
    found = make_common_set(contestants, terms, start)
    if found is None:
        (folder / FILE).unlink(missing_ok=True)
        return None
    found = replace(found, made_for=made_for)
    found.write(folder)
    return found


def make_common_set(contestants: Sequence[Contestant], terms: Terms, start: Encoder) -> CommonSet | None:
    """None where fewer than ten records are left, or the first text holds names and no sentences."""
    texts = dict.fromkeys((one.data, one.method.record_types) for one in contestants)
    count, seed = terms.loop["held_out"], terms.loop["held_out_seed"]
    corpora = [open_corpus(data, record_types, start.text_tokenizer) for data, record_types in texts]
    first = corpora[0]
    if first.record_type.names:
        return None
    texts_of = [corpus for corpus in corpora if not corpus.record_type.names]
    split = [judging_rows(corpus, *hold_out(corpus, count, seed), terms) for corpus in texts_of]
    held = split[0][1]
    for corpus, (used, _) in zip(texts_of, split, strict=True):
        held = held[~np.isin(first.keys[held], np.unique(corpus.keys[used])).any(axis=1)]
    pairs = held_out_pairs(first, held)
    if len(pairs.first) < FEWEST:
        return None
    ranks = reciprocal_ranks(start, pairs.first, pairs.second)
    return CommonSet(pairs.origin, pairs.first, pairs.second, ranks.tolist())


def judging_rows(corpus: Corpus, trained: Rows, held: Rows, terms: Terms) -> tuple[Rows, Rows]:
    """(rows that runs train on or choose by, rows that judge)."""
    parts = part_held_out(corpus, held)
    if terms.eval_data or not parts.apart:
        return trained, held
    return np.concatenate([trained, parts.choosing]), parts.judging


def reciprocal_ranks(encoder: Encoder, first: list[str], second: list[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    vectors = encoder.encode([*first, *second], show_progress_bar=False)
    return 1 / partner_ranks(vectors[: len(first)], vectors[len(first) :])


def spoken_gain(label: str, seed: int, measures: Mapping[str, float], before: Mapping[str, float]) -> str | None:
    """A sentence on a run's gain; None where it was not measured."""
    if LOW not in measures or COMMON not in before:
        return None
    gain = measures[COMMON] - before[COMMON]
    sure = "" if measures[LOW] * measures[HIGH] > 0 else ", which may be none"
    return (
        f"{label}, seed {seed}: {gain:+.2f} MRR over the start on the same held-out records "
        f"({measures[LOW]:+.2f} to {measures[HIGH]:+.2f}{sure})."
    )
