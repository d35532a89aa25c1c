"""A sample of the probes: no traceback, no hang, nothing left over, nothing silent.

ISOTROPE_PROBES says how many are tried, 60 by default; ``run_probes.py`` tries all and prints the table of
docs/notes/probes.md.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from probe_runner import BAD, GOOD, Probe, run_probe
from probe_table import all_probes
from probe_world import make_world
from run_probes import table_of

ALL = all_probes()
SAMPLE = ALL[:: max(len(ALL) // int(os.environ.get("ISOTROPE_PROBES", "60")), 1)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    before = dict(os.environ)
    folder = make_world(tmp_path_factory.mktemp("probes") / "world")
    yield folder
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize("probe", SAMPLE, ids=str)
def test_a_probe(probe: Probe, world: Path, tmp_path: Path) -> None:
    outcome = run_probe(probe, world, tmp_path / "here")
    assert outcome.verdict in GOOD, outcome.told


def test_there_are_a_thousand() -> None:
    assert len(ALL) >= 1000
    assert len({(probe.group, probe.name, probe.words) for probe in ALL}) == len(ALL)


@pytest.mark.parametrize(
    ("words", "expects", "says", "verdict"),
    [
        (("methods", "nobody"), "refused", "Unknown method", "refused"),
        (("methods", "nobody"), "answered", "", "unclear"),
        (("methods", "nobody"), "refused", "other words", "unclear"),
        (("methods", "simcse"), "refused", "", "silent"),
        (("methods", "simcse"), "answered", "temperature", "answered"),
        (("methods", "simcse"), "answered", "other words", "silent"),
    ],
)
def test_verdicts(words: tuple[str, ...], expects: str, says: str, verdict: str, tmp_path: Path) -> None:
    outcome = run_probe(Probe("g", "n", words, None, expects, says), tmp_path, tmp_path / "here")
    assert outcome.verdict == verdict
    assert f"| g | 1 | {' | '.join(str(int(name == verdict)) for name in (*GOOD, *BAD))} |" in table_of([outcome])


def test_a_traceback_a_left_over_and_a_hang_are_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import probe_runner

    def broken(words: list[str]) -> None:
        if words[0] == "raise":
            raise KeyError("x")
        if words[0] == "write":
            Path("left").write_text("a", encoding="utf-8")
            raise SystemExit(2)
        while True:
            pass

    monkeypatch.setattr(probe_runner, "main", broken)
    monkeypatch.setattr(probe_runner, "SECONDS", 0.2)
    for number, (word, verdict) in enumerate({"raise": "traceback", "write": "left-over", "loop": "hang"}.items()):
        assert run_probe(Probe("g", word, (word,)), tmp_path, tmp_path / str(number)).verdict == verdict
