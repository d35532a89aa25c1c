"""Ten labelled rows a class of real text, next to SetFit's plain recipe on the same start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import isotrope

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def few_shot(script: Callable[[str], Any]) -> Any:
    return script("benchmarks/few_shot.py")


def test_the_recipe_pairs_each_text_with_its_class_and_with_another(few_shot: Any) -> None:
    import random

    few = [("a", "1"), ("b", "1"), ("c", "2"), ("d", "2")]
    label = dict(few)
    pairs = few_shot.contrastive_pairs(few, random.Random(0))
    assert len(pairs) == 2 * few_shot.R * len(few)
    assert all((label[first] == label[second]) == bool(target) for first, second, target in pairs)
    assert all(first != second for first, second, _ in pairs)


def test_a_head_on_a_table_of_words_is_as_good_as_the_recipe(few_shot: Any, shared_data: Path, tmp_path: Path) -> None:
    """On subjectivity, two classes, 300 other texts; the start is the static model, so that both are quick."""
    isotrope.load("builtin-static").save(tmp_path / "m")
    drawn = few_shot.draw(few_shot.read_task(shared_data / "transfer", "subj"), 10, 300, seed=0)
    ours, theirs = (way(tmp_path / "m", *drawn, 0)["accuracy"] for way in (few_shot.head, few_shot.setfit))
    assert ours > 0.65
    assert ours >= theirs - 0.05
