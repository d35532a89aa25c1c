"""Rows that differ in a setting, and what cannot vary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.comparison.line_up import plan_comparison
from isotrope.comparison.variants import vary_settings
from isotrope.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore:Training did not improve")


def test_every_value_is_a_row_and_several_settings_give_their_product() -> None:
    methods, own = vary_settings(
        {"simcse": "simcse", "big": "moco"},
        {"big": {"queue-size": 32}},
        {"temperature": [0.05, 0.1], "weight-decay": "0,0.01"},
        {},
    )
    assert list(methods) == [
        f"{label} temperature={temperature} weight_decay={decay}"
        for label in ("simcse", "big")
        for temperature in (0.05, 0.1)
        for decay in ("0", "0.01")
    ]
    assert own["big temperature=0.1 weight_decay=0"] == {"queue_size": 32, "temperature": 0.1, "weight_decay": "0"}
    assert vary_settings({"simcse": "simcse"}, {}, {}, {}) == ({"simcse": "simcse"}, {})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"vary": {"temperature": "0.1"}}, r"mlm has no setting temperature; of those compared, simcse has it"),
        ({"vary": {"mask_rate_": "0.1"}}, "No method that is compared has the setting mask_rate_; nor has any other"),
        ({"vary": {"foo": "1"}}, r"has the setting foo; nor has any other; known: adam_beta1, adam_beta2, "),
        ({"vary": {"queue": "4"}}, "No method that is compared has the setting queue; methods that have it are "),
        ({"vary": {"max_steps": [1, 2]}}, "max_steps is the same for every run"),
        ({"vary": {"held-out": [1, 2]}}, "held_out is the same for every run"),
        ({"vary": {"learning_rate": ""}}, "vary needs values for learning_rate"),
        ({"vary": {"learning_rate": ["1e-3", ""]}}, "vary needs values for learning_rate"),
        ({"vary": {"learning_rate": "1e-3"}, "learning_rate": 1}, "was given a value and is to vary as well"),
        ({"vary": {"learning_rate": "1"}, "own": {"mlm": {"learning-rate": 1}}}, "and is to vary as well"),
        ({"vary": {"learning_rate": "-1"}}, "learning_rate must be above 0"),
        ({"vary": {"learning_rate": "1"}, "own": {"sincse": {}}}, "'sincse', which is not compared"),
    ],
)
def test_what_cannot_vary_is_refused(given: dict[str, Any], said: str, sentences: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        plan_comparison(**{"data": sentences, "methods": "simcse,mlm", "output": tmp_path / "all", **given})


def test_a_row_for_each_value_in_a_folder_of_its_own(short: dict[str, Any], sentences: Path, tmp_path: Path) -> None:
    given = {**short, "seeds": 1, "max_steps": 2, "vary": {"temperature": "0.05,0.5"}}
    found = isotrope.compare(sentences, "simcse", tmp_path / "all", **given)
    assert [row.name for row in found.rows()] == ["start", "simcse temperature=0.05", "simcse temperature=0.5"]
    assert [run.facts.settings["temperature"] for run in found.runs] == [0.05, 0.5]
    assert (tmp_path / "all" / "simcse-temperature=0.05-seed-42" / "judgement.json").is_file()
    assert "simcse temperature=0.5: simcse" not in found.table()  # the label says it
    assert isotrope.compare(sentences, "simcse", tmp_path / "all", **given).runs == found.runs
