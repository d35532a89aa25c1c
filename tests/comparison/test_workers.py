"""Workers over several devices: each process sees one of them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from isotrope.comparison import workers
from isotrope.comparison.workers import environment_of, run_all, visible_devices
from isotrope.errors import InputError


class Telling:
    """A task that fails with what its process finds in its environment."""

    label, seed = "telling", 1

    @property
    def folder(self) -> Path:
        raise InputError(os.environ.get("CUDA_VISIBLE_DEVICES", "all"))


def test_devices_are_dealt_out_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [environment_of(number, ["4", "6"]) for number in range(3)] == [
        {"CUDA_VISIBLE_DEVICES": name} for name in ("4", "6", "4")
    ]
    assert environment_of(1, ["0"]) == environment_of(1, []) == {}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, GPU-7f")
    assert visible_devices() == ["2", "GPU-7f"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert visible_devices() == []


def test_each_worker_sees_its_own_device_and_the_parent_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "visible_devices", lambda: ["0", "1"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    said = Counter(one.sentence for one in run_all([Telling(), Telling()], parallel=2))  # type: ignore[list-item, union-attr]
    assert said == {"0": 1, "1": 1}
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
