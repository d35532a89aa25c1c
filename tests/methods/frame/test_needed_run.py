"""The run that a method needs first: made once, of the same start and text, found again, whole or absent."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import isotrope
from isotrope.errors import InputError
from isotrope.files import cache_folder
from isotrope.methods.frame.combined import Combined
from isotrope.training.plan import make_plan
from isotrope.training.prerequisite import plan_needed, with_needed_run

LOOP: dict[str, Any] = {
    "max_steps": 3,
    "batch_size": 16,
    "eval_steps": 3,
    "logging_steps": 1,
    "learning_rate": 1e-3,
    "max_length": 32,
    "held_out": 0,
    "keep_start": False,  # the needed run keeps none
    "pooling": "mean",
}

pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of the method of each update that is made from now on."""
    plain, seen = Combined.after_update, []

    def watch(self: Combined, representations: dict[str, Any]) -> None:
        plain(self, representations)
        seen.append(self.method.card.name)

    monkeypatch.setattr(Combined, "after_update", watch)
    return seen


def kept() -> list[Path]:
    return sorted(path for path in (cache_folder() / "runs").glob("*") if path.is_dir())


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return isotrope.load(folder, device="cpu").state_dict()


def same(first: Path, second: Path) -> bool:
    one, other = weights(first), weights(second)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_it_is_the_plain_run_of_the_other_method_and_it_is_made_once(
    tiny: Path, sentences: Path, tmp_path: Path, trained: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="isotrope"):
        run = isotrope.train("dclr", sentences, tiny, tmp_path / "run", **LOOP)
    (folder,) = kept()
    assert trained == ["simcse"] * 3 + ["dclr"] * 3
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == f"dclr needs a complement: simcse for 3 steps, kept in {folder}"
    told = ("read-out: ", "the start: ", "step ")
    assert [line for line in said if not line.startswith(told)] == said[:1]
    isotrope.train("simcse", sentences, tiny, tmp_path / "plain", **LOOP)
    assert same(folder / "model", tmp_path / "plain" / "model")
    assert not (folder / "checkpoints").exists()
    facts = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
    assert facts["settings"]["complement"] == "auto"
    assert facts["made"] == {"complement": str(folder / "model")}

    trained.clear()
    isotrope.train("dclr", sentences, tiny, tmp_path / "again", **{**LOOP, "logging_steps": 3, "temperature": 0.1})
    assert trained == ["dclr"] * 3
    assert kept() == [folder]


def test_a_folder_that_is_given_and_no_threshold_need_no_run(
    tiny: Path, sentences: Path, tmp_path: Path, trained: list[str]
) -> None:
    isotrope.train("dclr", sentences, tiny, tmp_path / "given", complement=str(tiny), **LOOP)
    isotrope.train("dclr", sentences, tiny, tmp_path / "none", threshold=None, **LOOP)
    assert set(trained) == {"dclr"}
    assert kept() == []


