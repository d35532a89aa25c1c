"""The ledger of docs/notes/comparison.md and the ablations of docs/notes/ablations.md.

    python recipes/compare/ledger.py TEXTS DATA DEV OUTPUT [NAME…] [--parallel 14]

TEXTS is the folder that texts.py wrote, DATA the benchmark data, DEV the clean development set (recipes/development).
`grid` runs every method with each learning rate and one random seed; `methods` takes the rate that the development set
liked best and runs three other seeds; `ablations` runs the arms of all ablations, `pairs` and `mechanisms` those that
have other data (`--only dropout,pooling`: those ablations alone; `--arms opt2,opt3`: those arms of them; `--seed 43`:
that seed alone, so that short jobs share the work); `longer` and `draws` answer two questions that the tables raise.
Whatever is stopped continues with the same command; `tables` prints what is there (ledger_tables.py).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ledger_tables

import isotrope

Arms = Mapping[str, tuple[str, Mapping[str, Any]]]  # label → method, its own settings

BUDGET = {"max_steps": 300, "batch_size": 128, "max_length": 64, "eval_steps": 25}
RATES = (3e-5, 1e-4, 3e-4)
OWN_RATES = {
    "word2vec": (0.1, 0.3, 0.5),  # Adagrad from random vectors: RATES would leave them as they are
    "contrastive-tension": (3e-6, 1e-5, 3e-5),  # plain dot products: a high rate destroys the encoder
}
GRID_SEED, SEEDS = 41, 3  # the three are 42, 43, 44

UNLABELLED = (
    *("simcse", "simclr", "moco", "cert", "sg", "sg-opt", "dclr", "vascl", "ease", "cline", "tacl", "infoword"),
    *("esimcse", "diffcse", "promptbert", "infocse", "sncse", "rankcse", "contrastive-tension"),
    *("tsdae", "declutr", "quick-thoughts", "skip-thought", "dialogue-order"),
    *("mlm", "rtd", "nsp", "sop", "structbert", "mass", "t5-spans", "bart", "word2vec"),
)
# The published rows of nsp and sop were measured when their default was mlm_weight 0: the sentence task alone.
LABELLED = ("simcse-supervised", "sbert", "cosent", "angle", "supcon")
OF_DOCUMENTS = ("tacl",)  # takes sentences, and has one more term where they stand in documents


def ablations() -> dict[str, Arms]:
    """By name; an arm that stands in several of them is run in the first alone."""
    probabilities = {str(p).replace(".", ""): p for p in (0.0, 0.01, 0.05, 0.1, 0.15, 0.2, 0.5)}
    return {
        "dropout": {
            **_varied("simcse", "p", "dropout", probabilities),
            "fixed-mask": ("simcse", {"fixed_mask": True}),
        },
        "views": {
            **_varied("simcse", "crop", "second_edits", {"10": "crop:0.9", "20": "crop:0.8", "30": "crop:0.7"}),
            **_varied("simcse", "delete", "second_edits", {"10": "delete:0.1", "20": "delete:0.2", "30": "delete:0.3"}),
            "delete-one": ("simcse", {"second_edits": "delete-one"}),
            "delete-one-p0": ("simcse", {"second_edits": "delete-one", "dropout": 0.0}),
            "synonym-10": ("simcse", {"second_edits": "synonyms:0.1"}),
            "mask-15": ("simcse", {"second_edits": "mask:0.15"}),
        },
        "hard": _varied(
            "simcse-supervised", "alpha", "hard_negative_weight", {"0": 0.0, "05": 0.5, "1": 1.0, "2": 2.0}
        ),
        "pooling": {
            "cls-head-kept": ("simcse", {"head": "kept"}),
            "cls-no-head": ("simcse", {"head": "none"}),
            **{name: ("simcse", {"pooling": name}) for name in ("mean", "max", "first_last", "last2")},
        },
        "neighbours": {
            **_varied("vascl", "head", "radius", {"r0": 0.0, "r1": 1.0, "r5": 5.0, "r15": 15.0}),
            **{
                f"full-r{radius}": ("vascl", {"radius": float(radius), "neighbourhood_gradient": "full"})
                for radius in (1, 5, 15)
            },
        },
        "debiased": {
            f"{form}-noise-{noise}": ("dclr", {"positive_in_denominator": form == "inside", "noise": float(noise)})
            for form in ("inside", "printed")
            for noise in (0, 1)
        }
        | {
            f"complement-{name}": ("dclr", own)
            for name, own in (("builtin", {"complement": "builtin"}), ("none", {"threshold": None}))
        },
        "objectives": {
            "next-sentence": ("simcse", {"positive": "next-sentence"}),
            "next-sentence-two": ("simcse", {"positive": "next-sentence", "towers": "separate"}),
            "dropout-two": ("simcse", {"towers": "separate"}),
            "delete-one-two": ("simcse", {"second_edits": "delete-one", "towers": "separate"}),
        },
        "temperature": _varied(
            "simcse-supervised", "t", "temperature", {"0001": 0.001, "001": 0.01, "01": 0.1, "1": 1.0}
        ),
        "losses": {
            f"{method}-{loss}": (method, {"loss": loss})
            for method in ("simcse", "simclr")
            for loss in ("info-nce", "nce", "negative-sampling", "triplet")
        },
        "batch": _varied("simcse", "b", "batch_size", {str(size): size for size in (32, 64, 256, 512)}),
        "guided": {
            "base": ("sg", {}),
            **{variant: ("sg", {"variant": variant}) for variant in ("opt1", "opt2", "opt3")},
        },
    }


def mechanisms() -> Arms:
    """MoCo's three, against K. A memory bank needs several passes, so the text is small."""
    queues = {f"queue-{size}": ("moco", {"queue": size, "momentum": 0.99}) for size in (256, 4096, 16384)}
    banks = {f"bank-{size}": ("moco", {"queue": size, "mechanism": "memory-bank"}) for size in (256, 4096, 16384)}
    batches = {
        f"end-to-end-{size}": ("moco", {"batch_size": size, "mechanism": "end-to-end"}) for size in (64, 256, 1024)
    }
    return {**batches, **queues, **banks}


