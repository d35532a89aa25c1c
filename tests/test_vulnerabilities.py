"""What `make audit` says of pip-audit's answer: a package that was not looked up has not passed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CLEAN = {"name": "numpy", "version": "1.0", "vulns": []}
KNOWN = {"name": "old", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"], "aliases": []}]}
MISSED = {"name": "gone", "skip_reason": "Dependency not found on PyPI"}


@pytest.fixture(scope="module")
def vulnerabilities(script: Callable[[str], Any]) -> Any:
    return script("docs/vulnerabilities.py")


@pytest.mark.parametrize(
    ("packages", "code", "said"),
    [
        ([CLEAN], 0, "1 packages were looked up; none has a known vulnerability."),
        ([CLEAN, KNOWN], 1, "old 1.0: PYSEC-1, repaired in 1.1"),
        ([CLEAN, MISSED], 2, "1 of 2 packages could not be looked up (gone)."),
        ([KNOWN, MISSED], 1, "old 1.0: PYSEC-1, repaired in 1.1"),
        ([], 2, ""),
    ],
)
def test_its_answer(vulnerabilities: Any, packages: list[Any], code: int, said: str) -> None:
    found, lines = vulnerabilities.judged(json.dumps({"dependencies": packages}), "")
    assert found == code
    assert said in "\n".join(lines)


@pytest.mark.parametrize("out", ["", "no JSON", "[]", "{}"])
def test_without_a_network_one_sentence(vulnerabilities: Any, out: str) -> None:
    code, lines = vulnerabilities.judged(out, "Traceback …\nConnectionError: api.osv.dev\n\n")
    assert code == 2
    assert lines == [
        "pip-audit could not look up anything: ConnectionError: api.osv.dev",
        vulnerabilities.ELSEWHERE,
    ]


def test_a_tool_that_is_not_there(vulnerabilities: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert vulnerabilities.main(str(tmp_path / "pip-audit"), tmp_path / "pins.txt") == 2
    assert "it could not be installed" in capsys.readouterr().out


def test_the_tool_is_called_with_the_pins(
    vulnerabilities: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = tmp_path / "pip-audit"
    answer = json.dumps({"dependencies": [CLEAN]})
    tool.write_text(
        f"#!{sys.executable}\nimport sys\nassert {str(tmp_path / 'pins.txt')!r} in sys.argv\nprint({answer!r})"
    )
    tool.chmod(0o755)
    assert vulnerabilities.main(str(tool), tmp_path / "pins.txt") == 0


def test_licences_come_before_anything_that_needs_a_network() -> None:
    rule = re.search(r"^audit:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert rule is not None
    lines = rule[1].splitlines()
    assert "docs/licences.py constraints.txt" in lines[0]
    assert "docs/vulnerabilities.py" in lines[-1]
