"""Adapting a finished encoder: its own defaults, the advised method, and a start that is kept where it is the best."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.read_out import is_finished, with_read_out
from isotrope.errors import InputError
from isotrope.evaluation import checkpoint_judge
from isotrope.methods.frame.combined import Combined
from isotrope.training.adapting import LOOP, adapting_defaults, advised_method, is_static, known_finished
from isotrope.training.advice import advise
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.plan import make_plan
from isotrope.training.state import Judgement, TrainingWarning

SHORT: dict[str, Any] = {
    "batch_size": 16,
    "eval_steps": 4,
    "logging_steps": 2,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 32,
}
ASKED = "the chef bakes bread"


def judged_by(monkeypatch: pytest.MonkeyPatch, *scores: float) -> list[np.ndarray]:
    """Evaluations give these scores; the list is filled with the vector of one text at each of them."""
    given, seen = iter(scores), []

    def judge(encoder: Encoder) -> Judgement:
        seen.append(encoder.encode(ASKED))
        return Judgement({"score": next(given)}, "score")

    monkeypatch.setattr(checkpoint_judge, "make_judge", lambda *_: judge)
    return seen


@pytest.fixture
def finished(tiny: Path, tmp_path: Path) -> Path:
    """A folder that says it was trained by a method."""
    encoder = isotrope.load(tiny, device="cpu")
    encoder.facts = {"method": "simcse"}
    encoder.save(tmp_path / "finished")
    return tmp_path / "finished"


def test_what_is_finished_is_known_without_loading_it(tiny: Path, finished: Path) -> None:
    assert [known_finished(name) for name in ("builtin", "builtin-static", "builtin-base")] == [True, True, False]
    assert known_finished(finished)
    assert not known_finished(tiny)
    assert known_finished(isotrope.load(finished, device="cpu"))
    assert not known_finished("somebody/unknown")


@pytest.mark.parametrize("case", ["trained", "untrained", "by another program", "pooling named", "masked language"])
def test_a_folder_its_encoder_and_a_copy_of_it_are_finished_alike(
    case: str, tiny: Path, finished: Path, tmp_path: Path
) -> None:
    foreign, masked = (shutil.copytree(finished, tmp_path / name) for name in ("foreign", "masked"))
    (foreign / "isotrope.json").unlink()
    (masked / "isotrope.json").write_text('{"method": "mlm", "raw": true}', encoding="utf-8")
    place, pooling, wanted = {
        "trained": (finished, None, True),
        "untrained": (tiny, None, False),
        "by another program": (foreign, None, True),
        "pooling named": ("builtin-base", "mean", False),
        "masked language": (masked, "cls", False),
    }[case]
    opened = isotrope.load(place, pooling, device="cpu")
    opened.save(tmp_path / "copy")
    found = [known_finished(place), known_finished(opened), known_finished(tmp_path / "copy")]
    assert [*found, is_finished(opened.facts)] == [wanted] * 4


def test_a_raw_start_keeps_the_published_defaults_and_a_finished_one_is_adapted(finished: Path) -> None:
    raw = make_plan("simcse-supervised", [("a", "b")])
    assert (raw.loop, raw.settings.temperature) == (LoopSettings(), 0.05)  # type: ignore[attr-defined]
    adapted = make_plan("simcse-supervised", [("a", "b")], finished)
    assert {name: getattr(adapted.loop, name) for name in LOOP} == LOOP
    assert adapted.settings.temperature < 0.05  # type: ignore[attr-defined]
    assert make_plan("simcse-supervised", [("a", "b")], finished, temperature=0.1).settings.temperature == 0.1  # type: ignore[attr-defined]
    assert make_plan("simcse-supervised", [("a", "b")], finished, adapts=False).loop == LoopSettings()


def test_a_table_of_token_vectors_takes_larger_steps() -> None:
    method = make_plan("simcse-supervised", [("a", "b")]).method
    static, layered = (adapting_defaults(method, name, set()) for name in ("builtin-static", "builtin"))
    assert static["learning_rate"] > 10 * layered["learning_rate"]
    assert is_static(isotrope.load("builtin-static", device="cpu"))
    assert not is_static("builtin")


@pytest.mark.parametrize("length", ["max_steps", "epochs", "max_seconds"])
def test_whoever_says_how_long_a_run_is_has_no_time_limit(length: str) -> None:
    method = make_plan("simcse", ["a"]).method
    assert "time_limit" in adapting_defaults(method, "builtin", {"temperature"})
    assert "time_limit" not in adapting_defaults(method, "builtin", {length})


@pytest.mark.parametrize("method", ["mlm", "word2vec"])
def test_methods_that_are_not_chosen_by_a_score_adapt_nothing(method: str) -> None:
    assert adapting_defaults(make_plan(method, ["a"]).method, "builtin", set()) == {}


def test_the_advised_method_follows_from_the_data(tmp_path: Path, tiny: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("query\tpassage\na\tb\n", encoding="utf-8")
    (tmp_path / "scored.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t1\n", encoding="utf-8")
    (tmp_path / "text.txt").write_text("a\n", encoding="utf-8")
    found = [advise(tmp_path / name, None, "builtin-base") for name in ("pairs.tsv", "scored.tsv", "text.txt")]
    assert found == [("simcse-supervised", "builtin"), ("cosent", "builtin"), ("simcse", "builtin")]
    assert advise([("a", "b")], None, "builtin-static") == ("simcse-supervised", "builtin-static")
    assert advised_method(["sentences", "triples"]) == "simcse-supervised"
    with pytest.raises(InputError, match="no finished sentence encoder; name the method"):
        advise(tmp_path / "text.txt", None, tiny)
    kept, said = with_read_out(
        isotrope.load(tiny), None, "cls", "simcse"
    )  # random weights: no other sentence calls it finished
    assert kept.pooling.name == said.pooling == "mean"
    assert "finished" not in said.reason


def test_records_that_can_be_read_once_are_adapted_to(finished: Path, topics: list[str], tmp_path: Path) -> None:
    """The method is chosen by a first look at the data, which left a generator empty."""
    isotrope.train(data=iter(topics), model=finished, output=tmp_path / "run", max_steps=2, **SHORT)
    assert json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["data"]["records"] == len(topics)


def test_evaluations_are_dense_at_first() -> None:
    settings = LoopSettings(eval_steps=40, first_eval=10)
    assert [step for step in range(1, 130) if settings.evaluates_at(step)] == [10, 20, 40, 80, 120]
    odd = LoopSettings(eval_steps=50, first_eval=3)
    assert [step for step in range(1, 101) if odd.evaluates_at(step)] == [3, 6, 12, 24, 48, 50, 100]
    assert [step for step in range(1, 201) if LoopSettings().evaluates_at(step)] == [100, 200]


def test_the_start_is_kept_where_nothing_is_better(
    finished: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = judged_by(monkeypatch, 3.0, 2.0, 3.0)
    with pytest.warns(TrainingWarning, match="did not improve score.*the start is kept"):
        run = isotrope.train("simcse", sentences, model=finished, output=tmp_path / "run", max_steps=8, **SHORT)
    assert run.selected_step == 0
    assert "the start" in run.selected_by
    assert not np.allclose(seen[1], seen[0], atol=1e-4)
    for encoder in (run.encoder, isotrope.load(run.folder)):
        assert np.allclose(encoder.encode(ASKED), seen[0], atol=1e-6)


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_a_raw_start_is_kept_only_where_own_data_say_so(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a score without labels a raw language model is no candidate."""
    scored = tmp_path / "dev.tsv"
    scored.write_text("sentence1\tsentence2\tscore\na b\tc d\t1\nc d\ta b\t2\na c\tb d\t3\n", encoding="utf-8")
    judged_by(monkeypatch, 3.0, 1.0, 2.0)
    run = isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "raw", max_steps=8, **SHORT)
    assert run.selected_step == 8
    judged_by(monkeypatch, 3.0, 1.0, 2.0)
    run = isotrope.train(
        "simcse", sentences, model=tiny, output=tmp_path / "judged", max_steps=8, eval_data=scored, **SHORT
    )
    assert run.selected_step == 0


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_a_run_can_be_told_to_keep_no_start(
    finished: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged_by(monkeypatch, 3.0, 1.0, 2.0)
    run = isotrope.train(
        "simcse", sentences, model=finished, output=tmp_path / "run", max_steps=8, keep_start=False, **SHORT
    )
    assert run.selected_step == 8


def stop_after(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    plain, taken = Combined.after_update, iter(range(1, 1000))

    def interrupt(self: Combined, representations: Any) -> None:
        plain(self, representations)
        if next(taken) == step:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Combined, "after_update", interrupt)


@pytest.mark.parametrize(("stop", "said"), [(3, "step 3"), (6, "step 4")])
def test_a_stopped_run_leaves_a_model(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int, said: str
) -> None:
    """The best one where there was an evaluation, else the last weights."""
    seen = judged_by(monkeypatch, 0.0, 1.0, 2.0, 3.0)
    with monkeypatch.context() as patch:
        stop_after(patch, stop)
        with pytest.raises(KeyboardInterrupt, match=rf"stopped at step {stop}; the model so far \({said}\)"):
            isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=8, **SHORT)
    kept = isotrope.load(tmp_path / "run").encode(ASKED)
    assert np.allclose(kept, seen[-1], atol=1e-5) == (stop == 6)
    assert not np.allclose(kept, seen[0], atol=1e-4)


def test_a_resumed_run_may_be_longer_or_shorter(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged_by(monkeypatch, *map(float, range(20)))
    common = {**SHORT, "model": tiny, "output": tmp_path / "run"}
    isotrope.train("simcse", sentences, max_steps=4, **common)
    longer = isotrope.train("simcse", sentences, max_steps=8, resume=True, **common)
    assert longer.selected_step == 8
    rates = {line["step"]: line["learning_rate"] for line in longer.history if "learning_rate" in line}
    assert rates[4] == 0 < rates[6]  # the rate of the new length
    shorter = isotrope.train("simcse", sentences, max_steps=6, resume=True, **common)
    assert shorter.selected_step == 8
    with pytest.raises(InputError, match="cannot resume, the settings differ: batch_size was 16"):
        isotrope.train("simcse", sentences, max_steps=8, resume=True, **{**common, "batch_size": 8})
