"""Chain-thaw:

which part learns when, that nothing else moves by a bit, and that a run goes on in the middle of a stage.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import isotrope
from isotrope.encoders.parts.attention import attend
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.methods.mlm import MaskedLanguageModel
from isotrope.methods.sg import SelfGuided
from isotrope.methods.simcse import SimCSE
from isotrope.towers.keeping import Frozen
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.state import Judgement
from isotrope.training.step_folder import weights_of
from isotrope.training.tactics.chain_thaw import ChainThaw, ChainThawSettings, chain

pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
SHORT: dict[str, Any] = {
    "batch_size": 8,
    "eval_steps": 100,
    "logging_steps": 1,
    "learning_rate": 1e-3,
    "held_out": 0,
    "max_length": 32,
}
PARTS = ("head", "embeddings", "layer 1", "layer 2", "read-out")


def simcse(tiny: Path, pooling: str = "cls") -> Combined:
    return Combined(SimCSE(SimCSE.Settings(), isotrope.load(tiny, pooling=pooling, device="cpu"), 32))


def thaw_of(combined: Combined, asked: str, steps: int, **loop: float | str) -> ChainThaw:
    settings = ChainThawSettings(chain_thaw=asked)
    check(settings)
    return ChainThaw(settings, combined, LoopSettings(**loop), steps)  # type: ignore[arg-type]


def part_of(name: str) -> str:
    """Of a parameter, by its name: a twin of ``chain`` for the tiny BERT."""
    if name.startswith("method.tower."):
        return "head"
    if not name.startswith("method.encoder.backbone."):
        return "read-out"
    number = name.split("layer.")[1].split(".")[0] if "layer." in name else ""
    return f"layer {int(number) + 1}" if number else "embeddings" if "embeddings" in name else "layer 2"


@contextmanager
def interrupted(monkeypatch: pytest.MonkeyPatch, at: int) -> Iterator[None]:
    """Inside the block a run gets Ctrl-C after update ``at``, and ends there."""
    plain, taken = Combined.after_update, iter(range(1, 1000))

    def interrupt(self: Combined, representations: dict[str, Tensor]) -> None:
        plain(self, representations)
        if next(taken) == at:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Combined, "after_update", interrupt)
        with pytest.raises(KeyboardInterrupt, match=f"step {at}"):
            yield


def watched(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Tensor]]:
    """All weights after each update, and before the first."""
    seen: list[dict[str, Tensor]] = []
    finish, first = Combined.after_update, Combined.train

    def start(self: Combined, mode: bool = True) -> Combined:
        if not seen:
            seen.append({name: tensor.clone() for name, tensor in weights_of(self).items()})
        return first(self, mode)

    def noting(self: Combined, representations: dict[str, Tensor]) -> None:
        finish(self, representations)
        seen.append({name: tensor.clone() for name, tensor in weights_of(self).items()})

    monkeypatch.setattr(Combined, "train", start)
    monkeypatch.setattr(Combined, "after_update", noting)
    return seen


def moved(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    return {part_of(name) for name in before if not torch.equal(before[name], after[name])}


@pytest.mark.parametrize("chunk_size", [None, 3])
def test_each_stage_moves_its_part_alone(
    chunk_size: int | None, tiny: Path, samples: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two updates a stage, with weight decay: everything else is bit-identical."""
    seen = watched(monkeypatch)
    settings = {**SHORT, "max_steps": 12, "chain_thaw": "2", "weight_decay": 0.1, "chunk_size": chunk_size}
    run = isotrope.train("deepmoji", samples["labelled"], tiny, tmp_path / "run", **settings)
    assert len(seen) == 13
    for number, part in enumerate(PARTS):
        for step in (2 * number, 2 * number + 1):
            assert moved(seen[step], seen[step + 1]) == {part}, step
    assert moved(seen[10], seen[11]) == set(PARTS)
    stages = [line["trained"] for line in run.history if "trained" in line]
    assert stages == [part for part in (*PARTS, "all") for _ in range(2)]
    assert all(parameter.requires_grad for parameter in run.encoder.parameters())


