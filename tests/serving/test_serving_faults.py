"""Clients that leave, dawdle or send nonsense: no 500, and the good request next to them is answered as ever.

``benchmarks/serve_faults.py`` is the long form, with memory and thousands of requests.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from isotrope.serving.service import Service

GOOD = ["the chef bakes bread", "the sailor steers the boat"]


def connect(server: Any) -> socket.socket:
    return socket.create_connection((server.host, server.port), timeout=30)


def head(length: int, path: str = "/embed") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode()


def test_nonsense_of_many_kinds_harms_nobody(server: Any) -> None:
    before = server.vectors(GOOD)
    seen: set[int] = set()
    bodies = [b"", b"{", b"null", b'{"inputs":{}}', b'{"inputs":[[]]}', b'{"inputs":[{}]}', b'"', b"\x00", b"[]",
              json.dumps({"inputs": "x" * 1_500_000}).encode(), b'{"inputs":"a","model":"../x"}']  # fmt: skip

    def nonsense(place: int) -> None:
        for number in range(30):
            seen.add(server.ask("/embed", bodies[(place + number) % len(bodies)]).status)

    threads = [threading.Thread(target=nonsense, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    during = [server.vectors(GOOD) for _ in range(5)]
    for thread in threads:
        thread.join()
    assert seen <= {404, 413, 422}
    assert all(np.allclose(found, before, atol=1e-5) for found in during)


def test_clients_that_leave_at_every_stage(server: Any) -> None:
    body = json.dumps({"inputs": GOOD * 20}).encode()
    for sent in (b"", b"POST /emb", head(len(body)), head(len(body)) + body[:10], head(len(body)) + body):
        for _ in range(5):
            left = connect(server)
            left.sendall(sent)
            left.close()
    assert server.vectors(GOOD).shape == (2, 32)
    assert "500" not in {
        line.split('status="')[1][:3] for line in server.ask("/metrics").body.splitlines() if 'status="' in line
    }


def test_work_of_a_client_that_left_is_dropped(
    make_service: Callable[..., Service], running_service: Callable[..., Any]
) -> None:
    service = make_service(batch_tokens=8)
    computed: list[str] = []
    entered, gate = threading.Event(), threading.Event()
    encode = service.default._tasks[""].run

    def slow(texts: list[str]) -> Any:
        computed.extend(texts)
        entered.set()
        gate.wait(30)
        return encode(texts)

    object.__setattr__(service.default._tasks[""], "run", slow)
    with running_service(service) as found:
        body = json.dumps({"inputs": ["salt"] * 50}).encode()
        left = connect(found)
        left.sendall(head(len(body)) + body)
        assert entered.wait(30)
        left.close()
        while "isotrope_gone_clients_total 1.0" not in found.ask("/metrics").body:
            pass
        gate.set()
        assert found.vectors(["boat"]).shape == (1, 32)
    assert computed.count("salt") < 10


def test_a_body_or_a_head_that_dawdles_is_given_up(
    make_service: Callable[..., Service], running_service: Callable[..., Any]
) -> None:
    with running_service(make_service(body_seconds=0.2, header_seconds=0.2)) as found:
        slow = connect(found)
        slow.sendall(head(100) + b"{")
        assert b" 408 " in slow.recv(65536)
        silent = connect(found)
        silent.sendall(b"POST /embed HTTP/1.1\r\nHost:")
        assert silent.recv(100) == b""
        assert found.vectors(GOOD).shape == (2, 32)


def test_a_head_that_is_too_long_is_refused(server: Any) -> None:
    long = connect(server)
    long.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 70_000)
    assert long.recv(65536).startswith(b"HTTP/1.1 400")
    assert server.ask("/health").status == 200


def test_text_of_every_script_is_taken(server: Any) -> None:
    texts = ["\x00 zero", "a\u0301", "שלום", "🏳️‍🌈", "\u202eabc", "ﬁ", "\ufeffbom", "x" * 5000, "\U0010ffff"]
    assert np.isfinite(server.vectors(texts)).all()
    assert server.ask("/map", {"lines": texts}).status == 200
    assert server.ask("/compare", {"first": texts[2], "second": texts[3]}).status == 200
