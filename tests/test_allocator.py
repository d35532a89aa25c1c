"""Memory goes back after a stretch of work, whatever ends it; where the system has no such call, nothing happens."""

from __future__ import annotations

import pytest

from isotrope import allocator


def test_memory_goes_back_when_a_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(allocator, "trimmer", lambda: asked.append)
    with allocator.returning_memory():
        assert asked == []
    with pytest.raises(KeyError), allocator.returning_memory():
        raise KeyError
    assert asked == [0, 0]
    monkeypatch.setattr(allocator, "trimmer", lambda: None)
    allocator.return_free_memory()


def test_another_system_has_no_such_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator.sys, "platform", "darwin")
    assert allocator.trimmer.__wrapped__() is None
