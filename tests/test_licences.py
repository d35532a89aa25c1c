"""The command that lists the licences of the pinned packages reads their metadata, and fails where one is unclear."""

from __future__ import annotations

from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def licences(script: Callable[[str], Any]) -> Any:
    return script("docs/licences.py")


class Package:
    def __init__(self, **fields: str | list[str]) -> None:
        self.metadata = Message()
        for name, values in fields.items():
            for value in [values] if isinstance(values, str) else values:
                self.metadata[name.replace("_", "-")] = value


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"License_Expression": "MIT"}, "MIT"),
        ({"License_Expression": "(MPL-2.0 AND MIT) OR Apache-2.0"}, "Apache-2.0, MIT, MPL-2.0"),
        ({"Classifier": ["License :: OSI Approved", "License :: OSI Approved :: BSD License"]}, "BSD"),
        ({"License": "Apache 2.0 License"}, "Apache-2.0"),
        ({"License_Expression": "GPL-3.0-only"}, "? GPL-3.0-only"),
        ({"License_Expression": "BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1"}, "BSD"),
        ({"License": "UNKNOWN"}, "? none named"),
        ({}, "? none named"),
    ],
)
def test_what_a_package_says(licences: Any, fields: dict[str, Any], expected: str) -> None:
    assert licences.verdict(licences.licence_names(Package(**fields))) == expected


def test_the_pinned_set_is_read_and_may_be_shipped(licences: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pins = licences.pinned(ROOT / "constraints.txt")
    assert {"torch", "transformers", "numpy"} <= pins.keys()
    assert licences.main(ROOT / "constraints.txt") == 0
    assert "Apache-2.0" in capsys.readouterr().out


def test_a_package_of_another_licence_fails(licences: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pins.txt").write_text("# a comment\nsome==1.0\nsome==0.9 ; python_version < '3.11'\n")
    monkeypatch.setattr(licences, "distribution", lambda name: Package(License_Expression="AGPL-3.0-only"))
    assert licences.main(tmp_path / "pins.txt") == 1
