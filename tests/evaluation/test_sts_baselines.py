"""STS: TF-IDF stands under the table, as scikit-learn has it; and the scores are those of sentence-transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import isotrope
from isotrope.evaluation.scored_pairs import ScoredPairs, read_pairs
from isotrope.evaluation.sts import TASKS
from isotrope.evaluation.sts_baselines import lexical_spearman


@pytest.fixture
def data(tmp_path: Path, topics: list[str]) -> Path:
    """The seven tasks, each with other pairs of two subsets."""
    (tmp_path / "sts").mkdir()
    rng = np.random.default_rng(0)
    for number, name in enumerate(TASKS.values()):
        rows = [
            f"part{row % 2}\t{topics[row + number]}\t{topics[row + number + int(rng.integers(1, 60))]}\t{row % 6}"
            for row in range(50)
        ]
        lines = ["subset\tsentence1\tsentence2\tscore", *rows]
        (tmp_path / "sts" / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("aggregation", ["all", "wmean"])
def test_tf_idf_is_that_of_scikit_learn(tiny: Path, data: Path, aggregation: str) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    results = isotrope.evaluate(tiny, "sts", data, aggregation=aggregation)
    found = results.scores["sts"]["baselines"]["TF-IDF"]
    for task, name in TASKS.items():
        pairs = read_pairs(data / "sts" / f"{name}.tsv")
        model = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(sorted(set(pairs.texts)))
        a, b = (model.transform(side).toarray() for side in (pairs.first, pairs.second))
        cosines, parts = np.round((a * b).sum(axis=1), 9), np.array(pairs.subsets)
        whole = aggregation == "all" or task in ("STS-B", "SICK-R")
        groups = [slice(None)] if whole else [parts == part for part in ("part0", "part1")]
        expected = np.mean([spearmanr(cosines[group], pairs.gold[group])[0] for group in groups])
        assert found[task] == pytest.approx(100 * expected, abs=0.01)
    assert found["average"] == pytest.approx(np.mean([found[task] for task in TASKS]))
    (section,) = results.sections
    assert section.rows[0][0] == "TF-IDF"
    assert "baselines, Spearman" in results.table()


def test_without_baselines_nothing_is_added(tiny: Path, data: Path) -> None:
    results, both = (isotrope.evaluate(tiny, "sts", data, baselines=on) for on in (False, True))
    assert "baselines" not in results.scores["sts"]
    assert not results.sections
    assert results.scores["sts"]["STS12"] == both.scores["sts"]["STS12"]


def test_pairs_without_a_word_have_no_rank() -> None:
    pairs = ScoredPairs(["of", "and"], ["the", "a"], np.array([1.0, 2.0]), ["", ""])
    assert lexical_spearman(pairs, "STS-B", "all") == 0


def test_the_scores_are_those_of_sentence_transformers(tiny: Path, data: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator

    found = isotrope.evaluate(tiny, "sts", data, baselines=False).scores["sts"]
    model = SentenceTransformer(str(tiny), device="cpu")
    for task in ("STS12", "SICK-R"):
        pairs = read_pairs(data / "sts" / f"{TASKS[task]}.tsv")
        judge = EmbeddingSimilarityEvaluator(pairs.first, pairs.second, pairs.gold.tolist(), write_csv=False)
        theirs = judge(model)
        assert found[task]["spearman"] == pytest.approx(100 * theirs["spearman_cosine"], abs=0.01)
        assert found[task]["pearson"] == pytest.approx(100 * theirs["pearson_cosine"], abs=0.01)
