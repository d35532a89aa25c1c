"""Warnings: each is said when it should be, and not otherwise."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from report_world import World

import isotrope
from isotrope.data.leaks import Protected
from isotrope.report import alarms
from isotrope.report.subjects import Subject


def run(history: list[dict[str, Any]] | None = None, **facts: Any) -> Subject:
    return Subject("here", "run", lambda: isotrope.load("builtin"), history=history or [], facts=facts)


def evaluated(step: int, rank: float, cosine: float, score: float = 0.5) -> dict[str, Any]:
    return {
        "step": step,
        "evaluation": {"effective_rank": rank, "mean_cosine": cosine},
        "score": score,
        "chosen_by": "retrieval_mrr",
    }


def test_collapse_is_found_again_in_the_history() -> None:
    healthy = [evaluated(0, 100.0, 0.6), evaluated(10, 120.0, 0.2)]
    assert alarms.collapse(run(healthy)) == []
    (lost,) = alarms.collapse(run([*healthy, evaluated(20, 40.0, 0.2)]))
    assert lost.category == "collapse"
    assert "Step 20: the effective rank fell from 100.0 to 40.0" in lost.sentence
    stuck = [{"step": step, "loss": 4.15, "contrastive": 4.15, "candidates": 64} for step in range(10, 80, 10)]
    assert "log(64)" in alarms.collapse(run(stuck))[0].sentence


def test_a_run_that_learned_nothing_is_named() -> None:
    assert alarms.no_progress(run([evaluated(0, 1, 0, 0.30), evaluated(5, 1, 0, 0.31)])) == []
    (said,) = alarms.no_progress(run([evaluated(0, 1, 0, 0.30), evaluated(5, 1, 0, 0.29)]))
    assert "0.3000 before training and at best 0.2900 after" in said.sentence
    assert alarms.no_progress(run()) == []


def test_duplicates_from_a_hundredth_on() -> None:
    assert alarms.duplicates(run(data={"records": 1000, "duplicates": 9})) == []
    (said,) = alarms.duplicates(run(data={"records": 1000, "duplicates": 25}))
    assert "25 of 1,000 records" in said.sentence
    assert "(2.5 %)" in said.sentence


def test_leaks_are_found_in_the_text_of_the_run(tmp_path: Path) -> None:
    text = tmp_path / "train.txt"
    text.write_text("a man is playing the old guitar\nanother line of text\n", encoding="utf-8")
    protected = Protected([("stsb.test", ["A man is playing the old guitar."])])
    (said,) = alarms.leaks(run(source=str(text)), protected)
    assert "1 of 2 lines" in said.sentence
    assert "stsb.test" in said.sentence
    assert alarms.leaks(run(source=str(text)), None) == []
    assert "such as line 1: “a man is playing the old guitar”. `isotrope leaks` writes" in said.sentence
    assert alarms.leaks(run(source=str(tmp_path / "gone.txt")), protected) == []
    names = tmp_path / "names.tsv"
    names.write_text("head\trelation\ttail\nBerlin\tin\tGermany\n", encoding="utf-8")
    assert alarms.leaks(run(source=str(names)), protected) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train.jsonl", '{"text": "Another line."}\n{"text": "a man is playing the old guitar"}\n'),
        ("train.csv", "id,text\n1,Another line.\n2,a man is playing the old guitar\n"),
    ],
)
def test_leaks_are_found_in_tables_of_every_format(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    protected = Protected([("stsb.test", ["A man is playing the old guitar."])])
    (said,) = alarms.leaks(run(source=str(tmp_path / name)), protected)
    assert "1 of 2 rows of its text hold a sentence of stsb.test (1), such as row 2" in said.sentence
    assert "clean copy" not in said.sentence


def test_a_text_that_is_gone_is_not_called_clean(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(world.runs[0], folder)
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (folder / "run.json").write_text(json.dumps({**facts, "source": str(tmp_path / "gone.txt")}), encoding="utf-8")
    found = isotrope.report(folder, text=world.text, data_dir=world.data, sentences=30)
    (said,) = found.findings.remarks
    assert said == "run: leaks were not looked for in its text, which is not one file that lies here."
    assert isotrope.report(folder, text=world.text, sentences=30).findings.remarks == []


def test_the_page_carries_them(world: World, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(world.data, data)
    leaked = world.text.read_text(encoding="utf-8").splitlines()[0]
    with open(data / "sts" / "sts12.test.tsv", "a", encoding="utf-8") as file:
        file.write(f"{leaked}\tsomething else entirely here\t1.0\tall\n")
    found = isotrope.report(*world.runs, data_dir=data, sentences=30)
    categories = [alarm.category for alarm in found.findings.warnings]
    assert categories.count("leak") == 1  # both runs read one text
    assert categories.count("duplicates") == 1
    text = found.html()
    assert "<b>leak</b>" in text
    assert "were not looked for" not in text
    assert "were not looked for" in isotrope.report(world.runs[0], sentences=30).html()
