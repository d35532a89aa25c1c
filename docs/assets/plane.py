"""Draw docs/assets/plane.svg: alignment against uniformity of four SimCSE arms, every checkpoint of one seed.

python docs/assets/plane.py OUTPUT/ablations        (the folder of runs that recipes/compare/ledger.py wrote)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
SEED = 42
ARMS = {  # run → label, colour (Okabe and Ito's, as in the report), marker
    "dropout_p-01": ("[CLS], dropout 0.1", "#0072B2", "o"),
    "dropout_p-00": ("[CLS], no dropout", "#E69F00", "s"),
    "dropout_fixed-mask": ("[CLS], one mask for both views", "#009E73", "^"),
    "pooling_mean": ("mean, dropout 0.1", "#CC79A7", "D"),
}
STARTS = {"dropout_p-01": "start, [CLS]", "pooling_mean": "start, mean"}


def trail(run: Path) -> tuple[list[int], list[float], list[float], list[float]]:
    """Steps, uniformity, alignment and Spearman on the development set, evaluation by evaluation."""
    with (run / "metrics.jsonl").open(encoding="utf-8") as lines:
        found = [line for line in map(json.loads, lines) if "eval_alignment" in line.get("evaluation", {})]
    keys = ("eval_uniformity", "eval_alignment", "spearman")
    uniformity, alignment, scores = ([line["evaluation"][key] for line in found] for key in keys)
    return [line["step"] for line in found], uniformity, alignment, scores


def main(runs: Path) -> None:
    plt.rcParams["svg.hashsalt"] = "plane"  # the same picture, the same file
    figure, axes = plt.subplots(figsize=(8, 5))
    for name, (label, colour, marker) in ARMS.items():
        steps, uniformity, alignment, scores = trail(runs / f"{name}-seed-{SEED}")
        best = max(range(len(steps)), key=scores.__getitem__)
        legend = f"{label}: {scores[best]:.1f} at step {steps[best]}, {scores[-1]:.1f} at step {steps[-1]}"
        axes.plot(uniformity, alignment, f"-{marker}", color=colour, linewidth=1.2, markersize=4, label=legend)
        axes.plot(uniformity[best], alignment[best], marker, color=colour, markersize=9, markeredgecolor="black")
        if name in STARTS:
            start = uniformity[0], alignment[0]
            axes.annotate(STARTS[name], start, (-6, -12), textcoords="offset points", ha="right", fontsize=9)
        print(legend)
    axes.set_xlabel("uniformity (lower is better)")
    axes.set_ylabel("alignment (lower is better)")
    axes.set_title("SimCSE on the development set, a mark every 25 steps, the best one large", fontsize=11, loc="left")
    axes.legend(title="Spearman × 100", loc="upper right", frameon=False, fontsize=9)
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(HERE / "plane.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
