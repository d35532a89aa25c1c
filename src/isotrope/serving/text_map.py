"""Lines on a plane: who is near whom, in which group, and which lines say the same twice."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.report.sentence_map import lay_out

SAME = 0.95  # cosine from which two lines are shown as near-duplicates
CLOSE = 0.1  # or this share of the usual distance
GROUPS = 6
LEAST = 6  # different lines that t-SNE can place; fewer lie on their principal axes
SEED = 42
WORD = re.compile(r"[^\W\d_]{3,}")
Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


def text_map(lines: list[str], vectors: Floats) -> dict[str, Any]:
    """Points within the unit circle, a group for each line, names of the groups, and the duplicates."""
    doubles = vectors.astype(np.float64)
    groups = grouped(doubles)
    return {
        "points": placed(doubles).round(4).tolist(),
        "groups": groups.tolist(),
        "names": named(lines, groups),
        "duplicates": duplicates(lines, vectors),
    }


def placed(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """[lines, 2]; equal lines share their point."""
    unique, back = np.unique(vectors.round(6), axis=0, return_inverse=True)
    if len(unique) >= LEAST:
        points = lay_out(unique, SEED)
    else:
        centred = unique - unique.mean(axis=0)
        axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
        points = np.zeros((len(unique), 2))
        points[:, : len(axes)] = centred @ axes.T
        points /= max(float(np.linalg.norm(points, axis=1).max()), 1e-12)
    return np.asarray(points[back.reshape(-1)])


def grouped(vectors: npt.NDArray[np.float64]) -> Rows:
    """k-means with about √(n/2) groups, at most six; the largest group is 0."""
    from sklearn.cluster import KMeans

    distinct = len(np.unique(vectors.round(6), axis=0))
    count = min(GROUPS, distinct, max(1, round((len(vectors) / 2) ** 0.5)))
    if count == 1:
        return np.zeros(len(vectors), dtype=np.int64)
    found = KMeans(count, n_init=4, random_state=SEED).fit_predict(vectors)
    order = np.argsort(-np.bincount(found, minlength=count), kind="stable")
    return np.asarray(np.argsort(order)[found], dtype=np.int64)


def named(lines: list[str], groups: Rows) -> list[str]:
    """Up to three words that are in more of a group's lines than in those of the others, longer words first."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    words = [set(WORD.findall(line.casefold())) - ENGLISH_STOP_WORDS for line in lines]
    overall = Counter(word for row in words for word in row)
    names = []
    for number in range(int(groups.max()) + 1):
        inside = Counter(word for row, group in zip(words, groups, strict=True) if group == number for word in row)
        size = int((groups == number).sum())
        others = max(len(lines) - size, 1)
        scores = {
            word: count / size - (overall[word] - count) / others + min(len(word), 8) / 100
            for word, count in inside.items()
        }
        best = sorted(scores, key=lambda word: (-scores[word], word))[:3]
        names.append(", ".join(best) or f"group {number + 1}")
    return names


def duplicates(lines: list[str], vectors: Floats) -> list[dict[str, Any]]:
    """Lines with the same words, then different ones that are near: the first of each group, and those like it.

    Near is a cosine of 0.95, or within a tenth of the usual distance where the model puts everything close together.
    """
    cosines = vectors @ vectors.T
    usual = float((cosines.sum() - np.trace(cosines)) / max(len(lines) * (len(lines) - 1), 1))
    least = max(SAME, 1 - CLOSE * (1 - usual))
    words: dict[str, list[int]] = {}
    for row, line in enumerate(lines):
        words.setdefault(" ".join(line.casefold().split()), []).append(row)
    found = [{"lines": rows, "cosine": 1.0, "equal": True} for rows in words.values() if len(rows) > 1]
    firsts = [rows[0] for rows in words.values()]
    taken: set[int] = set()
    for place, first in enumerate(firsts):
        near = [row for row in firsts[place + 1 :] if row not in taken and cosines[first, row] >= least]
        if first not in taken and near:
            taken.update(near)
            lowest = float(min(cosines[first, row] for row in near))
            found.append({"lines": [first, *near], "cosine": round(lowest, 4), "equal": False})
    return found
