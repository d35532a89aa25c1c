"""The figure of layer × pooling: which read-out of each model ranks the pairs of STS-B as people do, and its table."""

from __future__ import annotations

from isotrope.evaluation.layer_suite import Cell, LayerSweep
from isotrope.report.figure_parts import Axis, Figure, Panel, Series, Style
from isotrope.report.findings import Findings
from isotrope.report.subject_styles import GROUP_COLOURS, MARKERS


def read_out(findings: Findings) -> Figure | None:
    """A panel a subject, a line a pooling, over the layers; the ring is the best read-out of one layer."""
    if not findings.read_outs:
        return None
    split = next(iter(findings.read_outs.values())).chosen_by
    return Figure(
        name="read-out",
        title="Layer and pooling",
        chart="lines",
        caption=f"Spearman × 100 on STS-B {split} of each layer under each pooling, before anything that follows the "
        "pooling. Layer 0 is the embeddings, whose first token is the same for every text. The ring is the best layer.",
        x=Axis("layer", integers=True),
        y=Axis(f"Spearman × 100 on STS-B {split}"),
        panels=[_panel(name, sweep) for name, sweep in findings.read_outs.items()],
    )


def pooling_styles(sweeps: dict[str, LayerSweep]) -> dict[str, Style]:
    """A colour and a marker for each pooling, the same in every panel."""
    names = dict.fromkeys(pooling for sweep in sweeps.values() for pooling in sweep.poolings)
    return {name: Style(GROUP_COLOURS[place], MARKERS[place]) for place, name in enumerate(names)}


def _panel(name: str, sweep: LayerSweep) -> Panel:
    style = pooling_styles({name: sweep})
    best = _best_layer(sweep)
    series = []
    for pooling in sweep.poolings:
        known = [cell for cell in sweep.cells if cell.pooling == pooling and _score(sweep, cell) is not None]
        known = [cell for cell in known if cell.layer is not None]
        if known:
            series.append(
                Series(
                    name=pooling,
                    style=style[pooling],
                    x=[float(cell.layer or 0) for cell in known],
                    y=[_score(sweep, cell) or 0.0 for cell in known],
                    hover=[f"{name}\n{cell.name}: {_score(sweep, cell):.2f}" for cell in known],
                    dots=True,
                    chosen=known.index(best) if best in known else None,
                )
            )
    last = [*sweep.pairs][-1]
    note = f"Best of all: {sweep.best.name}"
    if sweep.best.spearman[last] is not None:
        note += f", {sweep.best.spearman[last]:.1f} on {last} ({sweep.interval})"
    return Panel(name, series, note)


def _best_layer(sweep: LayerSweep) -> Cell | None:
    """The best read-out of a single layer: the best of all may be a mix."""
    known = [cell for cell in sweep.cells if cell.layer is not None and _score(sweep, cell) is not None]
    return max(known, key=lambda cell: _score(sweep, cell) or 0.0, default=None)


def _score(sweep: LayerSweep, cell: Cell) -> float | None:
    return cell.spearman[sweep.chosen_by]


def read_out_table(findings: Findings) -> list[tuple[str, ...]]:
    """Every read-out of every subject, a title first; the best of a subject has a star."""
    rows: list[tuple[str, ...]] = []
    splits = dict.fromkeys(split for sweep in findings.read_outs.values() for split in sweep.pairs)
    for name, sweep in findings.read_outs.items():
        for cell in sweep.cells:
            star = " *" * (cell is sweep.best)
            values = (cell.spearman.get(split) for split in splits)
            rows.append((name, cell.name + star, *("–" if value is None else f"{value:.2f}" for value in values)))
    return [("model", "pooling (* best)", *splits), *rows] if rows else []
