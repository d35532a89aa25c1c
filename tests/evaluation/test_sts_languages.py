"""Chinese similarity: Spearman against a plain computation, the area under the curve where the gold is 0 or 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.sts_languages import _score
from isotrope.evaluation.suite import find_suite


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """Three of the four tasks; PAWS-X is not there."""
    root = tmp_path_factory.mktemp("data")
    (root / "zh").mkdir()
    for name, highest in (("stsb_mt_zh", 5), ("atec", 1), ("lcqmc", 1)):
        rows = [f"s\t{topics[7 * row]}\t{topics[11 * row]}\t{row % (highest + 1)}" for row in range(60)]
        file = root / "zh" / f"{name}.test.tsv"
        file.write_text("\n".join(["subset\tsentence1\tsentence2\tscore", *rows]) + "\n", encoding="utf-8")
    return root


def test_scores_are_those_of_a_plain_computation(tiny: Path, chinese: Path, topics: list[str]) -> None:
    encoder = isotrope.load(tiny)
    found = isotrope.evaluate(encoder, "sts", chinese, lang="zh")
    scores = found.scores["sts"]
    assert list(scores) == ["STS-B", "ATEC", "LCQMC", "average", "baselines"]
    sides = [encoder.encode([topics[step * row] for row in range(60)]).astype(np.float64) for step in (7, 11)]
    sides = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    cosines, gold = (sides[0] * sides[1]).sum(axis=1), np.arange(60) % 2
    assert scores["ATEC"]["spearman"] == pytest.approx(100 * spearmanr(cosines, gold).statistic, abs=1e-3)
    assert scores["ATEC"]["auc"] == pytest.approx(100 * roc_auc_score(gold, cosines), abs=1e-3)
    assert "auc" not in scores["STS-B"]
    assert scores["average"]["spearman"] == pytest.approx(
        np.mean([scores[task]["spearman"] for task in ("STS-B", "ATEC", "LCQMC")])
    )
    assert found.items["ATEC"].score() == pytest.approx(scores["ATEC"]["spearman"])
    assert found.protocol["protocol"] == "sts-cosine-zh-v1"
    assert found.protocol["left out"] == "PAWS-X: no files of theirs"
    assert found.protocol["files"] == "stsb_mt_zh.test, atec.test, lcqmc.test"
    assert find_suite("sts")().summary(found) == {"sts_average": scores["average"]["spearman"]}
    assert "average of 3" in found.table()


def test_shared_characters_are_the_baseline(tiny: Path, tmp_path: Path) -> None:
    """A character is a word: the pair that shares three of four ranks above one that shares one, then none."""
    rows = ["我爱北京\t我爱南京\t5", "今天下雨\t天晴气好\t2", "猫在睡觉\t股票上涨\t0"]
    file = tmp_path / "zh" / "stsb_zh.test.tsv"
    file.parent.mkdir()
    lines = ["subset\tsentence1\tsentence2\tscore", *(f"s\t{row}" for row in rows)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = isotrope.evaluate(tiny, "sts", tmp_path, lang="zh")
    assert found.scores["sts"]["baselines"] == {"TF-IDF of characters": {"STS-B": 100.0, "average": 100.0}}
    assert "TF-IDF of characters" in found.table()
    assert "baselines" not in isotrope.evaluate(tiny, "sts", tmp_path, lang="zh", baselines=False).scores["sts"]


def test_cosines_that_never_change_rank_nothing() -> None:
    score = _score(np.ones(20), np.arange(20) % 2.0, np.zeros(5))
    assert (score.spearman, score.pearson, score.auc) == (0, 0, 50)


def test_a_language_or_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Unknown language 'zj'"):
        isotrope.evaluate("no/such/model", "sts", tmp_path, lang="zj")
    with pytest.raises(InputError, match=r"none of stsb_zh\.test\.tsv\.gz, atec"):
        isotrope.evaluate("no/such/model", "sts", tmp_path, lang="zh")
    with pytest.raises(InputError, match="The transfer suite takes no lang; leave it out, or choose sts"):
        isotrope.evaluate("no/such/model", "transfer", tmp_path, lang="zh")
