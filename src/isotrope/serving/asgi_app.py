"""The application: routes, and what becomes of everything that is none."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp

from isotrope.serving import openai_routes, page_routes, search_routes, tei_routes
from isotrope.serving.gate import Gate
from isotrope.serving.refusals import Refusal, answer_refusal, refusal_response
from isotrope.serving.service import Gone, Service, answer_nobody

_log = logging.getLogger("isotrope")
ROUTES = [*openai_routes.ROUTES, *tei_routes.ROUTES, *search_routes.ROUTES, *page_routes.ROUTES]


def make_app(service: Service, key: bytes | None = None, host: str = "127.0.0.1") -> ASGIApp:
    """The service as an ASGI application; any server of that protocol can run it."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        service.close()

    app = Starlette(
        routes=ROUTES,
        lifespan=lifespan,
        exception_handlers={
            Refusal: answer_refusal,
            Gone: answer_nobody,
            ClientDisconnect: answer_nobody,
            HTTPException: _answer_unknown,
            Exception: _answer_fault,
        },
    )
    app.router.redirect_slashes = False
    app.state.service = service
    paths = frozenset(route.path for route in ROUTES if "{" not in route.path)
    return Gate(app, service.limits, service.metrics, paths, key, host)


async def _answer_unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path, known = request.url.path, sorted({route.path for route in ROUTES if "{" not in route.path})
    if error.status_code == 405:
        return refusal_response(path, Refusal(405, f"{path} does not take {request.method[:20]}."))
    shown = path if len(path) <= 80 else f"{path[:80]}…"
    return refusal_response(path, Refusal(404, f"No route {shown}; there are: {', '.join(known)}."))


async def _answer_fault(request: Request, error: Exception) -> Response:
    _log.exception("%s failed", request.url.path, exc_info=error)
    return refusal_response(request.url.path, Refusal(500, "The server made a mistake; its log says which."))