def test_what_decides_the_weights_decides_the_place(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(sentences.read_text(encoding="utf-8") + "one more\n", encoding="utf-8")
    seen: list[str] = []

    def place(data: Path = sentences, model: Path = tiny, **settings: Any) -> str:
        plan = make_plan("dclr", data, model, tmp_path / "run", **{**LOOP, **settings})
        return with_needed_run(plan, lambda first: seen.append(pretend(first))).made["complement"]

    def pretend(first: Any) -> str:
        first.folder.model.mkdir(parents=True)
        (first.folder.model / "modules.json").write_text("[]", encoding="utf-8")
        return str(first.name)

    plain = place()
    places = [
        place(seed=7),
        place(complement_steps=2),
        place(learning_rate=1e-4),
        place(data=other),
        place(pooling="cls"),
    ]
    assert len({plain, *places}) == 6
    assert seen == ["simcse"] * 6
    assert plain == place() == place(noise=0.0) == place(eval_data=tiny / "dev.tsv") == place(logging_steps=2)
    assert len(seen) == 6


def test_a_damaged_one_is_made_again(
    tiny: Path, sentences: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[str] = []

    def pretend(first: Any) -> None:
        first.folder.model.mkdir(parents=True)
        (first.folder.model / "weights").write_bytes(bytes(100))
        made.append(first.name)

    plan = make_plan("dclr", sentences, tiny, tmp_path / "run", **LOOP)
    file = Path(with_needed_run(plan, pretend).made["complement"], "weights")
    with caplog.at_level(logging.INFO, logger="isotrope"):
        for damage in (lambda: file.write_bytes(bytes(99) + b"x"), lambda: file.unlink()):
            damage()
            with_needed_run(plan, pretend)
            assert file.read_bytes() == bytes(100)
            assert "is damaged (model/weights" in caplog.text
    with_needed_run(plan, pretend)
    assert len(made) == 3


def test_no_labels_reach_it(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    dev = tmp_path / "dev.tsv"
    plan = make_plan("dclr", sentences, tiny, tmp_path / "run", eval_data=dev, mlm_weight=0.1, **LOOP)
    needed = plan.method.needed_run(plan.settings)  # type: ignore[attr-defined]
    first = plan_needed(plan, needed)
    assert (first.name, first.eval_data, first.active, first.pooling) == ("simcse", (), (), "mean")
    assert first.loop == plan.loop
    assert plan_needed(plan, replace(needed, steps=2)).loop.max_steps == 2


def test_interrupted_it_is_not_kept_and_the_same_call_goes_on(
    tiny: Path, sentences: Path, tmp_path: Path, interrupted: Callable[..., Any], trained: list[str]
) -> None:
    with interrupted(2), pytest.raises(KeyboardInterrupt, match="stopped in simcse, which comes first; the same call"):
        isotrope.train("dclr", sentences, tiny, tmp_path / "run", **LOOP)
    assert [folder.suffix for folder in kept()] == [".part"]
    assert not (tmp_path / "run").exists()
    trained.clear()
    isotrope.train("dclr", sentences, tiny, tmp_path / "run", **LOOP)
    assert trained == ["simcse"] + ["dclr"] * 3
    (folder,) = kept()
    isotrope.train("simcse", sentences, tiny, tmp_path / "plain", **LOOP)
    assert same(folder / "model", tmp_path / "plain" / "model")


def test_a_resumed_run_finds_it_and_repeats_the_uninterrupted_one(sentences: Path, resume_agrees: Any) -> None:
    resume_agrees("dclr", sentences, pooling="mean", threshold=0.99)
    assert len(kept()) == 1


def test_two_rows_of_a_comparison_share_it(tiny: Path, sentences: Path, tmp_path: Path, trained: list[str]) -> None:
    loop = {name: value for name, value in LOOP.items() if name != "pooling"}
    found = isotrope.compare(
        sentences,
        "plain=dclr,quiet=dclr",
        tmp_path / "runs",
        model=tiny,
        seeds=1,
        own={"quiet": {"noise": 0.0}},
        **loop,
    )
    assert found.failures == []
    assert trained == ["simcse"] * 3 + ["dclr"] * 6
    assert len(kept()) == 1


def test_a_cache_that_cannot_be_written_is_one_sentence(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isotrope.train("simcse", sentences, tiny, tmp_path / "tokens", **LOOP)  # the tokens are cached before
    (cache_folder() / "runs").write_text("in the way", encoding="utf-8")
    with pytest.raises(InputError, match=r"Cannot write .*runs.*is a file"):
        isotrope.train("dclr", sentences, tiny, tmp_path / "run", **LOOP)
    assert not (tmp_path / "run").exists()


def test_a_method_that_is_built_by_hand_asks_for_a_folder(tiny: Path) -> None:
    from isotrope.methods.dclr import DCLR, DCLRSettings

    with pytest.raises(InputError, match=r"complement auto is trained by isotrope\.train"):
        DCLR(DCLRSettings(), isotrope.load(tiny, device="cpu"), 32)
