"""Scored pairs of your own: judged as an STS task, without a folder of evaluation data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import isotrope
from isotrope.cli import main
from isotrope.errors import InputError
from isotrope.evaluation.suite import Options, find_suite


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    file = tmp_path_factory.mktemp("own") / "duplicates.csv"
    rows = [f"{row};{topics[7 * row]};{topics[11 * row]};{row % 2}" for row in range(60)]
    file.write_text("\n".join(["id;ticket;other;same", *rows]) + "\n", encoding="utf-8-sig")
    return file


def test_own_scored_pairs_are_a_task_with_a_verdict(tiny: Path, pairs: Path, topics: list[str]) -> None:
    columns = ["ticket", "other", "same"]
    found = isotrope.evaluate(str(tiny), texts=pairs, columns=columns, against=[str(tiny)], leaks=False)
    encoder = isotrope.load(tiny)
    sides = [encoder.encode([topics[step * row] for row in range(60)]).astype(np.float64) for step in (7, 11)]
    sides = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    wanted = 100 * spearmanr((sides[0] * sides[1]).sum(axis=1), np.arange(60) % 2).statistic
    score = found.scores["sts"]["duplicates"]
    assert score["spearman"] == pytest.approx(wanted, abs=1e-3)
    assert "auc" in score
    assert found.protocol["protocol"] == "sts-cosine-own-v1"
    assert {task["protocol"] for task in found.tasks} == {"sts-cosine-own-v1"}
    assert [verdict.suite for verdict in found.verdicts] == ["sts"]
    assert "average of" not in found.table()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"aggregation": "mean"}, "aggregation belongs to the published STS tasks"),
        ({"lang": "zh"}, "lang belongs to the published STS tasks"),
        ({"texts": ["a", "b"]}, "needs a file of scored pairs"),
    ],
)
def test_what_does_not_fit_is_refused(pairs: Path, options: dict[str, object], said: str) -> None:
    asked = {"texts": pairs, "columns": ("ticket", "other", "same"), **options}
    with pytest.raises(InputError, match=said):
        find_suite("sts").check(Options(**asked))  # type: ignore[arg-type]


def test_the_command_takes_them_too(tiny: Path, pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", str(tiny), "--text", str(pairs), "--columns", "ticket,other,same", "--no-leaks"])
    assert ended.value.code == 0
    assert "duplicates" in capsys.readouterr().out
