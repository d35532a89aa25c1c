"""Supervised contrast against cross-entropy on labelled text: accuracy, calibration, and text with damage.

    python benchmarks/supcon_cross_entropy.py --data-dir DATA [--set trec] [--seeds 3] [--steps 500]
    [--keep RUNS.jsonl]

Three arms from one start, with the same texts, updates and seeds. `cross-entropy`: `fine-tune`, judged by its own head.
`cross-entropy, linear`: the same encoder, frozen, and a new logistic regression on its vectors. `supcon`: the published
protocol, two edited views and the contrast through a head, then a logistic regression on frozen vectors. Accuracy,
the expected calibration error (15 bins) and accuracy on damaged test texts: words deleted, or two neighbouring letters
of a word swapped, at growing shares. Mean over seeds; the difference to cross-entropy seed by seed with an interval of
95 % (Student's t). The rate of each method is chosen from ``--rates`` by accuracy on a tenth of the training texts,
with the first seed. ``--keep`` writes the rates and every seed to a file, and a repeated call makes what is missing.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from kept_runs import KeptRuns
from safetensors.torch import load_file
from scipy.stats import t
from torch import Tensor, nn

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.linear import Labelled, numbered, read_labelled, standardised
from isotrope.evaluation.logistic import fit_many
from isotrope.measures.classification import calibration_error, top_accuracy
from isotrope.towers.heads import tanh_head
from isotrope.training.state import TrainingWarning
from isotrope.views.edits import parse_edits
from isotrope.views.text_damage import with_typos
from isotrope.views.two_views import edited

SHARES = (0.1, 0.2, 0.4)
HEAD = "method.tower.head.module."
Classifier = Callable[[Tensor], Tensor]  # vectors → scores [n, classes]


@dataclass(frozen=True)
class Arm:
    """An encoder and what classifies its vectors."""

    encoder: Encoder
    classifier: Classifier


def own_head(folder: Path, encoder: Encoder, classes: int) -> Classifier:
    """The head of fine-tuning, from the run's last checkpoint."""
    width = encoder.dimension
    head = nn.Sequential(tanh_head(width), nn.Dropout(), nn.Linear(width, classes)).eval()
    (last,) = (folder / "checkpoints").glob("step-*/weights.safetensors")
    found = {name.removeprefix(HEAD): value for name, value in load_file(last).items() if name.startswith(HEAD)}
    head.load_state_dict(found)
    return head.requires_grad_(False).to(encoder.device)


def linear(encoder: Encoder, train: Labelled, labels: Tensor) -> Classifier:
    """Logistic regression on frozen, standardised vectors."""
    learned = vectors_of(encoder, ids_of(encoder, train.texts[0]))
    whole = torch.ones(len(labels), 1, dtype=torch.bool, device=encoder.device)
    fits = fit_many(standardised(learned, len(learned)), labels, whole, torch.ones(1, device=encoder.device))

    def scores(vectors: Tensor) -> Tensor:
        rows = standardised(torch.cat([learned, vectors]), len(learned))[len(learned) :]
        found = rows.to(fits.weights.dtype) @ fits.weights[:, 0] + fits.biases[0]
        return torch.cat([torch.zeros_like(found), found], dim=1) if found.shape[1] == 1 else found

    return scores


def ids_of(encoder: Encoder, texts: Sequence[str]) -> list[np.ndarray]:
    ids, lengths = encoder.text_tokenizer.flat(list(texts))
    return np.split(ids, np.cumsum(lengths)[:-1])


@torch.no_grad()
def vectors_of(encoder: Encoder, rows: list[np.ndarray], size: int = 256) -> Tensor:
    encoder.eval()
    parts = (encoder.frame(rows[start : start + size]).to(encoder.device) for start in range(0, len(rows), size))
    return torch.cat([encoder.embed(part)[0] for part in parts])


def damaged(encoder: Encoder, texts: Sequence[str], seed: int) -> dict[str, list[np.ndarray]]:
    """The test texts, whole and with damage, by what was done."""
    found = {"whole": ids_of(encoder, texts)}
    for share in SHARES:
        edit = parse_edits(f"delete:{share}")(encoder.text_tokenizer)
        found[f"deleted {share:g}"] = edited(found["whole"], edit, np.random.default_rng([seed, 1]))
        rng = np.random.default_rng([seed, 2])
        found[f"typos {share:g}"] = ids_of(encoder, [with_typos(text, share, rng) for text in texts])
    return found


def measured(arm: Arm, texts: Sequence[str], labels: Tensor, seed: int) -> dict[str, float]:
    found = {}
    for name, rows in damaged(arm.encoder, texts, seed).items():
        scores = arm.classifier(vectors_of(arm.encoder, rows))
        found[f"accuracy, {name}"] = 100 * float(top_accuracy(scores, labels))
        if name == "whole":
            confidence, found_class = scores.softmax(dim=1).max(dim=1)
            found["calibration error"] = 100 * float(calibration_error(confidence, found_class == labels))
    return found


