"""Draw docs/assets/methods.png from the tables of docs/notes/comparison.md: each method from one start, one budget.

python docs/assets/methods.py
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
NOTE = HERE.parent / "notes" / "comparison.md"
LABELLED = {"simcse-supervised", "sbert", "cosent", "supcon", "ease"}
COLOURS = {False: "#0072B2", True: "#E69F00"}  # Okabe and Ito's, as in the report


def scores() -> dict[str, tuple[float, float]]:
    """STS average and its deviation over three seeds: the first table, then what only the table of transfer has."""
    found: dict[str, tuple[float, float]] = {}
    for table in NOTE.read_text(encoding="utf-8").split("\n\n"):
        if "| STS average |" not in table:
            continue
        header, *lines = (line for line in table.splitlines() if line.startswith("|"))
        place = [cell.strip() for cell in header.split("|")].index("STS average")
        for line in lines:
            cells = [cell.strip() for cell in line.split("|")]
            name = cells[1].strip("`")
            score = re.fullmatch(r"([\d.]+)(?: ± ([\d.]+))?", cells[place])
            if score and re.fullmatch(r"[a-z-]+", name):
                found.setdefault(name, (float(score[1]), float(score[2] or 0)))
    return found


def main() -> None:
    found = scores()
    start = found.pop("start")[0]
    ranked = sorted(found.items(), key=lambda item: item[1][0])
    figure, axes = plt.subplots(figsize=(8, 5.2), dpi=110)
    for place, (name, (score, deviation)) in enumerate(ranked):
        labelled = name in LABELLED
        colour, marker = COLOURS[labelled], "s" if labelled else "o"
        axes.plot([start, score], [place, place], color=colour, linewidth=2.5, alpha=0.45, solid_capstyle="butt")
        axes.errorbar(score, place, xerr=deviation, fmt=marker, color=colour, markersize=6, capsize=2)
    axes.axvline(start, color="0.3", linewidth=1)
    label = f"start, builtin-base: {start:.1f}"
    axes.annotate(label, (start, len(ranked) - 0.4), xytext=(-6, 0), textcoords="offset points", ha="right")
    axes.plot([], [], "o", color=COLOURS[False], label="no labels")
    axes.plot([], [], "s", color=COLOURS[True], label="labels or links")
    axes.set_yticks(range(len(ranked)), [name for name, _ in ranked], fontsize=9)
    axes.set_xlabel("STS average of seven (Spearman × 100, all), mean ± deviation of three seeds")
    axes.set_title("200 steps of each method on its text, from one start", fontsize=11, loc="left")
    axes.set_ylim(-0.7, len(ranked) + 0.1)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower right", frameon=False)
    figure.tight_layout()
    figure.savefig(HERE / "methods.png", metadata={"Software": ""})
    print(f"{len(ranked)} methods and their start, from {NOTE.name}")


if __name__ == "__main__":
    main()
