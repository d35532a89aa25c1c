"""Clustering: the scores are scikit-learn's computed directly, and degenerate vectors and sets have no fake score."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.clustering_files import SAMPLE, labelled_set
from isotrope.evaluation.suite import find_suite
from isotrope.measures.cluster_measures import matched, v_measure


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """Two sets of topics: five classes by their words, and three that mean nothing."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "clustering").mkdir()
    for name, label in (("topics", lambda row: row // 8 % 5), ("noise", lambda row: row % 3)):
        rows = [f"class {label(row)}\t{text}" for row, text in enumerate(topics[:120])]
        file = folder / "clustering" / f"{name}.tsv"
        file.write_text("\n".join(["label\tsentence", *rows]) + "\n", encoding="utf-8")
    return folder


def test_the_matching_is_the_best_of_all() -> None:
    rng = np.random.default_rng(0)
    clusters, classes = rng.integers(0, 4, 50), rng.integers(0, 4, 50)
    best = max(
        np.mean([order[c] == k for c, k in zip(clusters, classes, strict=True)]) for order in permutations(range(4))
    )
    assert matched(clusters, classes).mean() == pytest.approx(best)
    assert matched((clusters + 1) % 4, clusters).all()
    assert v_measure((clusters + 1) % 4, clusters) == pytest.approx(1)
    assert v_measure(np.zeros(50, dtype=np.int64), classes) == 0
    assert matched(np.zeros(50, dtype=np.int64), classes).mean() == np.bincount(classes).max() / 50


def test_the_scores_are_those_of_scikit_learn(tiny: Path, data: Path, topics: list[str]) -> None:
    from scipy.optimize import linear_sum_assignment
    from sklearn.cluster import KMeans
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics import confusion_matrix, v_measure_score

    found = isotrope.evaluate(tiny, "clustering", data)
    wanted = [row // 8 % 5 for row in range(120)]
    unit = isotrope.load(tiny).encode(topics[:120], normalize_embeddings=True)
    words = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(topics[:120])
    ours = found.scores["clustering"]["topics"]
    for vectors, scored in ((unit, ours), (words, ours["baselines"]["TF-IDF"])):
        accuracy, agreement = [], []
        for seed in range(3):
            clusters = KMeans(5, n_init=3, random_state=seed).fit_predict(vectors)
            table = confusion_matrix(wanted, clusters)
            accuracy.append(table[linear_sum_assignment(-table)].sum() / 120)
            agreement.append(v_measure_score(wanted, clusters))
        assert scored["accuracy"] == pytest.approx(100 * np.mean(accuracy), abs=0.01)
        assert scored["v_measure"] == pytest.approx(100 * np.mean(agreement), abs=0.01)
    assert found.items["topics"].score() == pytest.approx(ours["accuracy"])
    assert len(found.items["topics"]) == 120


def test_the_suite_repeats_itself_and_sums_up(tiny: Path, data: Path) -> None:
    first, again = (isotrope.evaluate(tiny, "clustering", data) for _ in range(2))
    assert first.scores == again.scores
    scores = first.scores["clustering"]
    short = find_suite("clustering")().summary(first)
    assert short["clustering_average"] == pytest.approx(
        (scores["topics"]["accuracy"] + scores["noise"]["accuracy"]) / 2
    )
    assert {"clustering_v", "clustering_topics", "clustering_noise"} < set(short)
    assert "random vectors" in first.table()
    assert "n_init 3" in first.table()
    alone = isotrope.evaluate(tiny, "clustering", data, baselines=False)
    assert "baselines" not in alone.scores["clustering"]["topics"]
    assert alone.scores["clustering"]["topics"]["accuracy"] == scores["topics"]["accuracy"]
    mine = isotrope.evaluate(tiny, "clustering", texts=data / "clustering" / "topics.tsv", baselines=False)
    assert mine.scores["clustering"]["topics"] == alone.scores["clustering"]["topics"]
    several = isotrope.evaluate(tiny, "clustering", data, seeds=[0, 1, 2], baselines=False)
    assert several.scores == alone.scores


def test_vectors_that_say_nothing_are_at_chance(tiny: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = isotrope.load(tiny)
    monkeypatch.setattr(encoder, "encode", lambda texts, **named: np.ones((len(texts), 32), dtype=np.float32))
    found = isotrope.evaluate(encoder, "clustering", data).scores["clustering"]["topics"]
    assert found["accuracy"] == pytest.approx(found["commonest_class"])
    assert found["v_measure"] == 0
    monkeypatch.setattr(encoder, "encode", lambda texts, **named: np.full((len(texts), 32), np.nan, np.float32))
    with pytest.raises(InputError, match="NaN or infinite vectors for"):
        isotrope.evaluate(encoder, "clustering", data)


def test_shuffled_vectors_lose_the_classes(tiny: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, plain = isotrope.load(tiny), Encoder.encode
    true = isotrope.evaluate(encoder, "clustering", data, baselines=False).scores["clustering"]["topics"]

    def shuffled(texts: list[str], **named: object) -> np.ndarray:
        return plain(encoder, texts, **named)[np.random.default_rng(0).permutation(len(texts))]

    monkeypatch.setattr(encoder, "encode", shuffled)
    found = isotrope.evaluate(encoder, "clustering", data).scores["clustering"]["topics"]
    assert found["v_measure"] < 20 < true["v_measure"]
    assert found["v_measure"] < found["baselines"]["random vectors"]["v_measure"] + 15


def test_large_sets_are_sampled_alike() -> None:
    rows = [(f"text {number}", str(number % 7)) for number in range(SAMPLE + 500)]
    one, other = (labelled_set("large", rows) for _ in range(2))
    assert len(one.texts) == SAMPLE
    assert one.texts == other.texts
    assert one.whole == SAMPLE + 500
    assert [int(text.split()[1]) % 7 for text in one.texts] == one.classes.tolist()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["a\tx", "a\ty"], "every text is labelled 'a'"),
        (["a\tx", "b\ty"], "every text has a class of its own"),
        ([], r"no labelled texts found|holds a header and no rows"),
        (["\tx", "b\ty"], "the label is empty"),
    ],
)
def test_a_set_without_classes_is_refused(tmp_path: Path, rows: list[str], said: str) -> None:
    (tmp_path / "clustering").mkdir()
    file = tmp_path / "clustering" / "mine.tsv"
    file.write_text("\n".join(["label\tsentence", *rows]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=said):
        isotrope.evaluate("no/such/model", "clustering", tmp_path)


def test_a_folder_without_sets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to cluster"):
        isotrope.evaluate("no/such/model", "clustering", tmp_path)
