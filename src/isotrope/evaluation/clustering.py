"""Clustering: does k-means on the vectors find the classes of texts, with the number of classes given?

    accuracy  = share of texts in the cluster of their class, after the best one-to-one assignment; × 100
    V-measure = harmonic mean of homogeneity and completeness; × 100

k-means of scikit-learn on vectors of unit length, k-means++ starts, the best of ``INITS`` by inertia; both measures are
means over ``RUNS`` seeds. The eight short-text sets and MewsC-16 are those of SCCL and EASE. Their papers cluster whole
sets; here large ones are sampled (``clustering_files``), so compare within this table.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.encoders.encoder import Encoder
from isotrope.evaluation import lexical, random_baseline
from isotrope.evaluation.benchmark_files import data_folder
from isotrope.evaluation.clustering_files import SAMPLE, LabelledSet, find_labelled, labelled_set, read_file
from isotrope.evaluation.items import Items
from isotrope.evaluation.lexical import lexical_vectors
from isotrope.evaluation.random_baseline import random_vectors
from isotrope.evaluation.results import ENCODER, Results, nested_sides, read_out
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.cluster_measures import matched, v_measure
from isotrope.measures.intervals import Interval, binomial_interval, mean_share_interval
from isotrope.progress import bar

PROTOCOL = "clustering-kmeans-v1"
INITS, RUNS = 3, 3
COLUMNS = ("set", "clustered by", "accuracy", "95 % interval", "V-measure", "commonest class", "classes", "texts")


@dataclass(frozen=True)
class ClusterScore:
    """× 100, means over the seeds; ``low`` and ``high`` belong to accuracy, ``deviation`` is over seeds."""

    accuracy: float
    low: float
    high: float
    v_measure: float
    deviation: float


@dataclass(frozen=True)
class Clustered:
    """[runs, texts]: whether each text stands with its class; [runs]: V-measures."""

    right: npt.NDArray[np.bool_]
    agreement: npt.NDArray[np.float64]

    def score(self) -> ClusterScore:
        share = float(self.right.mean())
        low, high = binomial_interval(share, self.right.shape[1]).times(100)
        deviation = 100 * float(self.right.mean(axis=1).std(ddof=1)) if len(self.right) > 1 else 0.0
        return ClusterScore(100 * share, low, high, 100 * float(self.agreement.mean()), deviation)


class Clustering(Suite):
    """Do texts of one class lie together? k-means on every labelled set of the data folder, or on a file of your own.

    It sees only the coarse shape of the space, topics most of all; an encoder that tells paraphrases apart may lose
    topics, and TF-IDF is strong where classes have words of their own. ``linear`` asks whether the classes can be told
    apart with labels.
    """

    card = SuiteCard(
        name="clustering",
        title="Classes found by k-means, every set of the data folder",
        protocol=PROTOCOL,
        takes=("data_dir", "texts", "columns", "seeds", "baselines"),
    )
    place = 1

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        read_options(options)

    def run(self, encoder: Encoder, options: Options) -> Results:
        """Accuracy and V-measure × 100 of each set and their plain mean; the same of TF-IDF and random vectors.

        One seed stands for itself and the next two; several are taken as they are.
        """
        sets, seeds, baselines = read_options(options), options.seeds, options.baselines
        drawn = seeds if len(seeds) > 1 else tuple(range(seeds[0], seeds[0] + RUNS))
        vectors = TextVectors.encoded(encoder, (text for found in sets for text in found.texts), normalize=True)
        clustered: dict[str, dict[str, Clustered]] = {}
        with bar("clustering", len(sets)) as advance:
            for found in sets:
                given = {ENCODER: vectors.of(found.texts)}
                if baselines:
                    given[lexical.TITLE] = lexical_vectors(found.texts)
                    given[random_baseline.TITLE] = random_vectors(found.texts, encoder.dimension).of(found.texts)
                clustered[found.name] = {title: cluster(rows, found, drawn) for title, rows in given.items()}
                advance(1, note=found.name)
        scores = {name: {title: each.score() for title, each in sides.items()} for name, sides in clustered.items()}
        averages = {
            title: _average([scores[found.name][title] for found in sets], sets) for title in scores[sets[0].name]
        }
        described = {
            lexical.TITLE: f"{lexical.DESCRIPTION}, fitted on each set",
            random_baseline.TITLE: random_baseline.described(encoder.dimension),
        }
        protocol = {
            "protocol": PROTOCOL,
            "k-means": f"scikit-learn, unit vectors, true number of classes, n_init {INITS}",
            "mean over": f"{len(drawn)} seeds, {', '.join(map(str, drawn))}",
            "sample": f"sets above {SAMPLE:,} texts, seed 0",
            "interval": "95 %, binomial over the texts; of the average normal",
            **(described if baselines else {}),
            **read_out(encoder),
        }
        nested = {found.name: {**nested_sides(scores[found.name]), **_sizes(found)} for found in sets}
        nested["average"] = nested_sides(averages)
        items = {name: Items(sides[ENCODER].right.mean(axis=0)) for name, sides in clustered.items()}
        return Results({"clustering": nested}, protocol, COLUMNS, _rows(sets, scores, averages), items=items)

    def summary(self, results: Results) -> dict[str, float]:
        found = results.scores["clustering"]
        sets = {f"clustering_{name}": found[name]["accuracy"] for name in found if name != "average"}
        average = found["average"]
        return {"clustering_average": average["accuracy"], "clustering_v": average["v_measure"], **sets}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        return {found.name: found.texts for found in read_options(options)}


def cluster(vectors: Any, found: LabelledSet, seeds: Sequence[int]) -> Clustered:
    """``vectors`` [texts, dimension], dense or sparse. Vectors that are all alike make one cluster."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    runs = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different vectors than classes
            runs.append(KMeans(found.clusters, n_init=INITS, random_state=seed).fit_predict(vectors).astype(np.int64))
    right = np.array([matched(clusters, found.classes) for clusters in runs])
    return Clustered(right, np.array([v_measure(clusters, found.classes) for clusters in runs]))


