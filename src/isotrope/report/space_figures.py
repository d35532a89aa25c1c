"""Figures of what the spaces look like: spectrum, layers, similarities by people's score, the map of the sentences."""

from __future__ import annotations

from isotrope.evaluation.geometry_pairs import GoldBin, PairGeometry
from isotrope.report.figure_parts import Axis, Figure, Panel, Series, Style
from isotrope.report.findings import Findings
from isotrope.report.subject_styles import BIN_COLOURS, GROUP_COLOURS, styles

ROUNDING = 1e-4  # of the largest singular value; what lies below is rounding


def spectrum(findings: Findings) -> Figure:
    """Singular values, largest first, each divided by the largest."""
    style = styles(findings.subjects)
    series = []
    for name, shape in findings.geometry.items():
        values = [value for value in shape.spectrum if value > ROUNDING]
        hover = [f"{name}\ndirection {number}: {value:.3g} of the largest" for number, value in enumerate(values, 1)]
        series.append(Series(name, style[name], x=[*range(1, len(values) + 1)], y=values, hover=hover))
    ranks = ", ".join(f"{name} {shape.effective_rank:.0f}" for name, shape in findings.geometry.items())
    return Figure(
        name="spectrum",
        title="Spectrum",
        chart="lines",
        caption=f"A flat line uses all directions alike; a cliff at the left is a cone. Effective rank: {ranks}.",
        x=Axis("direction, the strongest first", scale="log"),
        y=Axis("singular value / largest", scale="log"),
        panels=[Panel("", series)],
    )


def layers(findings: Findings) -> Figure | None:
    """Self-similarity of a sentence's tokens and the mean cosine of two sentences, by layer."""
    within = {
        name: {row.layer: row.self_similarity for row in shape.layers} for name, shape in findings.geometry.items()
    }
    between = {name: {row.layer: row.mean_cosine for row in shape.layers} for name, shape in findings.geometry.items()}
    panels = [
        _layer_panel(findings, "Cosine of two tokens of one sentence", within),
        _layer_panel(findings, "Cosine of tokens of two sentences", between),
    ]
    panels = [panel for panel in panels if panel.series]
    if not panels:
        return None
    return Figure(
        name="layers",
        title="Layer by layer",
        chart="lines",
        caption="Layer 0 is the embeddings, the last is what is pooled.",
        x=Axis("layer", integers=True),
        y=Axis(),
        panels=panels,
    )


def _layer_panel(findings: Findings, label: str, cosines: dict[str, dict[int, float | None]]) -> Panel:
    """``cosines``: of each subject, by layer."""
    style = styles(findings.subjects)
    series = []
    for name, by_layer in cosines.items():
        known = {layer: value for layer, value in by_layer.items() if value is not None}
        if known:
            hover = [f"{name}, layer {layer}\n{label}: {value:.3f}" for layer, value in known.items()]
            series.append(Series(name, style[name], x=[*known], y=[*known.values()], hover=hover, dots=True))
    return Panel(label, series)


def density(findings: Findings) -> Figure | None:
    """How the cosines of STS-B pairs lie, by people's score."""
    if not findings.pairs:
        return None
    panels = [_density_panel(name, shape) for name, shape in findings.pairs.items()]
    xs = [value for panel in panels for series in panel.series for value in series.x]
    ys = [value for panel in panels for series in panel.series for value in series.y or ()]
    if not xs:
        return None  # every bin has too few pairs for a curve
    return Figure(
        name="density",
        title="Similarities by people's score",
        chart="ridges",
        caption="STS-B test pairs in five bins of people's score, highest on top; the tick is the median. Well-ordered "
        "hills that hardly overlap are a good space; hills squeezed to the right are a cone.",
        x=Axis("cosine of the pair", domain=[min(xs), max(xs)]),
        y=Axis("people's score", highest=max(ys)),
        panels=panels,
    )


def _density_panel(name: str, shape: PairGeometry) -> Panel:
    series = [
        Series(
            name=one.label,
            style=Style(BIN_COLOURS[number]),
            x=[point[0] for point in one.curve],
            y=[point[1] for point in one.curve],
            median=one.quantiles["50"],
            hover=[_ridge(name, one)],
        )
        for number, one in enumerate(shape.density)
        if one.curve
    ]
    note = "" if shape.spearman is None else f"Spearman × 100 of these pairs: {shape.spearman:.1f}"
    return Panel(name, series, note)


def _ridge(name: str, one: GoldBin) -> str:
    return (
        f"{name}\npeople's score {one.label}: {one.count:,} pairs, median cosine {one.quantiles['50']:.2f}, "
        f"half of them from {one.quantiles['25']:.2f} to {one.quantiles['75']:.2f}"
    )


def sentence_map(findings: Findings) -> Figure:
    """The same sentences in every space."""
    found = findings.map
    panels = []
    for name, places in found.places.items():
        series = []
        for number, group in enumerate(found.names):
            members = [row for row, own in enumerate(found.groups) if own == number]
            series.append(
                Series(
                    name=group,
                    style=Style(GROUP_COLOURS[number % len(GROUP_COLOURS)]),
                    x=[places[row][0] for row in members],
                    y=[places[row][1] for row in members],
                    rows=members,
                )
            )
        panels.append(Panel(name, series))
    return Figure(
        name="map",
        title="Map of your sentences",
        chart="map",
        caption=f"t-SNE of {len(found.texts):,} sentences of {findings.text.name}. Near means alike; the axes mean "
        f"nothing. Colours are groups (k-means) of {found.grouped_by}, named by words they have more of. Point at a "
        "sentence to read it and to see its five nearest in every space.",
        x=Axis(),
        y=Axis(),
        panels=panels,
    )
