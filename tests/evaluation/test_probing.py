"""Probing: derived tables say so, and an average stands for all ten alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.probing import TASKS
from isotrope.evaluation.suite import find_suite


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    """The ten tasks as tables; the class of a text is its topic."""
    root = tmp_path_factory.mktemp("data")
    (root / "probing").mkdir()
    for names in TASKS.values():
        rows = [
            f"{split}\t{row // 8 % 5}\t{text}"
            for split, start, end in (("train", 0, 120), ("dev", 120, 160), ("test", 160, 200))
            for row, text in enumerate(topics[start:end])
        ]
        (root / "probing" / f"{names[-1]}.tsv").write_text("\n".join(["split\tlabel\tsentence", *rows]) + "\n")
    return root


@pytest.mark.parametrize("protocol", ["senteval", "senteval-fast"])
def test_ten_tasks_their_average_and_what_the_files_are(tiny: Path, tables: Path, protocol: str) -> None:
    found = isotrope.evaluate(tiny, "probing", tables, protocol=protocol)
    scores = found.scores["probing"]
    assert list(scores) == [*TASKS, "average"]
    assert scores["average"]["accuracy"] == pytest.approx(np.mean([scores[task]["accuracy"] for task in TASKS]))
    assert found.protocol["protocol"] == f"probing-{protocol}-v1"
    assert {task["protocol"] for task in found.tasks} == {f"probing-{protocol}-v1"}
    assert found.protocol["files"].startswith("derived, not SentEval's")
    table = found.table()
    assert "average of ten (derived)" in table
    assert "top_dependents" in table
    assert find_suite("probing")().summary(found) == {"probing_average": scores["average"]["accuracy"]}
    for task in TASKS:
        assert len(found.items[task]) == 40
        assert found.items[task].score() == pytest.approx(scores[task]["accuracy"])


def test_some_tasks_have_no_average(tiny: Path, tables: Path) -> None:
    found = isotrope.evaluate(tiny, "probing", tables, tasks=["Tense", "BShift"])
    assert list(found.scores["probing"]) == ["Tense", "BShift"]
    assert find_suite("probing")().summary(found) == {}


def test_what_is_refused(tiny: Path, tables: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Unknown task 'Tens'; did you mean 'Tense'"):
        isotrope.evaluate(tiny, "probing", tables, tasks=["Tens"])
    with pytest.raises(InputError, match="Unknown protocol 'transfer-logistic-v2'"):
        isotrope.evaluate(tiny, "probing", tables, protocol="transfer-logistic-v2")
    (tmp_path / "probing").mkdir()
    with pytest.raises(InputError, match=r"sentence_length\.txt, or a table sentence_length\.tsv\.gz, is missing"):
        isotrope.evaluate(tiny, "probing", tmp_path)
    empty = tmp_path / "probing" / "past_present.tsv"
    empty.write_text("split\tlabel\tsentence\n")
    with pytest.raises(InputError):
        isotrope.evaluate(tiny, "probing", tmp_path, tasks=["Tense"])
    empty.write_text("split\tlabel\tsentence\ntrain\t1\ta\ntest\t1\tb\n")
    with pytest.raises(InputError, match="no row of split dev"):
        isotrope.evaluate(tiny, "probing", tmp_path, tasks=["Tense"])
