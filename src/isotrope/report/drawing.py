"""A single figure as a file, drawn by matplotlib from the same values as the page."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.report.figure_parts import Figure, Panel, Series, Style, Trail

SHAPES = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D"}
INK, SOFT, GRID = "#1b1f24", "#57606a", "#eaeef2"


def save_figure(figure: Figure, path: Path, form: str) -> None:
    """Write one figure as png or svg."""
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("A figure as png or svg needs matplotlib; pip install 'isotrope[report]'.") from error
    from matplotlib.figure import Figure as Canvas  # no pyplot: nothing global, no display

    panels = figure.panels
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    width, height = _size(figure)
    settings = {
        "font.size": 10,
        "axes.edgecolor": SOFT,
        "axes.labelcolor": SOFT,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
        "svg.hashsalt": "isotrope",
        "svg.fonttype": "none",
        "text.parse_math": False,  # a dollar in a name is a dollar
    }
    with matplotlib.rc_context(settings):
        canvas = Canvas(figsize=(width * columns, height * rows), layout="constrained")
        for number, panel in enumerate(panels):
            axes = canvas.add_subplot(rows, columns, number + 1)
            axes.spines[["top", "right", "left"]].set_visible(False)
            axes.grid(color=GRID)
            axes.set_axisbelow(True)
            axes.set_title(panel.title or figure.title, loc="left", color=INK, fontsize=11, fontweight="bold")
            CHARTS[figure.chart](axes, figure, panel)
        _legend(canvas, figure)
        facts = {"Date": None} if form == "svg" else {"Software": None}  # the same values give the same file
        canvas.savefig(path, format=form, dpi=160, metadata=facts)


def _size(figure: Figure) -> tuple[float, float]:
    if figure.chart == "intervals":
        each = 0.16 * len(figure.panels[0].series) + 0.22
        return 7.0, 1.2 + each * len(figure.y.categories or ())
    return {"plane": (6.0, 4.6), "map": (5.0, 5.2), "ridges": (4.6, 4.6)}.get(figure.chart, (5.2, 3.6))


def _lines(axes: Any, figure: Figure, panel: Panel) -> None:
    for series in panel.series:
        y = _values(series)
        marker = SHAPES[series.style.marker] if series.dots else ""
        axes.plot(series.x, y, label=series.name, **_line(series.style), marker=marker)
        if series.chosen is not None:
            ring = {"ms": 11, "mfc": "none", "mec": series.style.colour, "mew": 1.5}
            axes.plot(series.x[series.chosen], y[series.chosen], "o", **ring)
    axes.set_xlabel(figure.x.label)
    axes.set_ylabel(figure.y.label)
    for set_scale, scale in ((axes.set_xscale, figure.x.scale), (axes.set_yscale, figure.y.scale)):
        if scale is not None:
            set_scale(scale)


def _plane(axes: Any, figure: Figure, panel: Panel) -> None:
    for series in panel.series:
        if series.trail is not None:
            joined = {"linestyle": "none"} if series.trail.loose else {}
            axes.plot(series.trail.x, series.trail.y, marker="o", ms=3, alpha=0.8, **{**_line(series.style), **joined})
            _arrows(axes, series.trail, series.style.colour)
    for series in panel.series:  # over the trails
        shape, look = SHAPES[series.style.marker], {"color": series.style.colour, "ms": 9, "mec": "white"}
        axes.plot(series.x, _values(series), shape, label=series.name, zorder=3, **look)
    axes.margins(0.12)
    axes.set_xlabel(figure.x.label)
    axes.set_ylabel(figure.y.label)


def _arrows(axes: Any, trail: Trail, colour: str) -> None:
    """A head on the way from each checkpoint to the next, so that print shows the direction of training."""
    places = [] if trail.loose else list(zip(trail.x, trail.y, strict=True))
    for start, end in pairwise(places):
        if start != end:
            middle = tuple((a + b) / 2 for a, b in zip(start, end, strict=True))
            axes.annotate("", xy=middle, xytext=start, arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 0})


def _intervals(axes: Any, figure: Figure, panel: Panel) -> None:
    names, count = figure.y.categories or [], len(panel.series)
    for place, series in enumerate(panel.series):
        colour = series.style.colour
        rows = [number + 0.7 * (place - (count - 1) / 2) / max(count, 2) for number in range(len(names))]
        for row, low, high in zip(rows, series.low or (), series.high or (), strict=True):
            if low is not None:
                axes.plot([low, high], [row, row], color=colour, lw=3, alpha=0.4, solid_capstyle="round")
        shape = SHAPES[series.style.marker]
        axes.plot(series.x, rows, shape, color=colour, ms=6, mec="white", label=series.name)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(figure.x.label)


def _ridges(axes: Any, figure: Figure, panel: Panel) -> None:
    top = figure.y.highest or 1.0
    for base, series in reversed(list(enumerate(panel.series))):
        heights = [base + 1.7 * value / top for value in _values(series)]
        above = 3 + len(heights) - base
        look = {"color": series.style.colour, "alpha": 0.75, "lw": 1, "ec": "white"}
        axes.fill_between(series.x, base, heights, zorder=above, **look)
        if series.median is not None:
            axes.plot([series.median] * 2, [base, base + 0.25], color=INK, lw=2, zorder=above + 1)
    axes.set_yticks(range(len(panel.series)), [series.name for series in panel.series])
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.set_xlim(*(figure.x.domain or (None, None)))
    axes.set_ylim(-0.1, len(panel.series) + 0.8)  # one scale for all panels
    axes.set_xlabel(figure.x.label)
    if panel is figure.panels[0]:
        axes.set_ylabel(figure.y.label)


def _map(axes: Any, figure: Figure, panel: Panel) -> None:
    for series in panel.series:
        look = {"s": 9, "color": series.style.colour, "alpha": 0.75, "lw": 0}
        axes.scatter(series.x, _values(series), label=series.name, **look)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal")
    axes.spines[:].set_visible(True)


CHARTS = {"lines": _lines, "plane": _plane, "intervals": _intervals, "ridges": _ridges, "map": _map}


def _values(series: Series) -> list[float]:
    """The heights of a series; only intervals have none, for their rows are tasks."""
    return series.y or []


def _line(style: Style) -> dict[str, Any]:
    dash = [float(length) / 2 for length in style.dash.split()]
    return {"color": style.colour, "lw": 1.8, "linestyle": (0, tuple(dash)) if dash else "-"}


def _legend(canvas: Any, figure: Figure) -> None:
    """One legend for all panels, under them; ridges carry their names at the axis."""
    if figure.chart == "ridges":
        return
    named: dict[str, Any] = {}
    for axes in canvas.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    settings = {"ncols": min(len(named), 3), "markerscale": 2.5 if figure.chart == "map" else 1}
    canvas.legend(
        list(named.values()), list(named), loc="outside lower center", frameon=False, labelcolor=INK, **settings
    )
