"""``/v1/embeddings`` and ``/v1/models`` in OpenAI's shape, so that its clients work by their base URL alone."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from isotrope.serving.refusals import Refusal
from isotrope.serving.request_fields import flag_in, number_in, read_body, texts_in, word_in
from isotrope.serving.served_model import ServedModel
from isotrope.serving.service import CUT_HEADER, Service
from isotrope.serving.vector_output import written

FORMATS = ("float", "base64")
WIDEST = 1_000_000


async def embeddings(request: Request) -> Response:
    """Vectors of unit length. ``usage.cut_inputs`` counts the texts that the model did not read to their end."""
    service: Service = request.app.state.service
    body = await read_body(request, service.limits)
    model = service.model_of(body)
    encoding = word_in(body, "encoding_format", "float", FORMATS)
    dimensions = number_in(body, "dimensions", None, 1, WIDEST)
    model.check_dimensions(dimensions)
    prompt = prompt_in(body)
    model.prompt(prompt)
    texts = texts_in(body, "input", service.limits)
    measured = await service.measured(model, texts, body, prompt)
    normalize = flag_in(body, "normalize", True)
    vectors = await service.vectors(request, model, measured, dimensions, normalize, prompt)
    rows = [
        f'{{"object":"embedding","index":{number},"embedding":{vector}}}'
        for number, vector in enumerate(await written(vectors, encoding))
    ]
    usage = {"prompt_tokens": measured.total, "total_tokens": measured.total, "cut_inputs": measured.cut}
    content = (
        f'{{"object":"list","data":[{",".join(rows)}],"model":{json.dumps(model.name)},"usage":{json.dumps(usage)}}}'
    )
    return Response(content, media_type="application/json", headers={CUT_HEADER: str(measured.cut)})


def prompt_in(body: dict[str, Any]) -> str | None:
    found = body.get("prompt_name")
    if found is not None and not isinstance(found, str):
        raise Refusal(422, "'prompt_name' is the name of a prompt.", "prompt_name")
    return found


async def models(request: Request) -> Response:
    service: Service = request.app.state.service
    return JSONResponse({"object": "list", "data": [described(model) for model in service.models.values()]})


async def one_model(request: Request) -> Response:
    service: Service = request.app.state.service
    return JSONResponse(described(service.model_of({"model": request.path_params["name"]})))


def described(model: ServedModel) -> dict[str, Any]:
    encoder = model.encoder
    return {
        "id": model.name,
        "object": "model",
        "created": 0,
        "owned_by": "isotrope",
        "dimensions": encoder.dimension,
        "max_model_len": encoder.max_length,  # as vLLM names it, and mteb reads it
    }


ROUTES = [
    Route("/v1/embeddings", embeddings, methods=["POST"]),
    Route("/embeddings", embeddings, methods=["POST"]),
    Route("/v1/models", models),
    Route("/v1/models/{name:path}", one_model),
]