def arms(train: Labelled, rates: dict[str, float], seed: int, folder: Path, chosen: argparse.Namespace) -> dict:
    """Each arm trained with its rate; ``rates`` names the methods that are needed."""
    labels = torch.from_numpy(numbered(train.labels)[0])
    rows = [{"text": text, "label": label} for text, label in zip(train.texts[0], train.labels, strict=True)]
    found = {}
    for method, rate in rates.items():
        output = folder / f"{method}-{seed}-{rate}-{len(rows)}"
        run = isotrope.train(
            method,
            rows,
            chosen.model,
            output,
            max_steps=chosen.steps,
            eval_steps=chosen.steps,
            batch_size=chosen.batch_size,
            max_length=chosen.length,
            learning_rate=rate,
            seed=seed,
            held_out=0,
            final_table=False,
        )
        encoder, wanted = run.encoder, labels.to(run.encoder.device)
        if method == "fine-tune":
            head = own_head(output, encoder, int(labels.max()) + 1)
            found["cross-entropy"] = Arm(encoder, head)
            found["cross-entropy, linear"] = Arm(encoder, linear(encoder, train, wanted))
        else:
            found[method] = Arm(encoder, linear(encoder, train, wanted))
        shutil.rmtree(output)
    return found


def choose_rates(train: Labelled, folder: Path, chosen: argparse.Namespace) -> dict[str, float]:
    """For each method the rate with the highest accuracy on a tenth of the training texts."""
    order = np.random.default_rng(0).permutation(len(train.labels))
    aside, rest = (part.tolist() for part in np.split(order, [len(order) // 10]))
    learned, judged = (
        Labelled(([train.texts[0][i] for i in part],), [train.labels[i] for i in part]) for part in (rest, aside)
    )
    wanted = torch.from_numpy(numbered(learned.labels, judged.labels)[1])
    best = {}
    for method in ("fine-tune", "supcon"):
        scores = {}
        for rate in chosen.rates:
            arm = next(iter(arms(learned, {method: rate}, 0, folder, chosen).values()))
            vectors = vectors_of(arm.encoder, ids_of(arm.encoder, judged.texts[0]))
            scores[rate] = float(top_accuracy(arm.classifier(vectors), wanted.to(vectors.device)))
        best[method] = max(scores, key=lambda rate: scores[rate])
        listed = ", ".join(f"{rate:g}: {100 * score:.1f}" for rate, score in scores.items())
        print(f"{method}: rate {best[method]:g} (held-out accuracy {listed})", flush=True)
    return best


def of_seed(
    train: Labelled,
    rates: dict[str, float],
    seed: int,
    folder: Path,
    chosen: argparse.Namespace,
    texts: Sequence[str],
    wanted: Tensor,
) -> dict[str, dict[str, float]]:
    """Each arm trained with one seed, and its measures on the test texts."""
    found = arms(train, rates, seed, folder, chosen)
    return {name: measured(arm, texts, wanted.to(arm.encoder.device), seed) for name, arm in found.items()}


def interval(values: np.ndarray, sign: str = "") -> str:
    if len(values) < 2:
        return f"{values.mean():{sign}.2f}"
    reach = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():{sign}.2f} ± {reach:.2f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data-dir", type=Path, required=True)
    options.add_argument("--set", default="trec", help="trec, sst2 or sst5")
    options.add_argument("--model", default="builtin-base")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--steps", type=int, default=500)
    options.add_argument("--batch-size", type=int, default=64)
    options.add_argument("--length", type=int, default=64)
    options.add_argument("--rates", type=float, nargs="+", default=[5e-5, 1e-4, 2e-4])
    options.add_argument("--texts", type=int, help="training and test texts at most, for a small run")
    options.add_argument("--keep", type=Path, help="a file of runs: those it has are not made again")
    chosen = options.parse_args()
    warnings.simplefilter("ignore", TrainingWarning)
    files = (chosen.data_dir / "transfer" / f"{chosen.set}.{part}.tsv.gz" for part in ("train", "test"))
    train, test = (
        Labelled((read.texts[0][: chosen.texts],), read.labels[: chosen.texts])
        for read in (read_labelled(file) for file in files)
    )
    wanted = torch.from_numpy(numbered(train.labels, test.labels)[1])
    results: dict[str, list[dict[str, float]]] = {}
    kept = KeptRuns(chosen.keep)
    terms = {name: getattr(chosen, name) for name in ("set", "model", "steps", "batch_size", "length", "texts")}
    with tempfile.TemporaryDirectory() as place:
        tried = {**terms, "rates": chosen.rates}
        rates = kept.get(tried, partial(choose_rates, train, Path(place), chosen))
        for seed in range(1, chosen.seeds + 1):
            make = partial(of_seed, train, rates, seed, Path(place), chosen, test.texts[0], wanted)
            for name, found in kept.get({**terms, "chosen": rates, "seed": seed}, make).items():
                results.setdefault(name, []).append(found)
    names = list(results)
    print(f"\n| {chosen.set} | {' | '.join(names)} | supcon − cross-entropy |\n|{'---|' * (len(names) + 2)}")
    for measure in results[names[0]][0]:
        rows = {name: np.array([found[measure] for found in each]) for name, each in results.items()}
        difference = interval(rows["supcon"] - rows["cross-entropy"], "+")
        print(f"| {measure} | {' | '.join(interval(values) for values in rows.values())} | {difference} |")
    print(f"\n{chosen.model}, {chosen.seeds} seeds, {chosen.steps} updates of {chosen.batch_size}, rates {rates}")


if __name__ == "__main__":
    main()