def read_options(options: Options) -> list[LabelledSet]:
    """The file or list that was given, or every set of the data folder."""
    columns = tuple(options.columns) if options.columns is not None else None
    if options.texts is None:
        return [read_file(name, file, columns) for name, file in find_labelled(data_folder(options.data_dir)).items()]
    if isinstance(options.texts, Sequence) and not isinstance(options.texts, str):
        return [labelled_set("texts", options.texts, columns)]
    file = Path(options.texts)
    return [read_file(file.name.split(".")[0], file, columns)]


def _average(scores: Sequence[ClusterScore], sets: Sequence[LabelledSet]) -> ClusterScore:
    """The plain mean over sets."""
    means = {name: float(np.mean([asdict(score)[name] for score in scores])) for name in asdict(scores[0])}
    low, high = mean_share_interval([score.accuracy for score in scores], [len(found.texts) for found in sets])
    return ClusterScore(**{**means, "low": low, "high": high})


def _sizes(found: LabelledSet) -> dict[str, Any]:
    commonest = 100 * float(np.bincount(found.classes).max() / len(found.texts))
    sizes = {"classes": found.clusters, "texts": len(found.texts), "texts_before_sampling": found.whole}
    return {"commonest_class": commonest, **sizes}


def _rows(
    sets: Sequence[LabelledSet], scores: dict[str, dict[str, ClusterScore]], averages: dict[str, ClusterScore]
) -> list[tuple[str, ...]]:
    rows = []
    for found in sets:
        sizes = _sizes(found)
        last = f"{sizes['commonest_class']:.1f}", str(found.clusters), _count(found)
        for title, score in scores[found.name].items():
            own = title == ENCODER
            rows.append((found.name if own else "", *_cells(title, score), *(last if own else ("", "", ""))))
    for title, score in averages.items() if len(sets) > 1 else ():
        rows.append(("average of sets" if title == ENCODER else "", *_cells(title, score), "", "", ""))
    return rows


def _count(found: LabelledSet) -> str:
    return f"{len(found.texts):,}" + (f" of {found.whole:,}" if found.whole > len(found.texts) else "")


def _cells(title: str, score: ClusterScore) -> tuple[str, ...]:
    return title, f"{score.accuracy:.2f}", str(Interval(score.low, score.high)), f"{score.v_measure:.2f}"
