"""Suites side by side: who may encode when, what an error or an interrupt leaves, and that scores stay the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.suite_lanes import encoding, side_by_side
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.evaluation.vector_cache import shared_vectors
from isotrope.progress import bar


@pytest.fixture
def two_cores() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_suites_encode_in_their_order_and_one_scores_while_the_next_encodes(two_cores: None) -> None:
    events: list[str] = []
    second_reads, second_encodes = threading.Event(), threading.Event()

    def suite(number: int) -> Callable[[], int]:
        def run() -> int:
            if number == 1:
                second_reads.set()
            with encoding():
                events.append(f"encode {number}")
                if number == 0:
                    assert second_reads.wait(60), "the second must read while the first encodes"
                if number == 1:
                    second_encodes.set()
            if number == 0:
                assert second_encodes.wait(60), "the second must encode before the first has ended"
            events.append(f"score {number}")
            return number

        return run

    assert side_by_side([suite(number) for number in range(4)]) == [0, 1, 2, 3]
    assert [event for event in events if event.startswith("encode")] == [f"encode {number}" for number in range(4)]


def test_no_two_suites_are_at_the_desk(two_cores: None) -> None:
    """Reading and scoring use state that is one for all: torch's seed, filters of warnings."""
    inside, most = [0], [0]

    def at_desk() -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        threading.Event().wait(0.01)
        inside[0] -= 1

    def suite() -> None:
        at_desk()
        with encoding():
            pass
        at_desk()

    side_by_side([suite] * 4)
    assert most[0] == 1


def test_an_error_of_one_stops_the_others(two_cores: None) -> None:
    failed = threading.Event()

    def refuses() -> None:
        failed.set()
        raise InputError("no such text")

    def long() -> None:
        with encoding(), bar("encoding", 10**9, show=False) as advance:
            assert failed.wait(60)
            while True:
                advance()

    with pytest.raises(InputError, match="no such text"):
        side_by_side([long, refuses])


def test_an_interrupt_stops_all_and_is_raised(two_cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []
    plain = threading.Thread.join

    def join(self: threading.Thread, timeout: float | None = None) -> None:
        if threading.current_thread() is not threading.main_thread():
            return plain(self, timeout)
        monkeypatch.setattr(threading.Thread, "join", plain)
        raise KeyboardInterrupt

    def long() -> None:
        try:
            with encoding(), bar("encoding", 10**9, show=False) as advance:
                while True:
                    advance()
        finally:
            ended.append(True)

    monkeypatch.setattr(threading.Thread, "join", join)
    with pytest.raises(KeyboardInterrupt):
        side_by_side([long, long])
    assert ended


def test_a_text_of_two_suites_is_encoded_once(two_cores: None, tiny: Path, topics: list[str]) -> None:
    encoder = isotrope.load(tiny)
    counts = {}

    def suite(name: str, texts: list[str]) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            with shared_vectors(disk=False) as cache:
                vectors = TextVectors.encoded(encoder, texts).of(texts)
                counts[name] = cache.encoded, cache.found
            return vectors

        return run

    with shared_vectors(disk=False):
        first, second = side_by_side([suite("first", topics[:40]), suite("second", topics[20:60])])
    assert counts == {"first": (40, 0), "second": (20, 20)}
    assert np.array_equal(first[20:], second[:20])


def test_scores_are_those_of_one_suite_after_another(
    two_cores: None, tiny: Path, judged_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = isotrope.evaluate(tiny, "sts,geometry,layers,clustering", judged_data)
    monkeypatch.setattr("isotrope.evaluation.suite_runs.pays", lambda *_: False)
    alone = isotrope.evaluate(tiny, "sts,geometry,layers,clustering", judged_data)
    assert list(together.scores) == list(alone.scores) == ["sts", "geometry", "layers", "clustering"]
    _alike(together.scores, alone.scores)
    assert 0 < together.cost["seconds"] < 1000
    encoded = [sum(cost["texts encoded"] for cost in each.cost["suites"].values()) for each in (together, alone)]
    assert encoded[0] == together.cost["texts encoded"]


@pytest.fixture
def judged_data(tmp_path: Path, topics: list[str], monkeypatch: pytest.MonkeyPatch) -> Path:
    from isotrope.evaluation.sts import TASKS

    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "sts").mkdir()
    (tmp_path / "clustering").mkdir()
    for number, name in enumerate((*TASKS.values(), "stsb.dev")):
        texts = topics[40 * number : 40 * number + 40]
        rows = [f"a\t{text}\t{texts[(row * 7) % 40]}\t{row % 6}" for row, text in enumerate(texts)]
        _write(tmp_path / "sts" / f"{name}.tsv", ["subset\tsentence1\tsentence2\tscore", *rows])
    _write(
        tmp_path / "clustering" / "some.tsv",
        ["label\ttext", *(f"{row % 3}\t{text}" for row, text in enumerate(topics[:90]))],
    )
    return tmp_path


def _write(file: Path, lines: list[str]) -> None:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _alike(found: object, wanted: object) -> None:
    if isinstance(wanted, dict):
        assert isinstance(found, dict)
        assert list(found) == list(wanted)
        for key in wanted:
            _alike(found[key], wanted[key])
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, abs=1e-3, rel=1e-4)
    elif isinstance(wanted, list):
        assert isinstance(found, list)
        for one, other in zip(found, wanted, strict=True):
            _alike(one, other)
    else:
        assert found == wanted


def test_numpy_has_its_threads_back_afterwards() -> None:
    from threadpoolctl import threadpool_info

    def threads() -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    before = threads()
    inside = side_by_side([threads, threads])
    assert all(set(one) <= {1} for one in inside)
    assert threads() == before