def _varied(method: str, label: str, setting: str, values: Mapping[str, Any]) -> Arms:
    return {f"{label}-{name}": (method, {setting: value}) for name, value in values.items()}


class Ledger:
    """Where the tables come from and go to."""

    def __init__(
        self,
        texts: Path,
        data: Path,
        dev: Path,
        output: Path,
        parallel: int,
        only: Sequence[str] = (),
        labels: Sequence[str] = (),
        seed: int | None = None,
    ) -> None:
        self.texts, self.data, self.dev, self.output, self.parallel = texts, data, dev, output, parallel
        self.only, self.labels, self.seed = only, labels, seed  # of the ablations

    def grid(self) -> None:
        """Every method with each rate, judged by the development set alone."""
        arms = {
            f"{name}-r{number}": (name, {"learning_rate": rate})
            for name in self._methods()
            for number, rate in enumerate(OWN_RATES.get(name, RATES))
        }
        self._compare_all("grid", arms, suite="label-free", seeds=1, seed=GRID_SEED)

    def methods(self) -> None:
        chosen = self._chosen_rates()
        arms = {name: (name, {"learning_rate": rate}) for name, rate in chosen.items()}
        self._compare_all("methods", arms, suite="sts,transfer,retrieval", seeds=SEEDS)

    def longer(self) -> None:
        """Sentence-BERT for more steps: its classifier starts from nothing."""
        arms = {f"sbert-r{number}": ("sbert", {"learning_rate": rate}) for number, rate in enumerate(RATES)}
        for steps in (1200, 3600):
            terms = {"max_steps": steps, "eval_steps": steps // 12}
            self._compare(f"longer-{steps}", arms, suite="sts", seeds=1, seed=GRID_SEED, **terms)

    def draws(self) -> None:
        """SimCSE on [CLS] with eight seeds in each precision: does the precision move it, or the draws of dropout?"""
        arms: Arms = {name: ("simcse", {"precision": name}) for name in ("bfloat16", "float32")}
        self._compare("draws", arms, suite="label-free", seeds=8, learning_rate=1e-4)

    def ablations(self) -> None:
        arms = {f"{name}_{label}": arm for name, arms in self._ablations().items() for label, arm in arms.items()}
        terms: dict[str, Any] = {"seeds": SEEDS}
        if self.seed is not None:  # what is held out stays that of the first seed
            terms = {"seeds": 1, "seed": self.seed, "held_out_seed": GRID_SEED + 1}
        self._compare("ablations", arms, suite="sts", learning_rate=1e-4, **terms)

    def pairs(self) -> None:
        """Supervised SimCSE without hard negatives: pairs alone."""
        data = {"pairs": self.texts / "plain_pairs.tsv.xz"}
        arms: Arms = {"hard_none": ("simcse-supervised", {})}
        self._compare("pairs", arms, data, suite="sts", seeds=SEEDS, learning_rate=1e-4)

    def mechanisms(self) -> None:
        data = {"sentences": self.texts / "twenty_thousand.txt.xz"}
        arms = {f"mechanisms_{label}": arm for label, arm in mechanisms().items()}
        self._compare("mechanisms", arms, data, suite="sts", seeds=SEEDS, learning_rate=1e-4, max_steps=500)

    def tables(self) -> None:
        """The ledger and the ablations as tables of Markdown."""
        ledger_tables.main(self.output)

    def _ablations(self) -> dict[str, Arms]:
        chosen = {name: arms for name, arms in ablations().items() if not self.only or name in self.only}
        if not self.labels:
            return chosen
        return {name: {key: arm for key, arm in arms.items() if key in self.labels} for name, arms in chosen.items()}

    def _methods(self) -> tuple[str, ...]:
        """Those whose text is there: CERT needs pairs that `isotrope paraphrase` makes."""
        paraphrased = "pairs" in self._data()
        return tuple(name for name in (*UNLABELLED, *LABELLED) if name != "cert" or paraphrased)

    def _chosen_rates(self) -> dict[str, float]:
        files = [self.output / name / "comparison.json" for name in ("grid", "grid-documents")]
        runs = [run for file in files if file.is_file() for run in json.loads(file.read_text(encoding="utf-8"))["runs"]]
        scores = {run["name"]: run["measures"].get("dev_spearman", -1.0) for run in runs}
        chosen = {}
        for name in self._methods():
            rates = enumerate(OWN_RATES.get(name, RATES))
            found = {rate: scores[f"{name}-r{n}"] for n, rate in rates if f"{name}-r{n}" in scores}
            if found:
                chosen[name] = max(found, key=lambda rate: found[rate])
                print(name, chosen[name], {rate: round(score, 2) for rate, score in found.items()}, flush=True)
        return chosen

    def _compare_all(self, name: str, arms: Arms, **terms: Any) -> None:
        apart = {label: arm for label, arm in arms.items() if arm[0] in OF_DOCUMENTS}
        self._compare(name, {label: arm for label, arm in arms.items() if label not in apart}, **terms)
        if apart:
            data = {"sentences": self.texts / "documents.txt.xz"}
            self._compare(f"{name}-documents", apart, data, **terms)

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
        print(f"{name}: {len(found.runs)} runs, {len(found.failures)} failed", *found.failures, sep="\n", flush=True)

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
    parser.add_argument("names", nargs="*", default=["grid", "methods", "pairs", "ablations", "mechanisms", "tables"])
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--only", default="", help="of the ablations these alone, joined by commas")
    parser.add_argument("--arms", default="", help="of their arms these alone, joined by commas")
    parser.add_argument("--seed", type=int, help="of their seeds this one alone")
    given = parser.parse_args()
    ledger = Ledger(
        given.texts,
        given.data,
        given.dev,
        given.output,
        given.parallel,
        [name for name in given.only.split(",") if name],
        [name for name in given.arms.split(",") if name],
        given.seed,
    )
    for name in given.names:
        getattr(ledger, name)()


if __name__ == "__main__":
    main()
