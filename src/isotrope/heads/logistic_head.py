"""Logistic regression on frozen vectors, its penalty and its temperature by cross-validation.

    x = (v − μ) / σ        W, b = argmin  Σ_i −log softmax(W x_i + b)_{y_i}  +  ‖W‖² / (2C)

σ is one number, the root mean square of all centred entries: directions keep their strength, which ten texts a class
cannot measure. C is the one with the lowest log loss on rows that were held out, and the temperature is fitted to the
scores of those rows; the classifier itself then learns from all of them. What is said of its calibration is measured
with the temperature of the other folds, so neither the classifier nor the temperature knows the row that it is judged
on; C, one of six, was chosen on all of them. Labels that do not exclude each other have a regression each. Sibling: the
suites linear and transfer measure an encoder so; this keeps the classifier.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from isotrope.encoders.classifier import Classifier, Layer, probabilities
from isotrope.encoders.finite_vectors import check_given
from isotrope.heads.label_sets import LabelSets
from isotrope.measures.classification import calibration_error
from isotrope.measures.temperature_scaling import fit_temperature, log_loss
from isotrope.progress import bar, say

STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # values of C that are tried
WITHOUT_FOLDS = 0.03  # C where nothing can be held out
CROSS_VALIDATED = 4000  # rows at most: more tell nothing new about one number
FOLDS = 5
SHOWN = 8  # classes that are named
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fitted:
    """``measures`` are those of the held-out rows of the folds; empty where no row could be held out."""

    classifier: Classifier
    strength: float
    measures: dict[str, float]


def fit_head(
    vectors: npt.NDArray[np.float32],
    labels: LabelSets,
    strength: float | None = None,
    balanced: bool = False,
    seed: int = 42,
    texts: Sequence[str] | None = None,
) -> Fitted:
    """A classifier for ``vectors`` [n, d]. ``strength``: C, instead of the best of ``STRENGTHS``; ``balanced``: rare
    classes count as much as common ones; ``texts``: those of the rows, so that copies of one are held out together."""
    check_given(vectors)
    inputs = vectors.astype(np.float64)
    mean = inputs.mean(axis=0)
    spread = float(np.sqrt(((inputs - mean) ** 2).mean())) or 1.0
    inputs = (inputs - mean) / spread
    rng = np.random.default_rng(seed)
    chosen = _some(labels, rng)
    sample = LabelSets(labels.names, labels.wanted[chosen])
    folds = sample.folds(FOLDS, rng, None if texts is None else [texts[row] for row in chosen])
    measured = folds >= 0
    _say_unjudged(sample, measured)
    tried = (strength,) if strength is not None else STRENGTHS if measured.any() else (WITHOUT_FOLDS,)
    held = {}
    with bar("choosing the penalty", len(tried)) as advance:
        for one in tried if measured.any() else ():
            held[one] = _held_out(inputs[chosen], sample, folds, one, balanced)[measured]
            advance()
    wanted = sample.wanted[measured]
    best = min(tried, key=lambda one: log_loss(held[one], wanted)) if held else tried[0]
    weight, bias = _fit(inputs, labels, best, balanced)
    layer = Layer(weight / spread, bias - weight @ mean / spread)
    temperature = fit_temperature(held[best], wanted) if held else 1.0
    others = of_other_folds(held[best], wanted, folds[measured]) if held else np.empty((0, 1))
    measures = measures_of(held[best], wanted, others, labels.task) if held else {}
    if held and labels.task == "classes":
        _say_weak(labels.names, held[best], wanted)
    calibration = f"temperature of {len(wanted):,} held-out rows of {FOLDS} folds" if held else "not calibrated"
    facts = {"rows": len(inputs), "strength": best, "measures": measures, "calibration": calibration}
    classifier = Classifier((layer,), labels.names, labels.task, temperature=temperature, facts=facts)
    return Fitted(classifier, best, measures)


def _say_unjudged(labels: LabelSets, measured: npt.NDArray[np.bool_]) -> None:
    """Classes that no fold holds out: how well they are predicted, no measure says."""
    if labels.task != "classes":
        return
    rows = np.bincount(labels.wanted, minlength=len(labels.names))
    held = np.bincount(labels.wanted[measured], minlength=len(labels.names))
    alone = [name for name, has, judged in zip(labels.names, rows, held, strict=True) if has and not judged]
    if alone:
        more = f" and {len(alone) - SHOWN} more" if len(alone) > SHOWN else ""
        have = "class has" if len(alone) == 1 else "classes have"
        say(
            f"{len(alone)} {have} one text only: {', '.join(alone[:SHOWN])}{more}; they are learned, but no text is "
            "left to judge them by, so the measures leave them out. Add texts, or join rare classes."
        )


def _say_weak(names: Sequence[str], scores: Floats, wanted: npt.NDArray[np.int64]) -> None:
    """Classes that are mostly missed where most texts are right: one accuracy hides them."""
    right = scores.argmax(axis=1) == wanted
    rows, found = (np.bincount(some, minlength=len(names)) for some in (wanted, wanted[right]))
    weak = sorted(np.flatnonzero(2 * found < rows).tolist(), key=lambda one: found[one] / rows[one])
    if weak and right.mean() >= 0.5:
        shown = ", ".join(f"{names[one]} {found[one]} of {rows[one]}" for one in weak[:SHOWN])
        more = f" and {len(weak) - SHOWN} more" if len(weak) > SHOWN else ""
        say(
            f"{len(weak)} of {len(names)} classes are found in fewer than half of their held-out texts: {shown}{more}. "
            "Bring more texts of them, or set balanced true, so that each class counts alike."
        )


def of_other_folds(scores: Floats, wanted: npt.NDArray[np.int64], folds: npt.NDArray[np.int64]) -> Floats:
    """[n, 1]: for each row the temperature that the rows of the other folds give."""
    found = np.ones((len(scores), 1))
    for fold in np.unique(folds):
        rest = folds != fold
        found[~rest] = fit_temperature(scores[rest], wanted[rest])
    return found


def measures_of(
    scores: Floats, wanted: npt.NDArray[np.int64], temperature: float | Floats, task: str
) -> dict[str, float]:
    """Accuracy, the commonest class's, log loss, and the calibration error before and after the temperature (one, or
    one a row)."""
    if not len(scores):
        return {}
    found = probabilities(scores / temperature, task)
    losses = {"log_loss": log_loss(scores / temperature, wanted)}
    if task == "labels":
        given = found >= 0.5
        hits, total = (given & (wanted == 1)).sum(), given.sum() + wanted.sum()
        shares = {
            "exact": float((given == (wanted == 1)).all(axis=1).mean()),
            "micro_f1": float(2 * hits / max(total, 1)),
        }
        confidences = np.where(given, found, 1 - found).ravel()
        right = (given == (wanted == 1)).ravel()
        return {**shares, **losses, "calibration_error": _error(confidences, right)}
    right = found.argmax(axis=1) == wanted
    before = probabilities(scores, task).max(axis=1)
    return {
        "accuracy": float(right.mean()),
        "guess": float(np.bincount(wanted).max() / len(wanted)),
        **losses,
        "calibration_error": _error(found.max(axis=1), right),
        "calibration_error_before": _error(before, right),
    }


def _error(confidences: Floats, right: npt.NDArray[np.bool_]) -> float:
    return float(calibration_error(torch.from_numpy(confidences), torch.from_numpy(right)))


def _some(labels: LabelSets, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Rows for the folds: all of them, or so many drawn at random."""
    rows = len(labels.wanted)
    return np.arange(rows) if rows <= CROSS_VALIDATED else np.sort(rng.permutation(rows)[:CROSS_VALIDATED])


