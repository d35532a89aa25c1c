"""Answer ranking: MAP, MRR and AUC against slow loops, ties against the encoder, and files of both layouts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.answer_ranking import area, read_candidates, score
from isotrope.evaluation.suite import find_suite

HEADER = "label\tquestion\tanswer_sentence"


def write(path: Path, rows: list[str], header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def wikiqa(tmp_path: Path, topics: list[str]) -> Path:
    """Twelve questions with six candidates each; every fourth question has no right answer."""
    rows = [
        f"{int(step == number % 3 and number % 4 > 0)}\twhat of {topics[8 * number]}\t{topics[8 * (number + step)]}"
        for number in range(12)
        for step in range(6)
    ]
    (tmp_path / "retrieval").mkdir()
    return write(tmp_path / "retrieval" / "wikiqa.test.tsv", rows)


def test_the_measures_are_those_of_slow_loops(wikiqa: Path) -> None:
    found = read_candidates(wikiqa)
    cosines = np.random.default_rng(0).normal(size=72)
    measures = score(found, cosines, seed=0, resamples=50)
    precisions, firsts = [], []
    for number in range(12):
        rows = list(range(6 * number, 6 * number + 6))
        ranked = [bool(found.right[row]) for row in sorted(rows, key=lambda row: -cosines[row])]
        if any(ranked):
            place = 1 + ranked.index(True)  # one right answer: both measures are 1 / rank
            precisions.append(1 / place)
            firsts.append(1 / place)
    wins = [float(a > b) for a in cosines[found.right] for b in cosines[~found.right]]
    assert len(precisions) == 9
    assert measures["map"].value == pytest.approx(100 * np.mean(precisions))
    assert measures["mrr"].value == pytest.approx(100 * np.mean(firsts))
    assert measures["auc"].value == pytest.approx(100 * np.mean(wins))
    assert all(each.low <= each.value <= each.high for each in measures.values())


def test_the_area_is_that_of_scikit_learn_and_ties_count_half() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(1)
    scores, right = rng.integers(0, 9, 200).astype(float), rng.random(200) < 0.3
    assert area(scores, right) == pytest.approx(roc_auc_score(right, scores))
    assert area(np.zeros(200), right) == 0.5


def test_a_collapsed_encoder_gains_nothing_from_the_order_of_the_file(wikiqa: Path) -> None:
    """All cosines equal: every right answer, also one that stands first in the file, is ranked last."""
    measures = score(read_candidates(wikiqa), np.zeros(72), seed=0, resamples=10)
    assert measures["map"].value == measures["mrr"].value == pytest.approx(100 / 6)


def test_the_suite_reads_the_folder_or_a_file_of_ones_own(tiny: Path, wikiqa: Path, tmp_path: Path) -> None:
    results = isotrope.evaluate(tiny, "answers", wikiqa.parents[1])
    assert results.scores["answers"]["questions"] == 9
    assert results.scores["answers"]["pairs"] == 72
    assert "9 of 12 questions" in results.protocol["MAP, MRR"]
    assert list(find_suite("answers")().summary(results)) == ["answers_map", "answers_mrr", "answers_auc"]
    assert "TF-IDF" in results.table()
    assert set(results.scores["answers"]["baselines"]) == {"TF-IDF", "BM25"}
    assert "auc" not in results.scores["answers"]["baselines"]["BM25"]  # its scores of two questions do not compare
    value = results.scores["answers"]["encoder"]["map"]["value"]
    assert results.items["answers"].score() == pytest.approx(value)
    assert [(task["task"], task["metric"], task["score"]) for task in results.tasks] == [("answers", "map", value)]
    alone = isotrope.evaluate(tiny, "answers", wikiqa.parents[1], baselines=False).scores["answers"]
    assert "baselines" not in alone
    rows = [line.split("\t") for line in wikiqa.read_text(encoding="utf-8").splitlines()[1:]]
    words = {"1": "entailment", "0": "not_entailment"}
    mine = write(
        tmp_path / "qnli.tsv",
        [f"{number}\t{q}\t{s}\t{words[label]}" for number, (label, q, s) in enumerate(rows)],
        "index\tquestion\tsentence\tlabel",
    )
    assert isotrope.evaluate(tiny, "answers", texts=mine).scores == results.scores


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["1\ta\tb", "1\ta\tc"], "every row has the label '1'; right and wrong answers are needed"),
        (["1\ta\tb", "maybe\ta\tc"], "the label 'maybe' says neither right"),
        (["1\ta\tb", "\ta\tc"], r":3: the label is empty"),
    ],
)
def test_labels_that_say_nothing_are_refused(tmp_path: Path, rows: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_candidates(write(tmp_path / "mine.tsv", rows))


def test_a_missing_file_is_refused_before_the_model_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"wikiqa\.test\.tsv\.gz is missing"):
        isotrope.evaluate("no/such/model", "answers", tmp_path)
