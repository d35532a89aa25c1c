"""Classes of many texts, as a table for people and as JSON for programs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.encoders.classifier import THRESHOLD, Classifier
from isotrope.encoders.cut_texts import counting_cut
from isotrope.encoders.finite_vectors import check_finite
from isotrope.encoders.prediction import classifier_of, vectors_of
from isotrope.errors import InputError, check_between
from isotrope.files import written_file
from isotrope.heads.label_sets import JOINT

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

WRITTEN = (".tsv", ".jsonl")
SHOWN = 80  # characters of a text in the table
SHOWN_LABELS = 10  # in a summary
BREAKS = re.compile(r"[\t\r\n]+")  # what a cell of a .tsv cannot hold; quotes are text there, as our readers have it
NO_LABEL = "(none)"  # where a text may have several labels and has none


@dataclass(frozen=True)
class Prediction:
    """``label``: the class, labels joined by a bar, or a score; ``probability``: of all that ``label`` says, where the
    model has one; ``best``: the likeliest classes and their probabilities; ``labels``: those given, where a text may
    have several."""

    line: int
    texts: tuple[str, ...]
    label: str
    probability: float | None
    best: dict[str, float]
    labels: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        text: Any = self.texts[0] if len(self.texts) == 1 else list(self.texts)
        if self.probability is None:
            return {"line": self.line, "score": float(self.label), "text": text}
        facts: dict[str, Any] = {"line": self.line, "label": self.label, "probability": self.probability}
        if self.labels is not None:
            facts["labels"] = list(self.labels)
        return {**facts, "probabilities": self.best, "text": text}


@dataclass(frozen=True)
class Predictions:
    """What ``predict`` found; ``cut`` counts the texts that are longer than the model reads."""

    predictions: list[Prediction]
    calibration: str
    cut: int = 0
    empty_left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        found = [one.to_dict() for one in self.predictions]
        return {
            "predictions": found,
            "calibration": self.calibration,
            "cut": self.cut,
            "empty_left_out": self.empty_left_out,
        }

    def rows(self) -> list[dict[str, Any]]:
        return [_row(one) for one in self.predictions]

    def label_counts(self) -> dict[str, int]:
        """How many texts got each label, the most frequent first; scores have none."""
        given = [
            label
            for one in self.predictions
            if one.probability is not None
            for label in ((one.label,) if one.labels is None else one.labels or (NO_LABEL,))
        ]
        return dict(Counter(given).most_common())

    def summary(self, output: Path) -> list[dict[str, Any]]:
        """One row for what was written to ``output``, in place of all of them."""
        row: dict[str, Any] = {"output": str(output), "texts": len(self.predictions)}
        counts = self.label_counts()
        if counts:
            first = [f"{label} {count:,}" for label, count in list(counts.items())[:SHOWN_LABELS]]
            more = [f"and {len(counts) - len(first):,} more labels"] if len(counts) > len(first) else []
            row["labels"] = ", ".join([*first, *more])
        else:
            scores = [float(one.label) for one in self.predictions]
            row["scores"] = f"{min(scores):.4f} to {max(scores):.4f}, mean {np.mean(scores):.4f}"
        return [{**row, "empty_left_out": self.empty_left_out, "cut": self.cut}]

    def write(self, output: Path) -> None:
        """All of them as .tsv or .jsonl, whole texts included."""
        with written_file(output) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
            if output.suffix == ".jsonl":
                file.writelines(json.dumps(one.to_dict(), ensure_ascii=False) + "\n" for one in self.predictions)
                return
            file.write("line\tlabel\tprobability\ttext\n")
            for one in self.predictions:
                chance = "" if one.probability is None else f"{one.probability:.6f}"
                cells = str(one.line), one.label, chance, " ".join(one.texts)
                file.write("\t".join(BREAKS.sub(" ", cell) for cell in cells) + "\n")


def check_written(output: Path) -> Path:
    if output.suffix not in WRITTEN:
        raise InputError(f"{output}: predictions are written as {' or '.join(WRITTEN)}.", setting="output")
    return output


def predict_rows(encoder: Encoder, rows: Sequence[tuple[str, ...]], lines: Sequence[int], top: int = 1) -> Predictions:
    """``rows`` of one text, or of two where the model classifies pairs; ``top`` classes of each are named."""
    classifier = classifier_of(encoder)
    check_between("top", top, 1, 10_000)
    with counting_cut() as counted:
        vectors = vectors_of(encoder, [row[0] if classifier.inputs == 1 else row for row in rows])
    check_finite([row[0] for row in rows], vectors)
    found = _found(classifier, vectors, rows, lines, top)
    calibration = str(classifier.facts.get("calibration", "not calibrated")) if classifier.task != "score" else ""
    return Predictions(found, calibration, counted.cut)


def _found(
    classifier: Classifier, vectors: Any, rows: Sequence[tuple[str, ...]], lines: Sequence[int], top: int
) -> list[Prediction]:
    if classifier.task == "score":
        scores = classifier.predict(vectors)
        return [
            Prediction(line, row, repr(float(s)), None, {}) for line, row, s in zip(lines, rows, scores, strict=True)
        ]
    names, found = classifier.names, []
    for line, row, chances in zip(lines, rows, classifier.predict_proba(vectors), strict=True):
        order = np.argsort(-chances, kind="stable")
        best = {names[place]: round(float(chances[place]), 6) for place in order[:top]}
        if classifier.task == "labels":
            given = chances >= THRESHOLD
            labels = tuple(names[place] for place in np.flatnonzero(given))
            whole = float(np.where(given, chances, 1 - chances).prod())
            found.append(Prediction(line, row, JOINT.join(labels), whole, best, labels))
        else:
            found.append(Prediction(line, row, names[order[0]], float(chances[order[0]]), best))
    return found


def _row(one: Prediction) -> dict[str, Any]:
    text = " / ".join(one.texts)
    shown = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
    if one.probability is None:
        return {"line": one.line, "score": f"{float(one.label):.4f}", "text": shown}
    row = {"line": one.line, "label": one.label, "probability": f"{one.probability:.3f}"}
    others = ", ".join(f"{name} {chance:.3f}" for name, chance in list(one.best.items())[1:])
    return {**row, **({"then": others} if others else {}), "text": shown}
