"""A single figure as a file, drawn by matplotlib from the same values as the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.report.figures import Figure

SHAPES = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D"}
INK, SOFT, GRID = "#1b1f24", "#57606a", "#eaeef2"


def save_figure(figure: Figure, path: Path, form: str) -> None:
    """Write one figure as png or svg."""
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("A figure as png or svg needs matplotlib; pip install 'isotrope[report]'.") from error
    from matplotlib.figure import Figure as Canvas  # no pyplot: nothing global, no display

    panels = figure["panels"]
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
    }
    with matplotlib.rc_context(settings):
        canvas = Canvas(figsize=(width * columns, height * rows), layout="constrained")
        for number, panel in enumerate(panels):
            axes = canvas.add_subplot(rows, columns, number + 1)
            axes.spines[["top", "right", "left"]].set_visible(False)
            axes.grid(color=GRID)
            axes.set_axisbelow(True)
            axes.set_title(panel["title"] or figure["title"], loc="left", color=INK, fontsize=11, fontweight="bold")
            DRAW[figure["kind"]](axes, figure, panel)
        _legend(canvas, figure)
        facts = {"Date": None} if form == "svg" else {"Software": None}  # the same values give the same file
        canvas.savefig(path, format=form, dpi=160, metadata=facts)


def _size(figure: Figure) -> tuple[float, float]:
    if figure["kind"] == "intervals":
        each = 0.16 * len(figure["panels"][0]["series"]) + 0.22
        return 7.0, 1.2 + each * len(figure["y"]["categories"])
    return {"plane": (6.0, 4.6), "map": (5.0, 5.2), "ridges": (4.6, 4.6)}.get(figure["kind"], (5.2, 3.6))


def _lines(axes: Any, figure: Figure, panel: Figure) -> None:
    x, y = figure["x"], {**figure["y"], **panel.get("y", {})}
    for series in panel["series"]:
        axes.plot(
            series["x"],
            series["y"],
            label=series["name"],
            **_line(series),
            marker=SHAPES[series["marker"]] if series.get("dots") else "",
        )
        if "chosen" in series:
            place = series["chosen"]
            axes.plot(series["x"][place], series["y"][place], "o", ms=11, mfc="none", mec=series["colour"], mew=1.5)
    axes.set_xlabel(x["label"])
    axes.set_ylabel(y["label"])
    for axis, scale in ((axes.set_xscale, x.get("scale")), (axes.set_yscale, y.get("scale"))):
        if scale is not None:
            axis(scale)


def _plane(axes: Any, figure: Figure, panel: Figure) -> None:
    for series in panel["series"]:
        if "trail" in series:
            axes.plot(series["trail"]["x"], series["trail"]["y"], marker="o", ms=3, alpha=0.8, **_line(series))
    for series in panel["series"]:  # over the trails
        shape = SHAPES[series["marker"]]
        axes.plot(
            series["x"], series["y"], shape, color=series["colour"], ms=9, mec="white", label=series["name"], zorder=3
        )
    axes.margins(0.12)
    axes.set_xlabel(figure["x"]["label"])
    axes.set_ylabel(figure["y"]["label"])


def _intervals(axes: Any, figure: Figure, panel: Figure) -> None:
    names, count = figure["y"]["categories"], len(panel["series"])
    for place, series in enumerate(panel["series"]):
        rows = [number + 0.7 * (place - (count - 1) / 2) / max(count, 2) for number in range(len(names))]
        for row, low, high in zip(rows, series["low"], series["high"], strict=True):
            if low is not None:
                axes.plot([low, high], [row, row], color=series["colour"], lw=3, alpha=0.4, solid_capstyle="round")
        axes.plot(
            series["x"], rows, SHAPES[series["marker"]], color=series["colour"], ms=6, mec="white", label=series["name"]
        )
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(figure["x"]["label"])


def _ridges(axes: Any, figure: Figure, panel: Figure) -> None:
    top = figure["y"]["highest"]
    for base, series in reversed(list(enumerate(panel["series"]))):
        heights = [base + 1.7 * value / top for value in series["y"]]
        axes.fill_between(
            series["x"],
            base,
            heights,
            color=series["colour"],
            alpha=0.75,
            lw=1,
            ec="white",
            zorder=3 + len(heights) - base,
        )
        if "median" in series:
            axes.plot([series["median"]] * 2, [base, base + 0.25], color=INK, lw=2, zorder=4 + len(heights) - base)
    axes.set_yticks(range(len(panel["series"])), [series["name"] for series in panel["series"]])
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.set_xlim(*figure["x"]["domain"])
    axes.set_ylim(-0.1, len(panel["series"]) + 0.8)  # one scale for all panels
    axes.set_xlabel(figure["x"]["label"])
    if panel is figure["panels"][0]:
        axes.set_ylabel(figure["y"]["label"])


def _map(axes: Any, figure: Figure, panel: Figure) -> None:
    for series in panel["series"]:
        axes.scatter(series["x"], series["y"], s=9, color=series["colour"], alpha=0.75, lw=0, label=series["name"])
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal")
    axes.spines[:].set_visible(True)


DRAW = {"lines": _lines, "plane": _plane, "intervals": _intervals, "ridges": _ridges, "map": _map}


def _line(series: Figure) -> dict[str, Any]:
    dash = [float(length) / 2 for length in series["dash"].split()]
    return {"color": series["colour"], "lw": 1.8, "linestyle": (0, tuple(dash)) if dash else "-"}


def _legend(canvas: Any, figure: Figure) -> None:
    """One legend for all panels, under them; ridges carry their names at the axis."""
    if figure["kind"] == "ridges":
        return
    named: dict[str, Any] = {}
    for axes in canvas.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    settings = {"ncols": min(len(named), 3), "markerscale": 2.5 if figure["kind"] == "map" else 1}
    canvas.legend(
        list(named.values()), list(named), loc="outside lower center", frameon=False, labelcolor=INK, **settings
    )
