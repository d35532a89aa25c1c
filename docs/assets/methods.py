"""Draw docs/assets/methods.png from the ledger in docs/notes/comparison.md: each method from one start, one budget.

python docs/assets/methods.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
NOTE = HERE.parent / "notes" / "comparison.md"
LABELLED = {"simcse-supervised", "sbert", "cosent", "angle", "supcon", "ease"}
COLOURS = {False: "#0072B2", True: "#E69F00"}  # Okabe and Ito's, as in the report


def scores() -> dict[str, tuple[float, float]]:
    """The column `STS` of the ledger by method: mean and deviation, which is 0 for a single run."""
    table = next(
        part for part in NOTE.read_text(encoding="utf-8").split("\n\n") if part.startswith("| method | records")
    )
    header, _, *lines = ([cell.strip() for cell in line.split("|")] for line in table.splitlines())
    found = {}
    for cells in lines:
        mean, _, deviation = cells[header.index("STS")].partition(" ± ")
        found[cells[1].replace("`", "")] = float(mean), float(deviation or 0)
    return found


def main() -> None:
    found = scores()
    start, _ = found.pop("start")
    ranked = sorted(found.items(), key=lambda item: item[1])
    figure, axes = plt.subplots(figsize=(8, 6.6), dpi=110)
    for place, (name, (score, deviation)) in enumerate(ranked):
        labelled = name in LABELLED
        colour, marker = COLOURS[labelled], "s" if labelled else "o"
        axes.plot([start, score], [place, place], color=colour, linewidth=2.5, alpha=0.3, solid_capstyle="butt")
        axes.errorbar(score, place, xerr=deviation, fmt=marker, color=colour, markersize=5, capsize=2.5, linewidth=1.3)
    axes.axvline(start, color="0.3", linewidth=1)
    label = f"start, builtin-base by its mean: {start:.1f}"
    axes.annotate(label, (start, len(ranked) - 0.4), xytext=(6, 0), textcoords="offset points", ha="left")
    axes.plot([], [], "o", color=COLOURS[False], label="no labels")
    axes.plot([], [], "s", color=COLOURS[True], label="labels or links")
    axes.set_yticks(range(len(ranked)), [name for name, _ in ranked], fontsize=9)
    axes.set_xlabel("average of seven STS tasks, Spearman × 100, mean ± standard deviation of three seeds")
    axes.set_title("300 steps of each method in its published read-out, from one start", fontsize=11, loc="left")
    axes.set_ylim(-0.7, len(ranked) + 0.3)
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
