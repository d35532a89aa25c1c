"""The ledger of docs/notes/comparison.md and the ablations of docs/notes/ablations.md, each table by one call.

    python recipes/compare/ledger.py TEXTS DATA DEV OUTPUT [NAME…] [--parallel 14]

TEXTS is the folder that texts.py wrote, DATA the benchmark data, DEV the clean development set
(recipes/development). A NAME is `grid`, `methods` or an ablation; all by default, in this order. `grid` runs every
method with each learning rate, one random seed, and `methods` takes the rate that the development set liked best, then
runs three other seeds. Whatever is stopped continues with the same command.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import isotrope

Arms = Mapping[str, tuple[str, Mapping[str, Any]]]  # label → method, its own settings

BUDGET = {"max_steps": 300, "batch_size": 256, "max_length": 64, "eval_steps": 100}
RATES = (3e-5, 1e-4, 3e-4)
GRID_SEED, SEEDS = 41, 3  # the three are 42, 43, 44

UNLABELLED = (
    *("simcse", "simclr", "moco", "cert", "sg", "sg-opt", "dclr", "vascl", "ease", "cline", "tacl", "infoword"),
    *("tsdae", "declutr", "quick-thoughts", "skip-thought", "dialogue-order"),
    *("mlm", "rtd", "nsp", "sop", "structbert", "mass", "t5-spans", "bart", "word2vec"),
)
LABELLED = ("simcse-supervised", "sbert", "cosent", "angle", "supcon")


def ablations() -> dict[str, Arms]:
    return {
        "views": {
            "none": ("simcse", {}),
            **_varied("simcse", "crop", "second_edits", {"10": "crop:0.9", "20": "crop:0.8", "30": "crop:0.7"}),
            **_varied("simcse", "delete", "second_edits", {"10": "delete:0.1", "20": "delete:0.2", "30": "delete:0.3"}),
            "delete-one": ("simcse", {"second_edits": "delete-one"}),
            "delete-one-p0": ("simcse", {"second_edits": "delete-one", "dropout": 0.0}),
            "synonym-10": ("simcse", {"second_edits": "synonyms:0.1"}),
            "mask-15": ("simcse", {"second_edits": "mask:0.15"}),
        },
        "dropout": {
            **_varied(
                "simcse", "p", "dropout", {str(p).replace(".", ""): p for p in (0.0, 0.01, 0.05, 0.1, 0.15, 0.2, 0.5)}
            ),
            "fixed-mask": ("simcse", {"fixed_mask": True}),
        },
        "pooling": {
            "cls": ("simcse", {}),
            "cls-head-kept": ("simcse", {"head": "kept"}),
            "cls-no-head": ("simcse", {"head": "none"}),
            **{name: ("simcse", {"pooling": name}) for name in ("mean", "max", "first_last", "last2")},
        },
        "temperature": _varied(
            "simcse-supervised", "t", "temperature", {str(t).replace(".", ""): t for t in (0.001, 0.01, 0.05, 0.1, 1.0)}
        ),
        "batch": _varied("simcse", "b", "batch_size", {str(size): size for size in (32, 64, 128, 256, 512, 1024)}),
        "hard": _varied(
            "simcse-supervised",
            "alpha",
            "hard_negative_weight",
            {str(a).replace(".", ""): a for a in (0.0, 0.5, 1.0, 2.0)},
        ),
        "plain-pairs": {"pairs": ("simcse-supervised", {})},
        "mechanisms": {
            f"{mechanism}-{size}": ("moco", {"mechanism": mechanism, "queue": size, "momentum": 0.99})
            for mechanism in ("queue", "memory-bank")
            for size in (256, 1024, 4096, 16384)
        }
        | {f"end-to-end-{size}": ("moco", {"mechanism": "end-to-end", "batch_size": size}) for size in (256, 1024)},
        "losses": {
            f"{method}-{loss}": (method, {"loss": loss})
            for method in ("simcse", "simclr", "moco")
            for loss in ("info-nce", "nce", "negative-sampling", "triplet")
        },
        "neighbours": {
            **_varied("vascl", "head", "radius", {"r0": 0.0, "r1": 1.0, "r5": 5.0, "r15": 15.0}),
            **{
                f"full-r{radius}": ("vascl", {"radius": float(radius), "neighbourhood_gradient": "full"})
                for radius in (1, 5, 15)
            },
        },
        "debiased": {
            "plain": ("simcse", {}),
            "printed": ("dclr", {"positive_in_denominator": False}),
            "printed-no-noise": ("dclr", {"positive_in_denominator": False, "noise": 0.0}),
            "positive-in": ("dclr", {"positive_in_denominator": True}),
            "positive-in-no-noise": ("dclr", {"positive_in_denominator": True, "noise": 0.0}),
        },
        "guided": {
            "base": ("sg", {}),
            **{variant: ("sg", {"variant": variant}) for variant in ("opt1", "opt2", "opt3")},
        },
    }


def _varied(method: str, label: str, setting: str, values: Mapping[str, Any]) -> Arms:
    return {f"{label}-{name}": (method, {setting: value}) for name, value in values.items()}


class Ledger:
    """Where the tables come from and go to."""

    def __init__(self, texts: Path, data: Path, dev: Path, output: Path, parallel: int) -> None:
        self.texts, self.data, self.dev, self.output, self.parallel = texts, data, dev, output, parallel

    def grid(self) -> None:
        """Every method with each rate, judged by the development set alone."""
        arms = {
            f"{name}-r{number}": (name, {"learning_rate": rate})
            for name in self._methods()
            for number, rate in enumerate(RATES)
        }
        self._compare("grid", arms, suite="label-free", seeds=1, seed=GRID_SEED)

    def methods(self) -> None:
        chosen = self._chosen_rates()
        arms = {name: (name, {"learning_rate": rate}) for name, rate in chosen.items()}
        self._compare("methods", arms, suite="sts,transfer,retrieval", seeds=SEEDS)

    def ablation(self, name: str) -> None:
        pairs = {"pairs": self.texts / "plain_pairs.tsv.xz"} if name == "plain-pairs" else None
        self._compare(name, ablations()[name], suite="sts", seeds=SEEDS, data=pairs, learning_rate=1e-4)

    def _methods(self) -> tuple[str, ...]:
        return (*UNLABELLED, *LABELLED)

    def _chosen_rates(self) -> dict[str, float]:
        runs = json.loads((self.output / "grid" / "comparison.json").read_text(encoding="utf-8"))["runs"]
        scores = {run["name"]: run["measures"].get("dev_spearman", -1.0) for run in runs}
        chosen = {}
        for name in self._methods():
            found = {rate: scores[f"{name}-r{n}"] for n, rate in enumerate(RATES) if f"{name}-r{n}" in scores}
            if found:
                chosen[name] = max(found, key=lambda rate: found[rate])
                print(name, chosen[name], {rate: round(100 * score, 2) for rate, score in found.items()}, flush=True)
        return chosen

    def _compare(self, name: str, arms: Arms, data: Any = None, **terms: Any) -> None:
        found = isotrope.compare(
            data or self._data(),
            [f"{label}={method}" for label, (method, _) in arms.items()],
            self.output / name,
            eval_data=self.dev,
            data_dir=self.data,
            parallel=self.parallel,
            own={label: dict(settings) for label, (_, settings) in arms.items() if settings},
            **{**BUDGET, **terms},
        )
        found.write_markdown(self.output / f"{name}.md")
        print(f"{name}\n{found.table()}", flush=True)

    def _data(self) -> dict[str, Path]:
        files = {
            "sentences": "sentences.txt",
            "documents": "documents.txt",
            "dialogues": "dialogues.txt",
            "linked": "linked.tsv",
            "triples": "triples.tsv",
            "labelled-pairs": "labelled_pairs.tsv",
            "scored-pairs": "scored_pairs.tsv",
            "pairs": "paraphrases.tsv",
            "labelled": "labelled.tsv",
        }
        found = {name: self.texts / f"{file}.xz" for name, file in files.items()}
        return {name: file for name, file in found.items() if file.is_file()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for place in ("texts", "data", "dev", "output"):
        parser.add_argument(place, type=Path)
    parser.add_argument("names", nargs="*", default=["grid", "methods", *ablations()])
    parser.add_argument("--parallel", type=int, default=1)
    given = parser.parse_args()
    ledger = Ledger(given.texts, given.data, given.dev, given.output, given.parallel)
    for name in given.names:
        {"grid": ledger.grid, "methods": ledger.methods}.get(name, lambda name=name: ledger.ablation(name))()


if __name__ == "__main__":
    main()