def test_the_chain_of_a_model(tiny: Path) -> None:
    method = simcse(tiny)
    links = chain(method)
    assert list(links) == ["head", "embeddings", "layer 1", "layer 2", "all"]
    names = {id(parameter): name for name, parameter in method.named_parameters()}
    for part, parameters in links.items():
        if part != "all":
            assert {part_of(names[id(parameter)]) for parameter in parameters} == {part}
    single = [id(parameter) for part, parameters in links.items() if part != "all" for parameter in parameters]
    assert sorted(single) == sorted(map(id, links["all"]))  # each once
    assert list(chain(simcse(tiny, "mean")))[:2] == ["embeddings", "layer 1"]  # no head, no such stage
    attend(method.encoder)
    assert list(chain(method))[-2:] == ["read-out", "all"]


def test_a_head_that_shares_the_embeddings_has_only_what_is_its_own(tiny: Path) -> None:
    encoder = isotrope.load(tiny, device="cpu", language_head=True)
    method = Combined(MaskedLanguageModel(MaskedLanguageModel.Settings(), encoder, 32))
    links = chain(method)
    inside = {id(parameter) for parameter in method.encoder.parameters()}
    assert links["head"]
    assert not {id(parameter) for parameter in links["head"]} & inside


def test_what_a_method_keeps_still_stays_so(tiny: Path) -> None:
    method = Combined(SelfGuided(SelfGuided.Settings(projection=16), isotrope.load(tiny, device="cpu"), 32))
    still = {name for name, parameter in method.named_parameters() if not parameter.requires_grad}
    assert any(isinstance(tower, Frozen) for tower in method.towers.values())
    thaw = thaw_of(method, "even", 50)
    for step in range(50):
        thaw.before_update(step)
        trained = {name for name, parameter in method.named_parameters() if parameter.requires_grad}
        assert trained
        assert not trained & still
    assert len(trained | still) == len(list(method.named_parameters()))


@pytest.mark.parametrize(
    ("asked", "ends"),
    [
        ("3", [3, 6, 9, 12, 20]),
        ("even", [4, 8, 12, 16, 20]),
        ("5,0,1,2", [5, 6, 8, 20]),
        (" 1, 1,1,1 ", [1, 2, 3, 4, 20]),
    ],
)
def test_how_long_the_stages_are(asked: str, ends: list[int], tiny: Path) -> None:
    thaw = thaw_of(simcse(tiny), asked, 20)
    assert [stage.end for stage in thaw.stages] == ends
    assert [stage.start for stage in thaw.stages] == [0, *ends[:-1]]
    assert thaw.stages[-1].name == "all"
    for step in range(20):
        stage = thaw.stage(step)
        assert stage.start <= step < stage.end
    assert thaw.stage(20).name == "all"  # the schedule asks once more than there are updates


def test_the_rate_rises_and_falls_in_each_stage_and_the_head_has_ten_times(tiny: Path) -> None:
    thaw = thaw_of(simcse(tiny), "4", 20, warmup_ratio=0.25)
    one = [0.5, 1.0, 2 / 3, 1 / 3]
    assert [thaw.rate(step) for step in range(20)] == pytest.approx([10 * share for share in one] + 4 * one)
    assert thaw.rate(20) == 0.0


def test_a_stage_has_the_schedule_of_the_loop(tiny: Path) -> None:
    constant = thaw_of(simcse(tiny), "4", 20, warmup_ratio=0.25, schedule="constant")
    assert [constant.rate(step) for step in range(4, 8)] == [0.5, 1.0, 1.0, 1.0]
    cosine = thaw_of(simcse(tiny), "4", 20, warmup_ratio=0.25, schedule="cosine")
    assert [cosine.rate(step) for step in range(4, 8)] == pytest.approx([0.5, 1.0, 0.75, 0.25])


def test_by_default_there_are_no_stages() -> None:
    assert not ChainThawSettings().active
    assert ChainThawSettings(chain_thaw="even").active


