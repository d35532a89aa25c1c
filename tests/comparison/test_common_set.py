"""One held-out set for all rows of a comparison without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.comparison.common_set import COMMON, HIGH, LOW, CommonSet, spoken_gain
from isotrope.progress import spoken_time


class Planted:
    """Row i of one side is nearest to row i of the other where ``right`` says so, else to the next one."""

    def __init__(self, right: list[bool]) -> None:
        self.right = right

    def encode(self, texts: list[str], show_progress_bar: bool) -> np.ndarray:
        count = len(self.right)
        second = np.eye(count)
        first = np.array([second[row] if good else second[(row + 1) % count] for row, good in enumerate(self.right)])
        return np.concatenate([first, second])


def test_the_gain_is_paired_record_by_record() -> None:
    texts = [str(row) for row in range(40)]
    some: Any = Planted([row % 2 == 0 for row in range(40)])
    every: Any = Planted([True] * 40)
    unknown = CommonSet("pairs", texts, texts, [0.0] * 40)
    before = unknown.measures(some)[COMMON]
    start = [1.0 if row % 2 == 0 else (before / 100 - 0.5) * 2 for row in range(40)]
    common = CommonSet("pairs", texts, texts, start)
    same, better = common.measures(some), common.measures(every)
    assert (same[LOW], same[HIGH]) == pytest.approx((0.0, 0.0))  # the same ranks: no draw of records can differ
    assert better[COMMON] == pytest.approx(100.0)
    assert 0 < better[LOW] < better[COMMON] - before < better[HIGH]
    assert "which may be none" in str(spoken_gain("a", 1, same, common.before()))
    assert "may be none" not in str(spoken_gain("a", 1, better, common.before()))
    assert spoken_gain("a", 1, {}, {}) is None


def test_rows_on_different_texts_share_one_set_that_nobody_trains_on(
    tiny: Path, sentences: Path, triples: Path, tmp_path: Path
) -> None:
    settings = {"max_steps": 2, "eval_steps": 2, "batch_size": 8, "max_length": 32, "held_out": 60, "seeds": 1}
    found = isotrope.compare([sentences, triples], "simcse,simcse-supervised", tmp_path / "all", model=tiny, **settings)
    common = CommonSet.read(tmp_path / "all")
    assert common is not None
    assert len({*common.first}) == len(common.first) >= 20
    assert {run.before[COMMON] for run in found.runs} == {100 * pytest.approx(float(np.mean(common.start)))}
    head = found.table().splitlines()
    assert any("MRR of all rows" in line for line in head)
    assert not any("common" in line for line in head)
    for run in found.runs:
        row = next(row for row in found.rows() if row.name == run.name)
        assert row.gains[COMMON] == pytest.approx([run.measures[COMMON] - run.before[COMMON]])
        assert any(note.startswith(f"{run.name}, seed {run.seed}: ") for note in found.notes())
    assert spoken_time(30) == "30 s"
