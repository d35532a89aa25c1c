"""A learned temperature and the log's diagnostics: what is learned, where it stops, what is written down."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch

import isotrope
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.methods.frame.temperature import HIGHEST, LOWEST, Temperature, temperature_of
from isotrope.methods.simcse import SimCSE, SimCSESettings
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import build_optimiser

SHORT: dict[str, Any] = {
    "batch_size": 16,
    "eval_steps": 6,
    "logging_steps": 2,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 32,
}
LEARN = {"learn_temperature": True, "temperature": 0.2}
unjudged = pytest.mark.filterwarnings("ignore:Training did not improve")


def test_it_starts_where_it_is_set_and_a_step_is_a_share_of_it() -> None:
    temperature = Temperature(0.05)
    assert float(temperature().detach()) == pytest.approx(0.05, rel=1e-6)
    optimiser = torch.optim.SGD(temperature.parameters(), lr=0.1)
    temperature().log().backward()  # its gradient by the log-scale is −1
    optimiser.step()
    assert float(temperature().detach()) == pytest.approx(0.05 * math.exp(-0.1), rel=1e-5)


@pytest.mark.parametrize(("push", "bound"), [(1.0, LOWEST), (-1.0, HIGHEST)])
def test_it_stays_between_the_bounds_and_can_leave_them_again(push: float, bound: float) -> None:
    temperature = Temperature(0.05)
    optimiser = torch.optim.SGD(temperature.parameters(), lr=3.0)
    for _ in range(4):
        optimiser.zero_grad()
        (push * temperature().log()).backward()
        optimiser.step()
        assert LOWEST * 0.9999 <= float(temperature().detach()) <= HIGHEST * 1.0001
    assert float(temperature().detach()) == pytest.approx(bound, rel=1e-5)
    optimiser.zero_grad()
    (-push * temperature().log()).backward()
    optimiser.step()
    assert float(temperature().detach()) != pytest.approx(bound, rel=0.5)


def test_used_twice_in_one_loss_the_gradient_is_still_whole() -> None:
    temperature = Temperature(0.5)
    (temperature() + temperature()).backward()
    assert float(temperature.log_scale.grad) == pytest.approx(-1.0)  # type: ignore[arg-type]


def test_without_the_setting_nothing_is_learned(built: Callable[..., Any]) -> None:
    method = built("simcse")
    assert "temperature" not in method.tower
    assert temperature_of(method) == 0.05
    assert method.measures({}) == {}


def test_it_has_a_rate_of_its_own_and_no_decay(built: Callable[..., Any]) -> None:
    method = built("simcse", **LEARN)
    (group,) = [
        group
        for group in build_optimiser(Combined(method), LoopSettings(weight_decay=0.3)).param_groups
        if any(parameter is method.tower["temperature"].module.log_scale for parameter in group["params"])
    ]
    assert group["lr"] > LoopSettings().learning_rate
    assert group["weight_decay"] == 0


@unjudged
@pytest.mark.parametrize(("name", "fixture"), [("simcse", "sentences"), ("simcse-supervised", "triples")])
def test_it_is_learned_logged_and_left_out_of_the_model(
    tiny: Path, tmp_path: Path, name: str, fixture: str, request: pytest.FixtureRequest
) -> None:
    data = request.getfixturevalue(fixture)
    run = isotrope.train(name, data, model=tiny, output=tmp_path / "run", max_steps=6, **SHORT, **LEARN)
    logged = [line["temperature"] for line in run.history if "loss" in line]
    assert len(logged) == 3
    assert len(set(logged)) == 3
    assert not any("log_scale" in key for key in run.encoder.state_dict())
    fixed = isotrope.train(name, data, model=tiny, output=tmp_path / "fixed", max_steps=2, **SHORT)
    assert not any("temperature" in line for line in fixed.history)


@unjudged
def test_resume_equals_an_uninterrupted_run(
    tiny: Path, sentences: Path, tmp_path: Path, interrupted: Callable[[int], AbstractContextManager[None]]
) -> None:
    common = {**SHORT, **LEARN, "model": tiny, "max_steps": 6, "eval_steps": 3}
    whole = isotrope.train("simcse", sentences, output=tmp_path / "whole", **common)
    with interrupted(4), pytest.raises(KeyboardInterrupt):
        isotrope.train("simcse", sentences, output=tmp_path / "cut", **common)
    resumed = isotrope.train("simcse", sentences, output=tmp_path / "cut", resume=True, **common)
    assert [line["temperature"] for line in whole.history if "loss" in line] == [
        line["temperature"] for line in resumed.history if "loss" in line
    ]
    weights = zip(whole.encoder.state_dict().values(), resumed.encoder.state_dict().values(), strict=True)
    assert all(torch.equal(first, second) for first, second in weights)


@unjudged
@pytest.mark.parametrize(
    ("name", "fixture", "candidates"), [("simcse", "sentences", 16), ("simcse-supervised", "triples", 32)]
)
def test_the_information_bound_is_logged(
    tiny: Path, tmp_path: Path, name: str, fixture: str, candidates: int, request: pytest.FixtureRequest
) -> None:
    run = isotrope.train(
        name,
        request.getfixturevalue(fixture),
        model=tiny,
        output=tmp_path / "run",
        max_steps=4,
        mlm_weight=0.1,
        **SHORT,
    )
    lines = [line for line in run.history if "loss" in line]
    assert lines
    for line in lines:
        assert line["information"] == pytest.approx(math.log(candidates) - line["contrastive"], abs=1e-5)
        assert line["information"] < math.log(candidates)


@unjudged
def test_without_candidates_there_is_no_information(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    run = isotrope.train("mlm", sentences, model=tiny, output=tmp_path / "run", max_steps=2, **SHORT)
    assert not any("information" in line for line in run.history)


@unjudged
def test_a_queue_that_is_empty_at_first_has_no_information_yet(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = iter([0, 4, 16, 16])
    monkeypatch.setattr(SimCSE, "candidates", lambda self, representations: next(counts))
    settings = {**SHORT, "logging_steps": 2}
    run = isotrope.train("simcse", sentences, model=tiny, output=tmp_path / "run", max_steps=4, **settings)
    assert all("information" in line for line in run.history if "loss" in line)


@pytest.mark.parametrize("bad", [0.001, 2.0, 0.0, -1.0])
def test_a_start_outside_the_bounds_is_refused(bad: float) -> None:
    with pytest.raises(InputError, match="temperature"):
        check(SimCSESettings(temperature=bad, learn_temperature=True))
