"""Processes of one run are alike in what decides the weights, or all are refused in one sentence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from isotrope.errors import InputError
from isotrope.training import partners

FACTS: dict[str, Any] = {
    "method": "simcse",
    "data": {"fingerprint": "abc"},
    "versions": {"torch": "2.13", "numpy": "2.2"},
    "machine": {"python": "3.11.7"},
    "command": "isotrope train",
}


def check(monkeypatch: pytest.MonkeyPatch, **other: Any) -> None:
    """The first process, whose partner has ``other`` facts."""
    met = SimpleNamespace(num_processes=2)
    theirs: list[dict[str, str]] = []

    def keep(everybody: list[dict[str, str]], mine: dict[str, str]) -> None:
        theirs.append(mine)
        everybody[:] = [mine, theirs[0]]

    monkeypatch.setattr(partners.distributed, "all_gather_object", keep)
    partners.check_alike({**FACTS, **other}, met)  # type: ignore[arg-type]
    partners.check_alike(FACTS, met)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"versions": {"torch": "2.12", "numpy": "2.2"}}, "versions"),
        ({"machine": {"python": "3.10.0"}}, "python"),
        ({"data": {"fingerprint": "xyz"}}, "data"),
    ],
)
def test_another_version_or_text_is_refused(monkeypatch: pytest.MonkeyPatch, other: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=f"Process 1 differs from process 0 in its {named} "):
        check(monkeypatch, **other)


def test_another_command_is_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of a process stands in some launchers' commands."""
    check(monkeypatch, command="isotrope train --verbose")
