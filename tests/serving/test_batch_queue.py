"""Laws of the queue: every text gets its own result, a batch keeps its budget, and nobody waits for a stranger."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra serve is not installed")

from isotrope.serving.batch_queue import BatchQueue, Task
from isotrope.serving.refusals import Refusal
from isotrope.serving.service_limits import Limits


class Bench:
    """A task that upper-cases, notes its batches, and waits at a gate before each."""

    def __init__(self, **limits: Any) -> None:
        self.batches: list[list[str]] = []
        self.gate = threading.Semaphore(0)
        self.started = threading.Semaphore(0)
        self.task = Task("upper", self._run)
        self.queue = BatchQueue(Limits(**limits))

    def _run(self, texts: list[str]) -> list[str]:
        self.batches.append(list(texts))
        self.started.release()
        self.gate.acquire()
        if any("bad" in text for text in texts):
            raise ValueError("a bad text")
        return [text.upper() for text in texts]

    def pass_all(self) -> None:
        self.gate.release(10_000)

    async def ask(self, *texts: str) -> list[str]:
        return await self.queue.compute(self.task, list(texts), [len(text) for text in texts])

    async def begun(self) -> None:
        await asyncio.to_thread(self.started.acquire)


def run(work: Callable[[Bench], Any], **limits: Any) -> Any:
    bench = Bench(**limits)

    async def scene() -> Any:
        try:
            return await asyncio.wait_for(work(bench), 30)
        finally:
            bench.pass_all()
            await asyncio.to_thread(bench.queue.close)

    return asyncio.run(scene()), bench


def test_results_keep_their_order_and_batches_their_budget() -> None:
    async def scene(bench: Bench) -> list[list[str]]:
        bench.pass_all()
        return await asyncio.gather(*(bench.ask(*(f"{n}-{row}" for row in range(7))) for n in range(9)))

    found, bench = run(scene, batch_tokens=24)
    assert found == [[f"{n}-{row}".upper() for row in range(7)] for n in range(9)]
    assert max(sum(map(len, batch)) for batch in bench.batches) <= 24
    assert sum(len(batch) for batch in bench.batches) == 63


def test_what_arrives_during_a_batch_is_joined_into_the_next() -> None:
    async def scene(bench: Bench) -> None:
        asked = [asyncio.ensure_future(bench.ask("first"))]
        await bench.begun()
        asked += [asyncio.ensure_future(bench.ask(text)) for text in ("a", "b", "c")]
        await asyncio.sleep(0)
        bench.pass_all()
        await asyncio.gather(*asked)

    _, bench = run(scene)
    assert bench.batches == [["first"], ["a", "b", "c"]]


def test_a_request_of_many_texts_does_not_stand_in_the_way_of_a_small_one() -> None:
    async def scene(bench: Bench) -> None:
        large = asyncio.ensure_future(bench.ask(*["xxxx"] * 100))
        await bench.begun()
        small = asyncio.ensure_future(bench.ask("y"))
        await asyncio.sleep(0)
        bench.gate.release(2)  # the batch that runs, and the next one
        assert await small == ["Y"]
        assert not large.done()
        bench.pass_all()
        assert len(await large) == 100

    _, bench = run(scene, batch_tokens=40)
    assert "y" in bench.batches[1]


def test_a_text_longer_than_the_budget_is_computed_alone() -> None:
    async def scene(bench: Bench) -> list[str]:
        bench.pass_all()
        return await bench.ask("x" * 50, "y", "z" * 50)

    found, bench = run(scene, batch_tokens=10)
    assert found == ["X" * 50, "Y", "Z" * 50]
    assert len(bench.batches) >= 2


def test_a_client_that_goes_away_costs_nothing_more() -> None:
    async def scene(bench: Bench) -> None:
        left = asyncio.ensure_future(bench.ask(*["gone"] * 100))
        await bench.begun()
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        bench.pass_all()
        assert await bench.ask("here") == ["HERE"]

    _, bench = run(scene, batch_tokens=8)
    assert sum(batch.count("gone") for batch in bench.batches) == 2  # those that ran when it left


def test_a_request_that_fails_fails_alone() -> None:
    async def scene(bench: Bench) -> list[Any]:
        first = asyncio.ensure_future(bench.ask("first"))
        await bench.begun()
        asked = [asyncio.ensure_future(bench.ask(*texts)) for texts in (["a"], ["bad", "b"], ["c"])]
        await asyncio.sleep(0)
        bench.pass_all()
        await first
        return await asyncio.gather(*asked, return_exceptions=True)

    (a, bad, c), _ = run(scene)
    assert (a, c) == (["A"], ["C"])
    assert isinstance(bad, ValueError)


def test_a_full_queue_refuses_and_an_empty_one_takes_any_request() -> None:
    async def scene(bench: Bench) -> None:
        whole = asyncio.ensure_future(bench.ask(*["many"] * 20))  # more than may wait, but nobody waits
        await bench.begun()
        with pytest.raises(Refusal, match="wait already") as refused:
            await bench.ask("one more")
        assert refused.value.status == 429
        bench.pass_all()
        assert len(await whole) == 20

    run(scene, waiting_texts=10, batch_tokens=8)


def test_the_number_of_requests_is_bounded() -> None:
    async def scene(bench: Bench) -> None:
        asked = [asyncio.ensure_future(bench.ask("a"))]
        await bench.begun()
        asked += [asyncio.ensure_future(bench.ask(text)) for text in ("b", "c")]
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="3 requests with 2 texts wait already"):
            await bench.ask("d")
        bench.pass_all()
        assert await asyncio.gather(*asked) == [["A"], ["B"], ["C"]]

    run(scene, waiting_requests=3)


def test_closing_answers_what_waits_and_refuses_what_comes_after() -> None:
    async def scene(bench: Bench) -> None:
        asked = [asyncio.ensure_future(bench.ask(text)) for text in ("a", "b")]
        await bench.begun()
        closing = asyncio.ensure_future(asyncio.to_thread(bench.queue.close))
        while not bench.queue._closed:
            await asyncio.sleep(0.001)
        with pytest.raises(Refusal, match="shutting down") as refused:
            await bench.ask("late")
        assert refused.value.status == 503
        bench.pass_all()
        await closing
        assert await asyncio.gather(*asked) == [["A"], ["B"]]

    run(scene)


def test_tasks_take_turns_and_never_share_a_batch() -> None:
    async def scene(bench: Bench) -> list[list[Any]]:
        bench.pass_all()
        lower = Task("lower", lambda texts: [text.lower() for text in texts])
        both = [bench.ask("A", "B"), bench.queue.compute(lower, ["A", "B"], [1, 1])] * 1
        return await asyncio.gather(*both)

    found, bench = run(scene, batch_tokens=1)
    assert found == [["A", "B"], ["a", "b"]]
    assert bench.batches == [["A"], ["B"]]


def test_memory_goes_back_after_so_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """At every so manieth batch and no other; where the system has no such call, nothing happens."""
    from isotrope import allocator
    from isotrope.serving import batch_queue

    asked: list[int] = []
    monkeypatch.setattr(allocator, "trimmer", lambda: asked.append)
    for batches in range(1, 2 * batch_queue.EVERY + 1):
        batch_queue.return_memory(batches)
    assert asked == [0, 0]
    monkeypatch.setattr(allocator, "trimmer", lambda: None)
    batch_queue.return_memory(batch_queue.EVERY)
