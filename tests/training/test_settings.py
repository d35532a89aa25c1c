"""Settings by name: types, nearest names, sentences for values that cannot work."""

from __future__ import annotations

import pytest

from isotrope.errors import InputError
from isotrope.methods.frame.settings import check, resolve
from isotrope.methods.simcse import SimCSESettings
from isotrope.training.loop_settings import LoopSettings


def test_words_become_values_of_the_right_kind() -> None:
    method, loop = resolve(
        {"temperature": "0.1", "batch-size": "32", "max_steps": "1e3", "dropout": "none"}, SimCSESettings, LoopSettings
    )
    assert method == SimCSESettings(temperature=0.1)
    assert (loop.batch_size, loop.max_steps) == (32, 1000)


def test_an_unknown_name_gets_its_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'temperature'"):
        resolve({"temprature": 1}, SimCSESettings, LoopSettings)


@pytest.mark.parametrize(
    ("name", "value"),
    [("batch_size", "many"), ("batch_size", 1.5), ("temperature", "warm"), ("epochs", None), ("seed", [1])],
)
def test_a_value_of_another_kind_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InputError, match=name):
        resolve({name: value}, SimCSESettings, LoopSettings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", 0.0),
        ("learning_rate", -1.0),
        ("learning_rate", float("nan")),
        ("batch_size", 0),
        ("batch_size", 1),
        ("epochs", 0.0),
        ("warmup_ratio", 1.0),
        ("max_steps", 0),
        ("precision", "float8"),
        ("report_to", "paper"),
        ("weight_decay", -0.1),
        ("eval_steps", 0),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InputError, match=name):
        check(LoopSettings(**{name: value}))  # type: ignore[arg-type]
