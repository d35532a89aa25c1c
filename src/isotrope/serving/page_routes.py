"""The page at ``/`` and what it asks for: two texts compared, lines on a map. Nothing is fetched from elsewhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from isotrope.serving.carrying_words import WordsLeftOut, carried
from isotrope.serving.refusals import Refusal
from isotrope.serving.request_fields import read_body, text_in, texts_in
from isotrope.serving.service import Service
from isotrope.serving.text_map import text_map

FOLDER = Path(__file__).parent / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
MAPS_WAITING = 4


async def file(request: Request) -> Response:
    name, kind = FILES[request.url.path]
    headers = {"content-security-policy": POLICY, "referrer-policy": "no-referrer", "cache-control": "no-cache"}
    return Response((FOLDER / name).read_text(encoding="utf-8"), media_type=kind, headers=headers)


async def compare(request: Request) -> Response:
    """The cosine of ``first`` and ``second``, and how much of it hangs on each word."""
    service: Service = request.app.state.service
    body = await read_body(request, service.limits)
    model = service.model_of(body)
    first, second = (WordsLeftOut.of(text_in(body, field, service.limits)) for field in ("first", "second"))
    both = await service.measured(model, [first.text, second.text], body)
    variants = [*first.variants, *second.variants]
    measured = await model.measure([first.text, second.text, *variants])
    vectors = await service.vectors(request, model, measured)
    return JSONResponse({**carried(first, second, vectors), "cut_inputs": both.cut})


async def plane(request: Request) -> Response:
    """Places, groups and duplicates of ``lines``. One map is laid out at a time, apart from the queue."""
    service: Service = request.app.state.service
    body = await read_body(request, service.limits)
    model = service.model_of(body)
    lines = texts_in(body, "lines", service.limits)
    if not 2 <= len(lines) <= service.limits.map_lines:
        raise Refusal(
            413 if len(lines) > 2 else 422,
            f"A map has 2 to {service.limits.map_lines:,} lines; {len(lines):,} were given.",
            "lines",
        )
    measured = await service.measured(model, lines, body)
    vectors = await service.vectors(request, model, measured)
    found = await service.while_listening(request, _laid_out(service, lines, vectors))
    return JSONResponse({**found, "cut_inputs": measured.cut})


async def _laid_out(service: Service, lines: list[str], vectors: Any) -> dict[str, Any]:
    if service.layouts_waiting >= MAPS_WAITING:
        raise Refusal(429, f"{MAPS_WAITING} maps are waiting already; ask again in a moment.")
    service.layouts_waiting += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(service.layouts, text_map, lines, vectors)
    finally:
        service.layouts_waiting -= 1


ROUTES = [
    *(Route(path, file) for path in FILES),
    Route("/compare", compare, methods=["POST"]),
    Route("/map", plane, methods=["POST"]),
]
