"""The plan refuses before a model or the data are touched; nothing is written, and nothing is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import isotrope
from isotrope.errors import InputError
from isotrope.training import half_precision, opening
from isotrope.training.plan import make_plan, setting_classes, shared_setting_classes


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening anything is a failure."""

    def opened(*given: Any, **named: Any) -> None:
        raise AssertionError("a model or the data were touched")

    for name in ("load", "open_corpus", "find_records"):
        monkeypatch.setattr(opening, name, opened)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("method", "given", "said"),
    [
        ("simsce", {}, "did you mean 'simcse'"),
        ("simcse", {"temprature": 1}, "did you mean 'temperature'"),
        ("simcse", {"temperature": -1}, "temperature must be above 0"),
        ("simcse", {"temperature": float("nan")}, "temperature must be a finite number"),
        ("simcse", {"temperature": float("inf")}, "temperature must be a finite number"),
        ("simcse", {"batch_size": 1}, "batch_size must be at least 2"),
        ("simcse", {"batch_size": "many"}, "batch_size takes a value of type whole number"),
        ("simcse", {"seed": -1}, "seed must lie between 0"),
        ("simcse", {"optimiser": "lion"}, "optimiser is one of adamw, muon, adagrad, sgd"),
        ("simcse", {"second_edits": "swap:0.1"}, "Unknown edit 'swap'"),
        ("simcse", {"mlm_weight": -1}, "mlm_weight must not be negative"),
        ("simcse", {"child_tuning": "E"}, "child_tuning is one of none, F, D"),
        ("simcse", {"chain_thaw": "soon"}, "chain_thaw is none, even"),
        ("mlm", {"mlm_weight": 0.1}, "among its own terms; leave mlm_weight out"),
        ("cline", {"rtd_weight": 0.1}, "among its own terms; leave rtd_weight out"),
        ("vascl", {"neighbours": 16, "batch_size": 8}, "neighbours must be fewer"),
        ("moco", {"queue": 8, "batch_size": 16}, "queue"),
        ("word2vec", {"model": "builtin"}, "leave model out"),
        ("word2vec", {"pooling": "cls"}, "leave pooling out"),
        ("lre", {"mlm_weight": 0.1}, "needs a transformer"),
        ("simcse", {"pooling": "mean+cls"}, r"could not be saved. Say 'cls\+mean'"),
        ("whitening", {}, "fitted, not trained"),
        ("child-tuning", {}, "changes the updates of another method"),
    ],
)
def test_what_needs_neither_model_nor_data_is_refused_first(
    method: str, given: dict[str, Any], said: str, sentences: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        isotrope.train(method, sentences, output=tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("untouched")
def test_files_and_folders_are_refused_first(sentences: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "run.json").write_text("{}")
    for given, said in (
        ({"data": tmp_path / "nowhere.txt"}, "no such file"),
        ({"data": taken}, "this is a folder"),
        ({"eval_data": tmp_path / "nowhere.tsv"}, "no such file"),
        ({"output": taken}, "a run is here already"),
        ({"output": sentences}, "a file stands where"),
        ({"output": tmp_path / "empty", "resume": True}, "no run to resume"),
        ({"resume": True}, "give its folder as output"),
    ):
        with pytest.raises(InputError, match=said):
            isotrope.train("simcse", **{"data": sentences, **given})


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("given", [{"precision": "bfloat16"}, {"optimiser": "muon"}])
def test_bfloat16_is_refused_on_a_processor_that_dies_of_it(
    given: dict[str, str], sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(half_precision, "bfloat16_works", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="bfloat16"):
        isotrope.train("simcse", sentences, output=tmp_path / "run", **given)
    with pytest.raises(InputError, match="bfloat16"):
        isotrope.pretrain(sentences, output=tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


def test_what_needs_no_bfloat16_is_not_kept_waiting_for_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half_precision, "bfloat16_works", lambda: pytest.fail("the probe ran"))
    half_precision.check_processor("adamw", "auto")
    half_precision.check_processor("sgd", "float32")


def test_a_plan_holds_every_setting_of_the_run_once(sentences: Path, tmp_path: Path) -> None:
    plan = make_plan("simcse", sentences, output=tmp_path / "run", temperature=0.1, mlm_weight=0.5, child_tuning="F")
    resolved = plan.resolved(plan.loop)
    assert (resolved["temperature"], resolved["mlm_weight"], resolved["child_tuning"]) == (0.1, 0.5, "F")
    assert [(auxiliary.card.name, weight) for auxiliary, weight in plan.active] == [("mlm", 0.5)]
    assert [tactic.card.name for tactic, settings in plan.tactics if settings.active] == ["child-tuning"]
    assert plan.given == {"temperature", "mlm_weight", "child_tuning"}
    assert plan.language_head
    names = [name for each in setting_classes(plan.method) for name in each.__dataclass_fields__]
    assert len(names) == len(set(names)) == len(resolved)
    assert set(setting_classes(plan.method)) - {plan.method.Settings} == set(shared_setting_classes())


def test_float16_on_a_processor_is_refused_and_not_silently_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOTROPE_DEVICE", "cpu")
    with pytest.raises(InputError, match="float16 needs a GPU"):
        make_plan("simcse", "sentences.txt", precision="float16")


def test_auto_never_takes_bfloat16_on_a_processor_beside_an_unused_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    assert half_precision.mixed_precision("auto") == "bf16"
    monkeypatch.setenv("ISOTROPE_DEVICE", "cpu")
    assert half_precision.mixed_precision("auto") == "no"
    monkeypatch.setattr(half_precision, "bfloat16_works", lambda: False)
    with pytest.raises(InputError, match="leave precision at auto"):
        half_precision.check_processor("adamw", "bfloat16")
