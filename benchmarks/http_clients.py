"""Servers in their own processes and clients that keep their connection, for serve_load.py and serve_faults.py."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import psutil


@dataclass
class Program:
    """A server that runs: its port and its process."""

    port: int
    process: psutil.Process

    @property
    def megabytes(self) -> float:
        return float(self.process.memory_info().rss) / 1e6


@dataclass
class Timed:
    """What clients saw."""

    statuses: dict[int, int] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    wall: float = 0.0

    def add(self, status: int, seconds: float) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.seconds.append(seconds)

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.seconds, share)) if self.seconds else float("nan")


@contextmanager
def program(words: Sequence[str], port: int, threads: int) -> Iterator[Program]:
    """Start a server, wait until it answers, and end it afterwards."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    process = subprocess.Popen([sys.executable, *words], env=environment, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 300
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{words} did not start")
            time.sleep(0.2)
        yield Program(port, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(60)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as opened:
        return int(opened.getsockname()[1])


class Connection:
    """HTTP over one connection that is opened again where the server closed it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, content: bytes) -> tuple[int, bytes]:
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        reader, writer = self.streams
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n".encode()
            + content
        )
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        body = await reader.readexactly(length)
        if "connection: close" in head:
            self.close()
        return int(head.split()[1]), body

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


async def load(port: int, path: str, bodies: Sequence[bytes], clients: int) -> Timed:
    """All bodies, each sent once, by so many clients at a time."""
    timed, waiting = Timed(), iter(bodies)

    async def client() -> None:
        connection = Connection(port)
        for content in waiting:
            start = time.perf_counter()
            status, _ = await connection.post(path, content)
            timed.add(status, time.perf_counter() - start)
        connection.close()

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    timed.wall = time.perf_counter() - start
    return timed


def bodies_of(texts: Sequence[str], count: int) -> list[bytes]:
    return [json.dumps({"inputs": texts[number % len(texts)]}).encode() for number in range(count)]