@pytest.fixture
def falling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each evaluation is worse than the one before."""
    count = itertools.count()  # a resumed run goes on falling

    def judge(encoder: isotrope.Encoder) -> Judgement:
        return Judgement({"score": -float(next(count))}, "score")

    monkeypatch.setattr("isotrope.evaluation.checkpoint_judge.make_judge", lambda *_: judge)


PATIENT: dict[str, Any] = {**SHORT, "eval_steps": 1, "chain_thaw": "5", "stage_patience": 2, "max_steps": 24}


def test_a_stage_ends_by_patience_and_its_best_weights_are_put_back(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, falling: None
) -> None:
    """The first evaluation of a stage is its best, so it ends after three; the last stage has what they leave."""
    seen = watched(monkeypatch)
    run = isotrope.train("simcse", sentences, tiny, tmp_path / "run", pooling="cls", **PATIENT)
    lines = [line for line in run.history if "trained" in line]
    stages = [part for part in PARTS if part != "read-out"]
    assert [line["trained"] for line in lines] == [part for part in stages for _ in range(3)] + ["all"] * 12
    for number, part in enumerate(stages[:-1]):  # the stage after the last one moves everything
        best, last, later = seen[3 * number + 1], seen[3 * number + 3], seen[3 * number + 4]
        own = [name for name in best if part_of(name) == part]
        assert any(not torch.equal(best[name], last[name]) for name in own)
        assert all(torch.equal(best[name], later[name]) for name in own)


@pytest.mark.parametrize("at", [None, 4, 5])
def test_a_stage_that_uses_up_its_updates_ends_with_its_best_weights_too(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, falling: None, at: int | None
) -> None:
    """Four evaluations, each worse, and patience for more; resumed at the border of two stages, and behind it."""
    settings = {**PATIENT, "pooling": "cls", "chain_thaw": "4", "stage_patience": 9}
    seen = watched(monkeypatch)
    if at is not None:
        with interrupted(monkeypatch, at):
            isotrope.train("simcse", sentences, tiny, tmp_path / "run", **settings)
    isotrope.train("simcse", sentences, tiny, tmp_path / "run", resume=at is not None, **settings)
    for number, part in enumerate(PARTS[:3]):
        best, last, later = seen[4 * number + 1], seen[4 * number + 4], seen[4 * number + 5]
        own = [name for name in best if part_of(name) == part]
        assert any(not torch.equal(best[name], last[name]) for name in own)
        assert all(torch.equal(best[name], later[name]) for name in own)


def test_without_patience_a_stage_has_all_of_its_updates(
    tiny: Path, sentences: Path, tmp_path: Path, falling: None
) -> None:
    settings = {**PATIENT, "stage_patience": None}
    run = isotrope.train("simcse", sentences, tiny, tmp_path / "run", pooling="cls", **settings)
    trained = [line["trained"] for line in run.history if "trained" in line]
    assert trained == [part for part in PARTS[:4] for _ in range(5)] + ["all"] * 4


def test_a_better_score_keeps_a_stage_going(tiny: Path) -> None:
    thaw = thaw_of(simcse(tiny), "10", 100)
    assert thaw.settings.stage_patience == 5
    for step, score in enumerate([1.0, 0.9, 0.8, 0.7, 1.1, 0.6, 0.5, 0.4, 0.3], start=1):
        thaw.after_evaluation(step, score)
    assert [stage.end for stage in thaw.stages] == [10, 20, 30, 40, 100]
    thaw.after_evaluation(10, float("nan"))
    assert [(stage.start, stage.end) for stage in thaw.stages] == [(0, 10), (10, 20), (20, 30), (30, 40), (40, 100)]
    early = thaw_of(simcse(tiny), "10", 100)
    for step, score in enumerate([1.0, 0.9, 0.8, 0.7, 0.6, 0.5], start=1):
        early.after_evaluation(step, score)
    assert [(stage.start, stage.end) for stage in early.stages] == [(0, 6), (6, 16), (16, 26), (26, 36), (36, 100)]
    assert early.rate(6) == pytest.approx(early.rate(16))  # the next stage begins its own schedule at once


def test_resume_remembers_what_a_stage_has_seen(
    tiny: Path, sentences: Path, tmp_path: Path, falling: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between the best evaluation of a stage and its end."""
    settings = {**PATIENT, "pooling": "cls"}
    whole = isotrope.train("simcse", sentences, tiny, tmp_path / "whole", **settings)
    plain, taken = Combined.after_update, iter(range(1, 1000))

    def interrupt(self: Combined, representations: dict[str, Tensor]) -> None:
        plain(self, representations)
        if next(taken) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Combined, "after_update", interrupt)
        with pytest.raises(KeyboardInterrupt, match="step 5"):
            isotrope.train("simcse", sentences, tiny, tmp_path / "cut", **settings)
    again = isotrope.train("simcse", sentences, tiny, tmp_path / "cut", resume=True, **settings)
    first, second = (
        load_file(run.folder / "checkpoints" / "step-24" / "weights.safetensors") for run in (whole, again)
    )
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


