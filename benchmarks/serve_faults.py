"""Clients that are killed, dawdle or send nonsense, and good requests next to them, which must not notice.

    python benchmarks/serve_faults.py [--quick]

Each row is a fault: how many such requests were sent, which statuses came back (closed: no answer was waited for), how
the good requests that ran meanwhile fared, and the memory of the server afterwards. Ends with 1 where a status was 500
or a good request failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from http_clients import Connection, Program, Timed, bodies_of, free_port, program

GOOD = bodies_of(["a good request", "another one"], 2)
BAD = [
    *(b"", b"{", b"null", b"[]", b"\xff", b"[" * 5000),
    *(b'{"inputs":[]}', b'{"inputs":[1,2]}', b'{"inputs":""}', b'{"inputs":{"a":1}}', b'{"inputs":"\\ud800"}'),
    *(b'{"inputs":"a","model":"../../etc/passwd"}', b'{"inputs":"a","dimensions":-1}'),
]
Scene = Callable[[Program, int], Awaitable[Counter[str]]]


async def answered(server: Program, bodies: list[bytes], clients: int = 8) -> Counter[str]:
    seen: Counter[str] = Counter()
    waiting = iter(bodies)

    async def client() -> None:
        connection = Connection(server.port)
        for content in waiting:
            status, _ = await connection.post("/embed", content)
            seen[str(status)] += 1
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return seen


async def killed(server: Program, count: int) -> Counter[str]:
    """Clients that close at every stage of their request."""
    content = json.dumps({"inputs": ["a text of a client that leaves"] * 200}).encode()
    whole = f"POST /embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content
    for number in range(count):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(whole[: (0, 9, 80, len(whole) // 2, len(whole))[number % 5]])
        await writer.drain()
        if number % 5 == 4:
            await asyncio.sleep(0.01)
        writer.transport.abort()
    return Counter(closed=count)


async def slow(server: Program, count: int) -> Counter[str]:
    """Bodies of which a byte comes every half second."""

    async def client() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(8):
            writer.write(b" ")
            await asyncio.sleep(0.5)
        writer.transport.abort()

    await asyncio.gather(*(client() for _ in range(count)))
    return Counter(closed=count)


async def malformed(server: Program, count: int) -> Counter[str]:
    return await answered(server, [b'{"inputs": "a' * (1 + number % 50) for number in range(count)])


async def long_texts(server: Program, count: int) -> Counter[str]:
    return await answered(server, [json.dumps({"inputs": "word " * 400_000}).encode()] * count, 4)


async def many_tokens(server: Program, count: int) -> Counter[str]:
    """Texts as long as the limit allows: they are cut, and read."""
    return await answered(server, [json.dumps({"inputs": "word " * 39_000}).encode()] * count, 4)


async def bad(server: Program, count: int) -> Counter[str]:
    return await answered(server, [BAD[number % len(BAD)] for number in range(count)])


SCENES: dict[str, tuple[Scene, int]] = {
    "killed clients": (killed, 500),
    "slow bodies": (slow, 200),
    "malformed JSON": (malformed, 1000),
    "2 MB texts": (long_texts, 100),
    "200 KB texts": (many_tokens, 40),
    "bad requests": (bad, 5000),
}


async def beside(server: Program, work: Awaitable[Counter[str]]) -> tuple[Counter[str], Timed]:
    """A scene, with good requests one after another until it ends."""
    timed, running = Timed(), asyncio.ensure_future(work)
    connection = Connection(server.port)
    while not running.done() or not timed.seconds:
        start = time.perf_counter()
        status, _ = await connection.post("/embed", GOOD[len(timed.seconds) % 2])
        timed.add(status, time.perf_counter() - start)
    connection.close()
    return await running, timed


async def play(server: Program, share: float) -> int:
    await answered(server, GOOD * 50)
    _, quiet = await beside(server, asyncio.sleep(3, Counter()))
    print(f"{'fault':<16} {'sent':>6}  {'answers':<34} {'good':>5} {'failed':>6} {'p50 ms':>7} {'p99 ms':>7} {'MB':>6}")
    show("none", Counter(), quiet, server)
    wrong = 0
    for name, (scene, count) in SCENES.items():
        seen, good = await beside(server, scene(server, max(int(count * share), 5)))
        show(name, seen, good, server)
        wrong += seen["500"] + sum(count for status, count in good.statuses.items() if status != 200)
    return wrong


def show(name: str, seen: Counter[str], good: Timed, server: Program) -> None:
    answers = ", ".join(f"{count} × {status}" for status, count in sorted(seen.items()))
    failed = sum(count for status, count in good.statuses.items() if status != 200)
    print(
        f"{name:<16} {seen.total():>6}  {answers:<34} {len(good.seconds):>5} {failed:>6}"
        f" {1000 * good.quantile(0.5):>7.1f} {1000 * good.quantile(0.99):>7.1f} {server.megabytes:>6.0f}",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="a tenth of the requests")
    options.add_argument("--model", default="builtin")
    chosen = options.parse_args()
    port = free_port()
    with program(["-m", "isotrope", "serve", chosen.model, "--port", str(port)], port, 1) as server:
        wrong = asyncio.run(play(server, 0.1 if chosen.quick else 1.0))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
