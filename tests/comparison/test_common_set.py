"""One held-out set for all rows of a comparison without labels."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.comparison.common_set import COMMON, FEWEST, HIGH, LOW, CommonSet, reciprocal_ranks, spoken_gain
from isotrope.data.corpus import open_corpus
from isotrope.data.held_out import hold_out
from isotrope.errors import InputError
from isotrope.evaluation.held_out_parts import part_held_out
from isotrope.evaluation.label_free import natural_pairs


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
    uneven = CommonSet("pairs", texts, texts, np.random.default_rng(1).random(40).tolist())
    assert uneven.measures(every) == uneven.measures(every)  # the same draws for every run, and every time
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


def test_what_chooses_a_checkpoint_is_not_in_the_set(short: dict[str, Any], tmp_path: Path) -> None:
    lines = [
        f"The {'cook' if n % 2 else 'guard'} of house {n} sold {n % 7} coats to guest {3 * n}." for n in range(4000)
    ]
    (tmp_path / "many.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    terms = {**short, "seeds": 1, "max_steps": 1, "held_out": 400}
    isotrope.compare(tmp_path / "many.txt", "simcse", tmp_path / "all", **terms)
    common = CommonSet.read(tmp_path / "all")
    assert common is not None
    corpus = open_corpus(tmp_path / "many.txt", ("sentences",), isotrope.load(short["model"]).text_tokenizer)
    parts = part_held_out(corpus, hold_out(corpus, 400, 42)[1])
    assert parts.apart
    assert not {*common.first} & {*natural_pairs(corpus, parts.choosing).first}
    assert {*common.first} <= {*natural_pairs(corpus, parts.judging).first}


def test_what_another_run_trains_on_is_not_in_the_set(
    short: dict[str, Any], sentences: Path, topics: list[str], tmp_path: Path
) -> None:
    """The pairs are made of the sentences, so nothing is left."""
    rows = "".join(f"{text}\t{text} again\n" for text in topics)
    (tmp_path / "pairs.tsv").write_text(f"query\tpassage\n{rows}", encoding="utf-8")
    texts, terms = [sentences, tmp_path / "pairs.tsv"], {**short, "seeds": 1, "max_steps": 1}
    isotrope.compare(texts, "simcse,simcse-supervised", tmp_path / "all", **terms)
    assert CommonSet.read(tmp_path / "all") is None


def test_a_method_that_is_added_on_another_text_shrinks_the_set_and_finished_runs_are_judged_again(
    short: dict[str, Any], sentences: Path, topics: list[str], tmp_path: Path
) -> None:
    """Half of the set stands in the text of the added method: its run must not be judged on what it trained on."""
    terms, output = {**short, "seeds": 1, "max_steps": 2, "held_out": 60}, tmp_path / "all"
    isotrope.compare(sentences, "simcse", output, **terms)
    before = CommonSet.read(output)
    assert before is not None
    trained = [*before.first[::2], *(f"order number {row} was sent" for row in range(200))]
    rows = "".join(f"{text}\tagain {text}\n" for text in trained)
    (tmp_path / "pairs.tsv").write_text(f"query\tpassage\n{rows}", encoding="utf-8")
    texts, methods = [sentences, tmp_path / "pairs.tsv"], "simcse,simcse-supervised"
    found = isotrope.compare(texts, methods, output, **terms)
    after = CommonSet.read(output)
    assert after is not None
    whole = map(" ".join, zip(after.first, after.second, strict=True))  # of halves
    assert not {*after.first, *after.second, *whole} & {*trained}
    for run in found.runs:
        encoder = isotrope.load(output / f"{run.name}-seed-{run.seed}" / "model")
        assert run.measures[COMMON] == pytest.approx(after.measures(encoder)[COMMON])
        assert run.before[COMMON] == pytest.approx(100 * float(np.mean(after.start)))


def test_a_set_of_another_start_is_made_anew(short: dict[str, Any], sentences: Path, tmp_path: Path) -> None:
    """A comparison whose runs all failed holds nothing to refuse another model by."""
    output, terms = tmp_path / "all", {**short, "seeds": 1, "max_steps": 2}
    isotrope.compare(sentences, "simcse", output, **terms)
    before = CommonSet.read(output)
    shutil.rmtree(output / "simcse-seed-42")
    isotrope.compare(sentences, "simcse", output, **{**terms, "pooling": "max"})
    after = CommonSet.read(output)
    assert before is not None
    assert after is not None
    assert after.first == before.first
    assert after.start != before.start


def test_benchmarks_alone_judge_where_they_are_asked_for(
    short: dict[str, Any], sentences: Path, benchmarks: Path, tmp_path: Path
) -> None:
    """The set of an earlier call is no judge of this one, and an earlier run gets its start with its set."""
    output, terms = tmp_path / "all", {**short, "seeds": 1, "max_steps": 2}
    (without,) = isotrope.compare(sentences, "simcse", output, **terms).runs
    (sts,) = isotrope.compare(sentences, "simcse", output, suite="sts", data_dir=benchmarks, **terms).runs
    (again,) = isotrope.compare(sentences, "simcse", output, suite="label-free", **terms).runs
    assert COMMON not in {**sts.measures, **sts.before}
    assert again.measures[COMMON] == pytest.approx(without.measures[COMMON])
    assert again.before[COMMON] == pytest.approx(without.before[COMMON])


def test_a_damaged_set_is_named(tmp_path: Path) -> None:
    (tmp_path / "held_out.json").write_text('{"origin": "pa', encoding="utf-8")
    with pytest.raises(InputError, match=r"held_out\.json: damaged"):
        CommonSet.read(tmp_path)
