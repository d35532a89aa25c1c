"""A recipe is small and flat: what YAML allows beyond that is refused with the line that holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotrope.cli.recipe import read_recipe
from isotrope.errors import InputError
from isotrope.methods.frame.settings import LARGEST, Settings, resolve
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.pretrain_settings import PretrainSettings

LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(9))


def refused(folder: Path, content: str | bytes) -> str:
    path = folder / "a.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as error:
        read_recipe(path, "simcse")
    assert len(str(error.value)) < 600
    return str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LAUGHS, "more than 20 aliases"),
        ("settings: " + "[" * 5000, "nested more than 10 deep"),
        ("settings: " + "{a: " * 5000, "nested more than 10 deep"),
        ("about: '" + "x" * 1_100_000 + "'", "larger than 1,000,000 bytes"),
        ("method: simcse\nmethod: mlm\n", "line 2: 'method' stands twice"),
        ("settings:\n  seed: 1\n  seed: 2\n", "line 3: 'seed' stands twice"),
        ("1: simcse\n", "line 1: the key '1' is not a word"),
        ("settings:\n  2020-01-01: 3\n", "is not a word"),
        ("settings: {[1, 2]: 3}\n", "is not a word"),
        ("settings: &a\n  b: *a\n", "b is a word, a number"),
        ("settings:\n  seed: [1]\n", "seed is a word, a number, or yes or no, not a list"),
        ("settings:\n  seed: 2020-01-01\n", "not a date"),
        ("settings:\n  seed: 2020-13-45\n", "a value cannot be read"),
        ("settings:\n  seed: !!int x\n", "a value cannot be read"),
        ("settings:\n  seed: !!python/object/apply:os.getcwd []\n", "not a YAML file"),
        ("model: 5\n", "model is a word, not a int"),
        ("model: [a]\n", "model is a word, not a list"),
        ("pooling: true\n", "pooling is a word, not a bool"),
        ("method: [simcse]\n", "method is a word, not a list"),
        (b"model: \xff\n", "not a YAML file"),
        ("model: a\x00b\n", "not a YAML file"),
        ("a: 1\n---\nb: 2\n", "not a YAML file"),
        ("", "a recipe is a mapping"),
        ("settings: 5", "settings is a mapping"),
    ],
)
def test_what_a_recipe_must_not_hold(tmp_path: Path, content: str | bytes, said: str) -> None:
    assert said in refused(tmp_path, content)


def test_an_alias_and_a_merge_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("settings: {<<: {seed: 1}, epochs: &e 2, patience: *e}\n", encoding="utf-8")
    assert read_recipe(path, "simcse").settings == {"seed": 1, "epochs": 2, "patience": 2}


@pytest.mark.parametrize("value", [True, [1], (1,), {"a": 1}])
def test_a_number_is_neither_yes_nor_a_list(value: object) -> None:
    with pytest.raises(InputError, match="seed takes a value of type whole number"):
        resolve({"seed": value}, LoopSettings)


@pytest.mark.parametrize(
    ("settings", "name", "value", "said"),
    [
        (LoopSettings, "gradient_accumulation_steps", "1e30", "must be at most 10,000"),
        (LoopSettings, "epochs", "inf", "must be a finite number"),
        (LoopSettings, "epochs", "1e300", f"must be at most {LARGEST:,}"),
        (LoopSettings, "weight_decay", "-1", "must not be negative"),
        (LoopSettings, "seed", "-1", "must lie between 0 and 4,294,967,296"),
        (PretrainSettings, "layers", "1e9", "must be at most 1,000"),
        (PretrainSettings, "width", "1e9", "must be at most 65,536"),
        (PretrainSettings, "vocabulary", "1e12", "must be at most 10,000,000"),
    ],
)
def test_numbers_that_no_run_ends_with(settings: type[Settings], name: str, value: str, said: str) -> None:
    from isotrope.methods.frame.settings import check

    (chosen,) = resolve({name: value}, settings)
    with pytest.raises(InputError, match=f"{name} {said}"):
        check(chosen)