@pytest.mark.parametrize("at", [3, 4])
def test_resume_equals_uninterrupted(
    at: int, tiny: Path, samples: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle of the second stage, and between two stages."""
    settings = {**SHORT, "max_steps": 12, "chain_thaw": "2", "eval_steps": 12}
    whole = isotrope.train("deepmoji", samples["labelled"], tiny, tmp_path / "whole", **settings)
    with interrupted(monkeypatch, at):
        isotrope.train("deepmoji", samples["labelled"], tiny, tmp_path / "cut", **settings)
    again = isotrope.train("deepmoji", samples["labelled"], tiny, tmp_path / "cut", resume=True, **settings)
    first, second = (
        load_file(run.folder / "checkpoints" / "step-12" / "weights.safetensors") for run in (whole, again)
    )
    assert [name for name in first if not torch.equal(first[name], second[name])] == []
    lines = [
        [(line["loss"], line["trained"], line["learning_rate"]) for line in run.history if "loss" in line]
        for run in (whole, again)
    ]
    assert lines[0] == lines[1]


def test_it_goes_with_child_tuning_and_any_method(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {**SHORT, "max_steps": 6, "chain_thaw": "1", "child_tuning": "F", "pooling": "cls", "mlm_weight": 0.1}
    run = isotrope.train("simcse", sentences, tiny, tmp_path / "run", **settings)
    assert [line["trained"] for line in run.history if "trained" in line] == [
        "head",
        "embeddings",
        "layer 1",
        "layer 2",
        "all",
        "all",
    ]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("5", "take 20 steps before all weights are trained, and the run has 20; give the stages fewer steps"),
        ("100,0,0,0", "take 100 steps"),
        ("1,2", "gives 2 numbers of steps; 4 are needed, for head, embeddings, layer 1, layer 2"),
        ("soon", "none, even, or updates a stage such as 50"),
        ("-3", "none, even, or updates a stage"),
        ("2.5", "none, even, or updates a stage"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_and_leaves_nothing(
    asked: str, sentence: str, tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        isotrope.train(
            "simcse", sentences, tiny, tmp_path / "run", pooling="cls", max_steps=20, chain_thaw=asked, batch_size=8
        )
    assert not (tmp_path / "run").exists()


def test_other_settings_that_cannot_work_are_refused(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="The run has 4 steps, and chain-thaw 5 stages"):
        thaw_of(simcse(tiny), "even", 4)
    with pytest.raises(InputError, match="chain_head_rate must be above 0"):
        check(ChainThawSettings(chain_head_rate=0))
    method = simcse(tiny)
    method.encoder.backbone.encoder.layer = torch.nn.ModuleList()
    with pytest.raises(InputError, match="a BertModel has no layers"):
        chain(method)
    attending = isotrope.load(tiny, device="cpu", language_head=True)
    attend(attending)
    with pytest.raises(
        InputError, match="nothing that is trained at this step takes part"
    ):  # mlm does not read the attention
        isotrope.train("mlm", sentences, attending, tmp_path / "run", max_steps=20, chain_thaw="0,0,0,0,1", **SHORT)
