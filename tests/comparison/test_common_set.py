"""One held-out set for all rows of a comparison without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.comparison.common_set import COMMON, FEWEST, HIGH, LOW, CommonSet, reciprocal_ranks, spoken_gain


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
    start = reciprocal_ranks(some, texts, texts).tolist()
    before = 100 * float(np.mean(start))
    common = CommonSet("pairs", texts, texts, start)
    same, better = common.measures(some), common.measures(every)
    assert (same[LOW], same[HIGH]) == pytest.approx((0.0, 0.0))  # the same ranks: no draw of records can differ
    assert better[COMMON] == pytest.approx(100.0)
    assert 0 < better[LOW] < better[COMMON] - before < better[HIGH]
    assert "which may be none" in str(spoken_gain("a", 1, same, common.before()))
    assert "may be none" not in str(spoken_gain("a", 1, better, common.before()))
    assert spoken_gain("a", 1, {}, {}) is None


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Pairs of other texts than the sentences."""
    rows = "".join(f"order {row} was sent\tthe parcel of order {row} left the house\n" for row in range(200))
    (tmp_path / "pairs.tsv").write_text(f"query\tpassage\n{rows}", encoding="utf-8")
    return tmp_path / "pairs.tsv"


def test_rows_on_different_texts_share_one_set(
    short: dict[str, Any], sentences: Path, pairs: Path, tmp_path: Path
) -> None:
    methods = "simcse,simcse-supervised"
    found = isotrope.compare([sentences, pairs], methods, tmp_path / "all", **{**short, "seeds": 1, "max_steps": 2})
    common = CommonSet.read(tmp_path / "all")
    assert common is not None
    assert len({*common.first}) == len(common.first) >= FEWEST
    assert [run.before[COMMON] for run in found.runs] == pytest.approx([100 * float(np.mean(common.start))] * 2)
    assert "MRR of all rows" in found.table()
    assert "common" not in found.table()
    for run in found.runs:
        row = next(row for row in found.rows() if row.name == run.name)
        assert row.gains[COMMON] == pytest.approx([run.measures[COMMON] - run.before[COMMON]])
        assert any(note.startswith(f"{run.name}, seed {run.seed}: ") for note in found.notes())


def test_what_another_run_trains_on_is_not_in_the_set(
    short: dict[str, Any], sentences: Path, topics: list[str], tmp_path: Path
) -> None:
    """The pairs are made of the sentences, so nothing is left."""
    rows = "".join(f"{text}\t{text} again\n" for text in topics)
    (tmp_path / "pairs.tsv").write_text(f"query\tpassage\n{rows}", encoding="utf-8")
    texts, terms = [sentences, tmp_path / "pairs.tsv"], {**short, "seeds": 1, "max_steps": 1}
    isotrope.compare(texts, "simcse,simcse-supervised", tmp_path / "all", **terms)
    assert CommonSet.read(tmp_path / "all") is None
