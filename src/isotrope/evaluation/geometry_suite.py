"""The geometry suite: the text and STS-B read, described, and set as tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from isotrope.data.sentence_files import Texts, read_sentence_file
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.benchmark_files import data_folder, has_data, optional_task
from isotrope.evaluation.geometry_description import MOST_PAIRS, TextGeometry, describe_encoded, trail
from isotrope.evaluation.geometry_pairs import PairGeometry, describe_pairs, describe_scored
from isotrope.evaluation.geometry_table import COLUMNS, overview, sections
from isotrope.evaluation.results import Results, read_out
from isotrope.evaluation.scored_pairs import STSB_SPLITS, joined, read_pairs
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.training.image_opening import check_reads_text

PROTOCOL = "geometry-v1"


@dataclass(frozen=True)
class GeometryScores:
    """``pairs``: where STS-B is there; ``trail``: where the model came from a run."""

    text: TextGeometry
    pairs: PairGeometry | None = None
    trail: Sequence[dict[str, float]] = ()

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value}


@dataclass(frozen=True)
class Sample:
    """The different sentences in their order, and how many repeats were left out."""

    name: str
    texts: list[str]
    repeats: int


class Geometry(Suite):
    """What does the space look like? Spread, directions in use, hubs, layers and words, on any text.

    It needs no labels and judges nothing: an open space does not prove a good one. With ``data_dir`` it also shows
    what the space does with the pairs of STS-B.
    """

    card = SuiteCard(
        name="geometry",
        title="The space itself, on any text",
        protocol=PROTOCOL,
        takes=("data_dir", "texts", "columns", "seeds"),
        has_items=False,
    )
    place = 0

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        check_source(options.texts, stsb_files(options.data_dir))

    def run(self, encoder: Encoder, options: Options) -> Results:
        """The space on a text, on the pairs of STS-B where they are there, and along the run that made the model."""
        texts, seed = options.texts, options.seed
        run = None if options.model is None else run_of(options.model)
        check_reads_text(encoder)
        files = stsb_files(options.data_dir)
        check_source(texts, files)
        pairs = joined([read_pairs(file) for file in files.values()])
        sample = read_sample(pairs.texts if texts is None else texts, options.columns)
        found, vectors = describe_encoded(encoder, sample.texts, seed)
        scored = pairs.first, pairs.second, pairs.gold.tolist()
        shape: PairGeometry | None = None
        if files:
            shape = (
                describe_scored(vectors, sample.texts, *scored) if texts is None else describe_pairs(encoder, *scored)
            )
        scores = GeometryScores(found, shape, trail(run) if run is not None else ())
        protocol = {
            "protocol": PROTOCOL,
            "text": "STS-B" if texts is None else sample.name,
            "sentences": f"{len(sample.texts):,} different, {sample.repeats:,} repeats left out",
            "hubness": f"10 nearest by cosine among {found.hubness_sentences:,}",
            "uniformity": f"t = 2, {_pairs_taken(len(sample.texts))}",
            **read_out(encoder),
            "seed": seed,
        }
        if shape is not None:
            protocol["STS-B"] = f"{' + '.join(files)}, positive above 4, edit distance of {shape.lexical.unit}"
        rows = overview(scores.text, scores.pairs)
        tables = sections(scores.text, scores.pairs, scores.trail)
        return Results({"geometry": scores.to_dict()}, protocol, COLUMNS, rows, tables)

    def summary(self, results: Results) -> dict[str, float]:
        text = results.scores["geometry"]["text"]
        return {name: text[name] for name in ("mean_cosine", "uniformity", "effective_rank")}


def run_of(model: str | os.PathLike[str]) -> Path | None:
    """The run folder that a model folder lies in, None for any other model."""
    inside = Path(model).resolve().parent
    return inside if Path(model).is_dir() and (inside / "metrics.jsonl").is_file() else None


def check_source(texts: Texts | None, files: dict[str, Path]) -> None:
    if texts is None and not files:
        raise InputError("Geometry needs sentences: give texts, or data_dir with sts/stsb.test.tsv.gz.")


def read_sample(texts: Texts, columns: Sequence[str] | None) -> Sample:
    found = read_sentence_file(texts, columns)
    different = list(dict.fromkeys(found.texts))
    if len(different) < 2:
        raise InputError(f"{found.where}: geometry needs at least two different sentences; {len(different)} found.")
    return Sample(Path(found.where).name, different, len(found.texts) - len(different))


def stsb_files(data_dir: str | os.PathLike[str] | None) -> dict[str, Path]:
    """The splits of STS-B that are there; none without a folder of evaluation data."""
    if not has_data(data_dir):
        return {}
    folder = data_folder(data_dir) / "sts"
    return {split: file for split in STSB_SPLITS if (file := optional_task(folder, f"stsb.{split}")) is not None}


def _pairs_taken(sentences: int) -> str:
    if sentences * (sentences - 1) // 2 <= MOST_PAIRS:
        return "all pairs"
    return f"about {MOST_PAIRS:.0e} pairs, each sentence in as many"
