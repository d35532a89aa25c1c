"""Many logistic regressions at once, against one at a time with scikit-learn: seconds, and whether they agree.

    python benchmarks/logistic.py --data-dir DATA [--tasks CR,TREC] [--model builtin] [--sample 12] [--threads 1]

The fits are those of the transfer suite: for CR the 45 pairs of folds left out, with each of 8 penalties; for TREC ten
folds with each. scikit-learn does a sample of them, spread evenly; its seconds are those of the sample, scaled up. Its
tolerance is --tolerance, by default its own, 1e-4, at which it stops earlier than ours. Both see the same standardised
vectors. Seconds are of processor time. Agreement is the share of the texts left out of a fit for which both predict the
same class; then the accuracy on them, and how far the weights are apart, as a share of the largest.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path

import numpy as np
import torch

import isotrope
from isotrope.evaluation.folds import FOLDS, STRENGTHS, stratified
from isotrope.evaluation.linear import numbered, read_labelled, standardised
from isotrope.evaluation.logistic import fit_many
from isotrope.evaluation.transfer_tasks import task_files

SOLVERS = ("lbfgs", "newton-cholesky")


def problems(labels: torch.Tensor, pairs: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Which rows each fit learns from, [rows, fits], and its strength, [fits]."""
    folds = torch.from_numpy(stratified(labels.numpy(), np.random.default_rng(0)))
    left_out = list(itertools.combinations(range(FOLDS), 2)) if pairs else [(fold,) for fold in range(FOLDS)]
    parts = torch.stack([~sum(folds == fold for fold in out).bool() for out in left_out], dim=1)
    return parts.repeat_interleave(len(STRENGTHS), dim=1), torch.tensor(STRENGTHS).repeat(len(left_out))


def compare(vectors: torch.Tensor, labels: torch.Tensor, pairs: bool, sample: int, tolerance: float) -> list[str]:
    """The lines of one task: ours, then each solver of scikit-learn."""
    from sklearn.linear_model import LogisticRegression

    parts, strengths = problems(labels, pairs)
    start = time.process_time()
    fits = fit_many(vectors, labels, parts, strengths)
    ours = fits.classes(vectors).numpy()
    seconds = time.process_time() - start
    lines = [f"ours | {parts.shape[1]} | {seconds:.1f} | 1 | – | – | –"]
    x, y = vectors.numpy(), labels.numpy()
    chosen = np.linspace(0, parts.shape[1] - 1, sample).round().astype(int)
    for solver in SOLVERS:
        taken, agree, gaps, apart = 0.0, [], [], []
        for number in chosen:
            learn = parts[:, number].numpy()
            twin = LogisticRegression(C=float(strengths[number]), solver=solver, tol=tolerance, max_iter=10_000)
            start = time.process_time()
            twin.fit(x[learn], y[learn])
            taken += time.process_time() - start
            theirs, own = twin.predict(x[~learn]), ours[~learn, number]
            agree.append(float((theirs == own).mean()))
            weights = fits.weights[:, number].T.cpu().numpy()
            apart.append(float(np.abs(weights - twin.coef_).max() / np.abs(twin.coef_).max()))
            gaps.append(float((own == y[~learn]).mean() - (theirs == y[~learn]).mean()))
        whole = taken / len(chosen) * parts.shape[1]
        lines.append(
            f"scikit-learn, {solver} | {parts.shape[1]} | {whole:.1f} | {whole / seconds:.1f} | "
            f"{100 * np.mean(agree):.2f} % (least {100 * min(agree):.2f}) | {100 * np.mean(gaps):+.3f} | "
            f"{max(apart):.0e}"
        )
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data-dir", type=Path, required=True)
    options.add_argument("--model", default="builtin")
    options.add_argument("--tasks", default="CR,TREC")
    options.add_argument("--sample", type=int, default=12)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--tolerance", type=float, default=1e-4)
    chosen = options.parse_args()
    torch.set_num_threads(chosen.threads)
    warnings.simplefilter("ignore")
    encoder = isotrope.load(chosen.model, device="cpu")
    files = task_files(chosen.data_dir / "transfer")
    print("| task | solver | fits | seconds | ratio | same class | accuracy, ours less theirs | weights apart |")
    print("|---|---|---|---|---|---|---|---|")
    for task in chosen.tasks.split(","):
        (texts,), names = read_labelled(files[task][0])
        (labels,) = numbered(names)
        vectors = torch.from_numpy(encoder.encode(texts))
        rows, folded = standardised(vectors, len(texts)), len(files[task]) == 1
        for line in compare(rows, torch.from_numpy(labels), folded, chosen.sample, chosen.tolerance):
            print(f"| {task}, {len(texts):,} × {vectors.shape[1]} | {line} |", flush=True)


if __name__ == "__main__":
    main()
