"""What stands before every route: whose request it is, how many there are, and how long it took.

On a loopback address the Host must be one too, and a page of another origin is refused: otherwise a site that somebody
has open could ask this server through their browser.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from isotrope.progress import say
from isotrope.serving.access_key import shows_key
from isotrope.serving.refusals import Refusal, refusal_response
from isotrope.serving.service_limits import Limits
from isotrope.serving.service_metrics import ServiceMetrics

OPEN = ("/", "/page.css", "/page.js", "/health")  # without a key: nothing of the models or the index is in them
FREE = (*OPEN, "/metrics", "/info", "/v1/models")  # not counted among those that wait


class Gate:
    """The application inside is asked only by requests that pass."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: ServiceMetrics,
        routes: frozenset[str],
        key: bytes | None,
        host: str,
    ) -> None:
        self.app, self.limits, self.metrics, self.routes, self.key = app, limits, metrics, routes, key
        self.loopback = is_loopback(host)
        self.inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, path = time.perf_counter(), scope["path"]
        status = 499  # as others count a client that left

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
            await send(message)

        counted = path not in FREE
        self.inside += counted
        try:
            await self._pass(scope, receive, noted, counted)
        finally:
            self.inside -= counted
            self.metrics.answered(path if path in self.routes else "other", status, time.perf_counter() - start)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, counted: bool) -> None:
        try:
            self._check(scope, counted)
        except Refusal as refusal:
            await refusal_response(scope["path"], refusal)(scope, receive, send)
            return
        try:
            await self.app(scope, receive, send)
        except asyncio.CancelledError:  # the time to drain is over
            late = Refusal(503, "The server shut down before this was computed; ask again in a moment.")
            await refusal_response(scope["path"], late)(scope, receive, send)

    def _check(self, scope: Scope, counted: bool) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if self.loopback and not is_loopback(_name(host)):
            raise Refusal(403, f"This server answers on this machine alone; it has no name {host[:80]!r}.")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and origin.partition("://")[2] != host:
            raise Refusal(403, "A page of another site may not ask this server.")
        if self.key is not None and scope["path"] not in OPEN and not shows_key(_authorization(headers), self.key):
            raise Refusal(401, "The key is missing or wrong; send the header 'Authorization: Bearer KEY'.")
        if counted and self.inside > self.limits.waiting_requests:
            raise Refusal(429, f"{self.limits.waiting_requests:,} requests are open already; ask again in a moment.")


def _authorization(headers: Mapping[Any, Any]) -> bytes:
    found = headers.get(b"authorization", b"")
    return found if isinstance(found, bytes) else b""


def _name(host: str) -> str:
    """Without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def warn_open(host: str, key: bytes | None) -> None:
    """A server that others reach, without a key, is meant or a mistake: say it."""
    if not is_loopback(host) and key is None:
        say(
            f"warning: {host} is reached by other machines, and no api_key_file was given: whoever finds it can use it."
        )