def _held_out(
    inputs: Floats, labels: LabelSets, folds: npt.NDArray[np.int64], strength: float, balanced: bool
) -> Floats:
    """[n, outputs]: scores of each row by the classifier of the other folds."""
    scores = np.zeros((len(inputs), len(labels.names)))
    for fold in range(folds.max() + 1):
        rest = folds != fold
        weight, bias = _fit(inputs[rest], LabelSets(labels.names, labels.wanted[rest]), strength, balanced)
        scores[~rest] = inputs[~rest] @ weight.T + bias
    return scores


def _fit(inputs: Floats, labels: LabelSets, strength: float, balanced: bool) -> tuple[Floats, Floats]:
    """W [classes, d] and b [classes]. A class that no row has gets a score far below the others."""
    width, outputs = inputs.shape[1], len(labels.names)
    weight, bias = np.zeros((outputs, width)), np.full(outputs, -20.0)
    if labels.wanted.ndim == 2:
        for number in range(outputs):
            weight[number], bias[number] = _one_label(inputs, labels.wanted[:, number], strength, balanced)
        return weight, bias
    present = np.unique(labels.wanted)
    if len(present) == 1:
        bias[present[0]] = 0.0
        return weight, bias
    coefficients, constants = _regression(inputs, labels.wanted, strength, balanced)
    if len(present) == 2:  # one row of coefficients, for the second class
        weight[present] = np.concatenate([-coefficients / 2, coefficients / 2])
        bias[present] = np.concatenate([-constants / 2, constants / 2])
    else:
        weight[present], bias[present] = coefficients, constants
    return weight, bias


def _one_label(inputs: Floats, wanted: npt.NDArray[np.int64], strength: float, balanced: bool) -> tuple[Floats, float]:
    """Of a label that all rows have, or none, only its share is known."""
    if len(np.unique(wanted)) < 2:
        share = (wanted.sum() + 0.5) / (len(wanted) + 1.0)
        return np.zeros(inputs.shape[1]), float(np.log(share / (1 - share)))
    coefficients, constants = _regression(inputs, wanted, strength, balanced)
    return coefficients[0], float(constants[0])


def _regression(
    inputs: Floats, wanted: npt.NDArray[np.int64], strength: float, balanced: bool
) -> tuple[Floats, Floats]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=strength, max_iter=300, class_weight="balanced" if balanced else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 300 steps of L-BFGS are near enough
        model.fit(inputs, wanted)
    return np.asarray(model.coef_), np.asarray(model.intercept_)
