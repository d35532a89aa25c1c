"""The 2-d map of some sentences, the same sentences in every space, and who is near whom."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from isotrope.measures.nearest_rows import top_rows
from isotrope.spaces.flat_maps import t_sne_points

Floats = npt.NDArray[np.float64]
GROUPS = 6
PERPLEXITY = 30.0


def lay_out(vectors: Floats, seed: int, like: Floats | None = None) -> Floats:
    """t-SNE of unit vectors, [rows, 2], centred, the farthest point at distance 1; turned and mirrored to lie as
    ``like`` does.

    A map has no up and no left. Without the turn two maps of nearly the same space would look different.
    """
    from scipy.linalg import orthogonal_procrustes

    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    places = t_sne_points(vectors, perplexity, seed)
    places -= places.mean(axis=0)
    places /= max(float(np.linalg.norm(places, axis=1).max()), 1e-12)
    return places if like is None else np.asarray(places @ orthogonal_procrustes(places, like)[0])


def group(vectors: Floats, seed: int) -> npt.NDArray[np.int64]:
    """k-means: which group each row is in, the largest group first."""
    from sklearn.cluster import KMeans

    count = min(GROUPS, len(np.unique(vectors.round(6), axis=0)))
    found = KMeans(count, n_init=4, random_state=seed).fit_predict(vectors)
    order = np.argsort(-np.bincount(found, minlength=count), kind="stable")
    return np.asarray(np.argsort(order)[found], dtype=np.int64)


def name_groups(texts: list[str], groups: npt.NDArray[np.int64]) -> list[str]:
    """Three words that a group has more of than the rest."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    count = int(groups.max()) + 1
    try:
        reader = TfidfVectorizer(max_df=0.1, min_df=2, stop_words="english", token_pattern=r"(?u)\b[^\W\d]{3,}\b")
        weights = reader.fit_transform(texts)
    except ValueError:  # no word is left
        return [f"group {number + 1}" for number in range(count)]
    words = reader.get_feature_names_out()
    overall = np.asarray(weights.mean(axis=0)).ravel()
    names = []
    for number in range(count):
        more = np.asarray(weights[groups == number].mean(axis=0)).ravel() - overall
        names.append(", ".join(words[np.argsort(-more, kind="stable")[:3]]))
    return names


def typical(vectors: Floats, groups: npt.NDArray[np.int64], count: int) -> list[int]:
    """The row nearest to the middle of each of the largest groups."""
    rows = []
    for number in range(min(count, int(groups.max()) + 1)):
        members = np.flatnonzero(groups == number)
        middle = vectors[members].mean(axis=0)
        rows.append(int(members[np.argmax(vectors[members] @ middle)]))
    return rows


def neighbours(vectors: Floats, count: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """(cosines, rows), each [rows, count]: the nearest other rows of each, best first."""
    both = torch.from_numpy(vectors)
    scores, rows = (found.numpy() for found in top_rows(both, both, count + 1))
    others = rows != np.arange(len(rows))[:, None]
    others[others.all(axis=1), -1] = False  # a row among its equals may not have found itself
    return scores[others].reshape(len(rows), -1), rows[others].reshape(len(rows), -1)
