"""Processes that share the texts: a failure ends the work at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from isotrope.encoders import process_pool
from isotrope.encoders.encoder import Encoder


@pytest.mark.parametrize("accident", [ValueError("the first"), KeyboardInterrupt()], ids=["error", "ctrl-c"])
def test_a_failure_cancels_what_has_not_begun(
    accident: BaseException, fresh: Callable[[], Encoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    def work(start: int, *rest: Any) -> Any:
        begun.append(start)
        if start:
            time.sleep(0.02)
        raise accident

    monkeypatch.setattr(process_pool, "_pool", lambda *given: ThreadPoolExecutor(1))
    monkeypatch.setattr(process_pool, "_work", work)
    with pytest.raises(type(accident)):
        fresh().encode([f"text {number}" for number in range(40)], processes=10)
    assert len(begun) < 20
