"""The tables of the geometry suite: one overview, and one section each for layers, words, scored pairs and the run."""

from __future__ import annotations

from collections.abc import Sequence

from isotrope.evaluation.geometry_description import TextGeometry
from isotrope.evaluation.geometry_layers import LayerCosines
from isotrope.evaluation.geometry_pairs import GoldBin, PairGeometry
from isotrope.evaluation.geometry_words import NEIGHBOURS, FrequencyBin
from isotrope.evaluation.results import Section

Row = tuple[str, ...]
COLUMNS = ("measure", "value", "to read it")
PLACES = (2, 10, 100)  # singular values that are shown


def overview(text: TextGeometry, pairs: PairGeometry | None) -> list[Row]:
    places = [place for place in PLACES if place <= len(text.spectrum)]
    rows: list[Row] = [
        ("mean cosine of two sentences", _number(text.mean_cosine), "0 a ball, 1 a needle"),
        ("uniformity", _number(text.uniformity), "lower is more spread out; 0 one point"),
        ("effective rank", f"{text.effective_rank:.1f}", f"directions in use, of {text.dimension}"),
        (
            f"singular value {', '.join(map(str, places))}",
            ", ".join(f"{text.spectrum[place - 1]:.3f}" for place in places),
            "of the first; flat is open",
        ),
    ]
    for count, share in text.top_shares.items():
        even = min(int(count) / text.dimension, 1)
        rows.append((f"variance in the first {count}", f"{share:.1%}", f"even would be {even:.1%}"))
    rows.append(("hubness", _number(text.hubness, 2), "0 even; above 1 a few are near to everybody"))
    return rows if pairs is None else [*rows, *_pair_rows(pairs)]


def sections(text: TextGeometry, pairs: PairGeometry | None, trail: Sequence[dict[str, float]]) -> list[Section]:
    layers = ("layer", "in one sentence", "of two sentences", "difference")
    near = (*(f"distance {k}" for k in NEIGHBOURS), *(f"dot {k}" for k in NEIGHBOURS))
    words = ("rank of frequency", "words", "norm", *near)
    found = [
        Section("Tokens by layer, cosine", layers, [_layer_row(row) for row in text.layers]),
        Section("Words by frequency, input embeddings", words, _word_rows(text.words.input)),
        Section("Words by frequency, mean of their last states", words, _word_rows(text.words.last_layer)),
    ]
    if pairs is not None:
        gold = ("gold", "pairs", "mean", "5 %", "25 %", "median", "75 %", "95 %")
        rows = [_gold_row(row) for row in pairs.density if row.count]
        found.append(Section("STS-B cosine by gold score", gold, rows))
    if trail:
        steps = ("step", "alignment", "uniformity", "mean cosine")
        found.append(Section("The run, on its held-out pairs", steps, [_trail_row(row) for row in trail]))
    return [section for section in found if section.rows]  # a table of words has no layers, an export no words either


def _pair_rows(pairs: PairGeometry) -> list[Row]:
    positives = f"{pairs.positive_pairs:,} positive pairs; 0 is perfect"
    lexical = pairs.lexical
    return [
        ("STS-B alignment", _number(pairs.alignment), positives),
        ("STS-B uniformity", _number(pairs.uniformity), f"{2 * pairs.pairs:,} sentences"),
        ("STS-B Spearman of cosine and gold", _number(pairs.spearman, 2), f"{pairs.pairs:,} pairs"),
        (
            "STS-B Spearman of cosine and edits",
            _number(lexical.edit_cosine, 2),
            f"gold has {_number(lexical.edit_gold, 2)}",
        ),
    ]


def _layer_row(row: LayerCosines) -> Row:
    return str(row.layer), _number(row.self_similarity), _number(row.mean_cosine), _number(row.adjusted)


def _word_rows(table: Sequence[FrequencyBin]) -> list[Row]:
    return [
        (
            f"{row.low:,} – {row.high:,}",
            f"{row.words:,}",
            _number(row.norm, 2),
            *(_number(value, 2) for value in (*row.distance.values(), *row.dot_product.values())),
        )
        for row in table
        if row.words
    ]


def _gold_row(row: GoldBin) -> Row:
    quantiles = (_number(value) for value in row.quantiles.values())
    return f"{row.low} – {row.high}", f"{row.count:,}", _number(row.mean), *quantiles


def _trail_row(row: dict[str, float]) -> Row:
    return str(row["step"]), *(_number(row.get(name)) for name in ("alignment", "uniformity", "mean_cosine"))


def _number(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
