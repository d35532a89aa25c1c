"""A running server: it answers until a signal, finishes what waits, and ends."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from isotrope.progress import say
from isotrope.serving.asgi_app import make_app
from isotrope.serving.service import Service

BACKLOG = 512
KEEP_ALIVE = 30  # seconds that a connection without a request stays open


class PatientProtocol(H11Protocol):
    """HTTP that closes a connection whose request head does not arrive in time; uvicorn alone waits for ever."""

    seconds = 20.0
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._waiting = self.loop.call_later(self.seconds, self._give_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._busy:
            self._stop_waiting()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(self.seconds, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self._busy and not self.transport.is_closing():
            self.transport.close()


def make_server(service: Service, key: bytes | None, host: str) -> uvicorn.Server:
    limits = service.limits
    protocol = type("PatientProtocol", (PatientProtocol,), {"seconds": limits.header_seconds})
    config = uvicorn.Config(
        make_app(service, key, host),
        http=protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=limits.header_bytes,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=limits.drain_seconds,
        backlog=BACKLOG,
    )
    return uvicorn.Server(config)


def run(service: Service, listening: socket.socket, key: bytes | None, host: str) -> None:
    """Answer until SIGTERM or Ctrl-C; requests that are open then are answered first."""
    listening.listen(BACKLOG)  # whoever reads the line below and connects at once is not refused
    address = listening.getsockname()
    shown = f"[{address[0]}]" if ":" in address[0] else address[0]
    say(f"http://{shown}:{address[1]} serves {', '.join(service.models)}; Ctrl-C ends it.")
    with suppress(KeyboardInterrupt):  # uvicorn raises the signal again once everything is answered
        make_server(service, key, host).run(sockets=[listening])
    say("Stopped.")
