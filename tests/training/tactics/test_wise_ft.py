"""Interpolation with the start: its formula, the choice among shares, what training sees, what is refused."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.training.history_lines import measures_at
from isotrope.training.run import Run
from isotrope.training.state import Judgement
from isotrope.training.updates import Updater

pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
SHORT: dict[str, Any] = {"batch_size": 8, "max_steps": 4, "eval_steps": 2, "learning_rate": 1e-3, "max_length": 32}
Train = Callable[..., Run]


@pytest.fixture
def train(tiny: Path, samples: dict[str, Path], tmp_path: Path) -> Train:
    def run(output: str, method: str = "simcse", record_type: str = "sentences", **settings: Any) -> Run:
        return isotrope.train(method, samples[record_type], tiny, tmp_path / output, **{**SHORT, **settings})

    return run


@pytest.fixture
def best_at(monkeypatch: pytest.MonkeyPatch, tiny: Path) -> Callable[[float, Run], None]:
    """best_at(0.7, plain): from here on the judge prefers the encoder that has gone 0.7 of the way of that run."""
    start = weights(isotrope.load(tiny, device="cpu"))

    def prefer(share: float, plain: Run) -> None:
        way = weights(plain.encoder) - start

        def judge(encoder: Encoder) -> Judgement:
            gone = float((weights(encoder) - start) @ way / way.norm() ** 2)
            return Judgement({"gone": gone, "score": -abs(gone - share)}, "score")

        monkeypatch.setattr("isotrope.evaluation.checkpoint_judge.make_judge", lambda *_: judge)

    return prefer


def weights(encoder: Encoder) -> Tensor:
    """Those of the backbone in one row; without a pooler, which no run trains."""
    named = encoder.backbone.named_parameters()
    return torch.cat([one.detach().cpu().double().flatten() for name, one in named if "pooler" not in name])


def last_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores that rise, whatever is judged."""
    seen = iter(range(1000))
    monkeypatch.setattr(
        "isotrope.evaluation.checkpoint_judge.make_judge",
        lambda *_: lambda encoder: Judgement({"score": float(next(seen))}, "score"),
    )


