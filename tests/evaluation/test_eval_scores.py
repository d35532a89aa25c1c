"""Scores that are no numbers in eval_data are refused before a run folder is made, as they are in training data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.eval_data import read_eval_data
from isotrope.training.state import TrainingWarning

LOOP: dict[str, Any] = {"batch_size": 16, "max_steps": 2, "eval_steps": 1, "held_out": 40, "max_length": 32}
BAD = [
    ("nan", "dev.tsv:4: the score is 'nan', and a number was expected"),
    ("inf", "dev.tsv:4: the score is 'inf', and a number was expected"),
    ("-Infinity", "dev.tsv:4: the score is '-Infinity', and a number was expected"),
    ("", "dev.tsv:4: the score is empty; fill it in, or take the row out"),
    ("good", "dev.tsv:4: the score is 'good', and a number was expected"),
]


def scored(tmp_path: Path, *scores: str) -> Path:
    file = tmp_path / "dev.tsv"
    rows = [f"the chef bakes bread {n}\tthe farmer waters roses {n}\t{score}" for n, score in enumerate(scores)]
    file.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return file


@pytest.mark.parametrize(("score", "sentence"), BAD)
def test_a_score_that_is_no_number_is_refused(
    tiny: Path, sentences: Path, tmp_path: Path, score: str, sentence: str
) -> None:
    file, output = scored(tmp_path, "1", "2", score, "3"), tmp_path / "run"
    with pytest.raises(InputError, match=sentence):
        isotrope.train("simcse", sentences, tiny, output, eval_data=file, **LOOP)
    with pytest.raises(InputError, match=sentence):
        isotrope.pretrain([sentences], output, eval_data=file, steps=2, warmup_steps=1)
    with pytest.raises(InputError, match=sentence):
        isotrope.compare(sentences, "simcse", output, model=tiny, eval_data=file, seeds=1, max_steps=2)
    assert not output.exists()


def test_scores_that_are_all_equal_are_refused(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="all scores are 3, and equal scores rank nothing"):
        isotrope.train("simcse", sentences, tiny, tmp_path / "run", eval_data=scored(tmp_path, *"3333"), **LOOP)
    assert not (tmp_path / "run").exists()


def test_of_several_files_the_one_that_is_neither_is_named(tmp_path: Path, sentences: Path) -> None:
    """A plain text next to pairs was said to have scores."""
    (tmp_path / "pairs.tsv").write_text("query\tpassage\na\tb\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"sentences\.txt: plain text holds one sentence a line"):
        read_eval_data([tmp_path / "pairs.tsv", sentences])
    with pytest.raises(InputError, match=r"has scores and .*pairs\.tsv has none"):
        read_eval_data([tmp_path / "pairs.tsv", scored(tmp_path, *"1234")])


def test_two_files_of_one_name_both_count(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    files = []
    for name, scores in (("a", "1234"), ("b", "4321")):
        (tmp_path / name).mkdir()
        files.append(scored(tmp_path / name, *scores))
    with pytest.warns(TrainingWarning):
        run = isotrope.train("simcse", sentences, tiny, tmp_path / "run", eval_data=files, **LOOP)
    measured = next(line["evaluation"] for line in run.history if "evaluation" in line)
    assert {f"spearman {file}" for file in files} <= set(measured)
    assert measured["spearman"] == pytest.approx(0, abs=1e-6)


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_an_old_run_whose_score_was_no_number_is_reported(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    run = isotrope.train("simcse", sentences, tiny, tmp_path / "run", eval_data=scored(tmp_path, *"1234"), **LOOP)
    log = run.folder / "metrics.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "evaluation" in line:
            line["score"] = line["evaluation"]["spearman"] = float("nan")
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = isotrope.report(run.folder)
    assert any(
        "spearman was not a number at 3 of 3 evaluations" in alarm.sentence for alarm in report.findings.warnings
    )
    report.save(tmp_path / "report.html")
    assert "NaN" not in (tmp_path / "report.html").read_text(encoding="utf-8").split('id="report-data"')[1][:100_000]
