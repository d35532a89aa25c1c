"""The geometry suite as the command line calls it: the text and STS-B read, described, and set as tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.data.sources import find_records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.geometry_suite import MOST_PAIRS, describe_encoded, describe_pairs, describe_scored, trail
from isotrope.evaluation.results import Results, Section, read_out
from isotrope.evaluation.sts import data_folder, find_task, read_pairs

PROTOCOL = "geometry-v1"
Texts = str | os.PathLike[str] | Sequence[str]
Pairs = tuple[list[str], list[str], list[float]]


def evaluate_geometry(
    encoder: Encoder,
    texts: Texts | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    run: str | os.PathLike[str] | None = None,
) -> Results:
    """The space on a text, on the pairs of STS-B where the data folder has them, and along a run where the model came
    from one.
    """
    pairs, splits = _stsb(data_dir)
    if texts is None and not splits:
        raise InputError("Geometry needs sentences: give --text FILE, or --data-dir with sts/stsb.test.tsv.gz.")
    read, repeats = _sentences([*pairs[0], *pairs[1]] if texts is None else texts, columns)
    found, vectors = describe_encoded(encoder, read, seed)
    scores: dict[str, Any] = {"text": found}
    if splits:
        scores["pairs"] = describe_scored(vectors, read, *pairs) if texts is None else describe_pairs(encoder, *pairs)
    if run is not None and (steps := trail(run)):
        scores["trail"] = steps
    protocol = {
        "protocol": PROTOCOL,
        "text": "STS-B"
        if texts is None
        else Path(texts).name
        if isinstance(texts, str | os.PathLike)
        else "the given list",
        "sentences": f"{len(read):,} different, {repeats:,} repeats left out",
        "hubness": f"10 nearest by cosine among {found['hubness_sentences']:,}",
        "uniformity": f"t = 2, {_pairs_taken(len(read))}",
        **read_out(encoder),
        "seed": seed,
    }
    if splits:
        protocol["STS-B"] = (
            f"{' + '.join(splits)}, positive above 4, edit distance of {scores['pairs']['lexical']['unit']}"
        )
    return Results(
        {"geometry": scores}, protocol, ("measure", "value", "to read it"), _overview(scores), _sections(scores)
    )


def run_of(model: str | os.PathLike[str]) -> Path | None:
    """The run folder that a model folder lies in, None for any other model."""
    inside = Path(model).resolve().parent
    return inside if Path(model).is_dir() and (inside / "metrics.jsonl").is_file() else None


def _sentences(texts: Texts, columns: Sequence[str] | None) -> tuple[list[str], int]:
    """The different sentences in their order, and how many repeats were left out."""
    where, _, records, _ = find_records(texts, ("sentences",), columns, split=False)
    full = [record.texts[0] for record in records if record.texts[0]]
    different = list(dict.fromkeys(full))
    if len(different) < 2:
        raise InputError(f"{where}: geometry needs at least two different sentences; {len(different)} found.")
    return different, len(full) - len(different)


def _stsb(data_dir: str | os.PathLike[str] | None) -> tuple[Pairs, list[str]]:
    """All pairs of STS-B that are there, and the names of their splits."""
    if not (data_dir or os.environ.get("ISOTROPE_DATA")):
        return ([], [], []), []
    folder = data_folder(data_dir) / "sts"
    files = {
        split: file for split in ("train", "dev", "test") if (file := find_task(folder, f"stsb.{split}", needed=False))
    }
    first: list[str] = []
    second: list[str] = []
    gold: list[float] = []
    for file in files.values():
        left, right, scores, _ = read_pairs(file)
        first, second, gold = [*first, *left], [*second, *right], [*gold, *np.asarray(scores).tolist()]
    return (first, second, gold), list(files)


def _pairs_taken(sentences: int) -> str:
    return (
        "all pairs"
        if sentences * (sentences - 1) // 2 <= MOST_PAIRS
        else f"about {MOST_PAIRS:.0e} pairs, each sentence in as many"
    )


def _overview(scores: dict[str, Any]) -> list[tuple[str, ...]]:
    text, pairs = scores["text"], scores.get("pairs")
    spectrum = text["spectrum"]
    places = [place for place in (2, 10, 100) if place <= len(spectrum)]
    rows: list[tuple[str, ...]] = [
        ("mean cosine of two sentences", _number(text["mean_cosine"]), "0 a ball, 1 a needle"),
        ("uniformity", _number(text["uniformity"]), "lower is more spread out; 0 one point"),
        ("effective rank", f"{text['effective_rank']:.1f}", f"directions in use, of {text['dimension']}"),
        (
            f"singular value {', '.join(map(str, places))}",
            ", ".join(f"{spectrum[p - 1]:.3f}" for p in places),
            "of the first; flat is open",
        ),
        *(
            (
                f"variance in the first {count}",
                f"{share:.1%}",
                f"even would be {min(int(count) / text['dimension'], 1):.1%}",
            )
            for count, share in text["top_shares"].items()
        ),
        ("hubness", _number(text["hubness"], 2), "0 even; above 1 a few are near to everybody"),
    ]
    if pairs:
        lexical = pairs["lexical"]
        rows += [
            (
                "STS-B alignment",
                _number(pairs["alignment"]),
                f"{pairs['positive_pairs']:,} positive pairs; 0 is perfect",
            ),
            ("STS-B uniformity", _number(pairs["uniformity"]), f"{2 * pairs['pairs']:,} sentences"),
            ("STS-B Spearman of cosine and gold", _number(pairs["spearman"], 2), f"{pairs['pairs']:,} pairs"),
            (
                "STS-B Spearman of cosine and edits",
                _number(lexical["edit_cosine"], 2),
                f"gold has {_number(lexical['edit_gold'], 2)}",
            ),
        ]
    return rows


def _sections(scores: dict[str, Any]) -> list[Section]:
    text = scores["text"]
    layers = [
        (str(row["layer"]), _number(row["self_similarity"]), _number(row["mean_cosine"]), _number(row["adjusted"]))
        for row in text["layers"]
    ]
    found = [Section("Tokens by layer, cosine", ("layer", "in one sentence", "of two sentences", "difference"), layers)]
    titles = {
        "input": "Words by frequency, input embeddings",
        "last_layer": "Words by frequency, mean of their last states",
    }
    for name, title in titles.items():
        columns = (
            "rank of frequency",
            "words",
            "norm",
            *(f"distance {k}" for k in (3, 5, 7)),
            *(f"dot {k}" for k in (3, 5, 7)),
        )
        found.append(Section(title, columns, [_word_row(row) for row in text["words"][name] if row["words"]]))
    if "pairs" in scores:
        bins = [
            (
                f"{row['low']} – {row['high']}",
                f"{row['count']:,}",
                _number(row["mean"]),
                *(_number(q) for q in row["quantiles"].values()),
            )
            for row in scores["pairs"]["density"]
            if row["count"]
        ]
        found.append(
            Section(
                "STS-B cosine by gold score", ("gold", "pairs", "mean", "5 %", "25 %", "median", "75 %", "95 %"), bins
            )
        )
    if "trail" in scores:
        steps = [
            (str(row["step"]), _number(row["alignment"]), _number(row["uniformity"]), _number(row.get("mean_cosine")))
            for row in scores["trail"]
        ]
        found.append(
            Section("The run, on its held-out pairs", ("step", "alignment", "uniformity", "mean cosine"), steps)
        )
    return found


def _word_row(row: dict[str, Any]) -> tuple[str, ...]:
    near = [*row["distance"].values(), *row["dot_product"].values()]
    return (
        f"{row['low']:,} – {row['high']:,}",
        f"{row['words']:,}",
        _number(row["norm"], 2),
        *(_number(value, 2) for value in near),
    )


def _number(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