def test_share_one_is_the_run_as_it_was(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    last_only(monkeypatch)
    plain, one = train("plain"), train("one", kept_share=1)
    assert torch.equal(weights(plain.encoder), weights(one.encoder))
    losses = [[line["loss"] for line in run.history if "loss" in line] for run in (plain, one)]
    assert losses[0] == losses[1]
    assert not any("kept_share" in line for line in one.history)


def test_one_share_is_the_formula(train: Train, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last_only(monkeypatch)
    plain, back = train("plain"), train("back", kept_share=0.8)
    start = isotrope.load(tiny, device="cpu").state_dict()
    trained, found = plain.encoder.state_dict(), back.encoder.state_dict()
    assert trained.keys() == found.keys()
    moved = 0
    for name, tensor in found.items():
        end = trained[name].cpu()
        mixed = 0.8 * end.double() + (1 - 0.8) * start[name].double()
        wanted = mixed.to(end.dtype) if end.is_floating_point() else end
        assert torch.equal(tensor.cpu(), wanted), name
        moved += int(not torch.equal(end, start[name]))
    assert moved > 10
    losses = [[line["loss"] for line in run.history if "loss" in line] for run in (plain, back)]
    assert losses[0] == losses[1]  # training does not see it
    saved = isotrope.load(back.folder, device="cpu").state_dict()
    assert all(torch.equal(tensor, found[name].cpu()) for name, tensor in saved.items())


@pytest.mark.parametrize(("wanted", "kept"), [(0.55, 0.6), (0.25, 0.3), (1.0, 1.0)])
def test_of_several_shares_the_one_that_is_judged_best_is_kept(
    train: Train, best_at: Callable[[float, Run], None], wanted: float, kept: float
) -> None:
    plain = train("plain", keep_start=False, eval_steps=4)
    best_at(wanted, plain)
    run = train("chosen", keep_start=False, eval_steps=4, kept_share="0.3, 1, 0.6")
    (line,) = (line for line in run.history if "kept_share" in line)
    assert line["kept_share"] == kept
    assert line["shares"].keys() == {"0.3", "0.6", "1"}
    assert all(one["gone"] == pytest.approx(float(share), abs=1e-4) for share, one in line["shares"].items())
    assert measures_at(run.history, run.selected_step) == line["kept"] == line["shares"][f"{kept:g}"]
    facts = json.loads((run.folder / "run.json").read_text())
    assert (facts["kept_share"], facts["shares"]) == (kept, line["shares"])
    assert f"{kept:g} of its change" in run.selected_by
    if kept == 1:
        assert torch.equal(weights(run.encoder), weights(plain.encoder))


def test_a_judgement_that_is_no_number_chooses_no_share(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([0.0, 1.0, float("nan"), 0.5])  # start, step 4, share 1, share 0.5
    monkeypatch.setattr(
        "isotrope.evaluation.checkpoint_judge.make_judge",
        lambda *_: lambda encoder: Judgement({"score": next(scores)}, "score"),
    )
    run = train("nan", eval_steps=4, kept_share="0.5,1")
    assert run.history[-1]["kept_share"] == 0.5


def test_a_start_that_is_kept_stays_as_it_is(
    samples: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing to go back from."""
    scores = iter([1.0, 0.0, 0.0])  # start, step 2, step 4; a fourth judgement would be an error
    monkeypatch.setattr(
        "isotrope.evaluation.checkpoint_judge.make_judge",
        lambda *_: lambda encoder: Judgement({"score": next(scores)}, "score"),
    )
    given = isotrope.load("builtin-static", device="cpu")
    run = isotrope.train("simcse", samples["sentences"], given, tmp_path / "kept", **SHORT, kept_share="0.5,1")
    assert run.selected_step == 0
    assert not any("kept_share" in line for line in run.history)
    assert torch.equal(weights(run.encoder), weights(given))


def test_a_resumed_run_ends_with_the_same_weights(
    train: Train, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    common: dict[str, Any] = {"kept_share": "0.4,0.7", "keep_start": False}
    whole = train("whole", **common)
    plain = Updater.update

    def update(updater: Updater, step: int, source: Any) -> Any:
        if step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return plain(updater, step, source)

    monkeypatch.setattr(Updater, "update", update)
    with pytest.raises(KeyboardInterrupt):
        train("cut", **common)
    monkeypatch.setattr(Updater, "update", plain)
    stopped = isotrope.load(tmp_path / "cut", device="cpu")
    resumed = train("cut", resume=True, **common)
    assert torch.equal(weights(whole.encoder), weights(resumed.encoder))
    assert not torch.equal(weights(stopped), weights(resumed.encoder))
    assert [line for line in whole.history if "shares" in line] == [
        line for line in resumed.history if "shares" in line
    ]


def test_a_finished_run_takes_another_share_without_training(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = train("run", keep_start=False)
    wanted = train("other", keep_start=False, kept_share=0.5)
    monkeypatch.setattr(Updater, "update", None)
    for share in (0.3, 0.5):
        again = train("run", keep_start=False, kept_share=share, resume=True)
        assert [line["kept_share"] for line in again.history if "kept_share" in line] == [share]
    assert torch.equal(weights(again.encoder), weights(wanted.encoder))
    back = train("run", keep_start=False, resume=True)
    assert torch.equal(weights(back.encoder), weights(plain.encoder))
    assert "kept_share" not in json.loads((back.folder / "run.json").read_text())


def test_the_average_of_weights_is_what_goes_back(train: Train, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last_only(monkeypatch)
    averaged, back = train("averaged", average_decay=0.5), train("back", average_decay=0.5, kept_share=0.5)
    start = weights(isotrope.load(tiny, device="cpu"))
    assert torch.allclose(weights(back.encoder), (weights(averaged.encoder) + start) / 2, atol=1e-7)


def test_last_weights_take_one_share(train: Train) -> None:
    run = train("last", "mlm", kept_share=0.5)
    assert run.history[-1]["kept_share"] == 0.5
    assert run.selected_by == "the last, 0.5 of its change"


@pytest.mark.parametrize("share", ["0", "1.01", "-0.5", "nan", "half", "", "0.5,", "0.5,2"])
def test_a_share_outside_its_range_is_refused(train: Train, tmp_path: Path, share: str) -> None:
    with pytest.raises(isotrope.InputError, match="kept_share is a number above 0 and at most 1"):
        train("refused", kept_share=share)
    assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize(
    ("method", "record_type", "settings", "sentence"),
    [
        ("word2vec", "sentences", {"kept_share": 0.5}, "initialises its encoder from the data"),
        ("simcse", "sentences", {"kept_share": 0.5, "head": "kept"}, "keeps a head that the start lacks"),
        ("sbert", "triples", {"kept_share": 0.5, "towers": "separate"}, "keeps a second encoder"),
        ("fine-tune", "labelled", {"kept_share": 0.5}, "keeps a classifier"),
        ("deepmoji", "labelled", {"kept_share": 0.5}, "keeps a classifier"),
        ("supcon", "labelled", {"kept_share": 0.5, "cross_entropy_weight": 0.5}, "keeps a classifier"),
        ("mlm", "sentences", {"kept_share": "0.5,1"}, "keeps its last weights.*give kept_share one"),
    ],
)
def test_what_cannot_work_is_refused(
    samples: dict[str, Path], tiny: Path, tmp_path: Path, method: str, record_type: str, settings: Any, sentence: str
) -> None:
    model = "builtin-base" if method == "word2vec" else tiny
    with pytest.raises(isotrope.InputError, match=sentence):
        isotrope.train(method, samples[record_type], model, tmp_path / "refused", **{**SHORT, **settings})
    assert not (tmp_path / "refused").exists()
