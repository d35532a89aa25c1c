"""The routes of text-embeddings-inference: ``/embed``, ``/similarity``, ``/tokenize``, ``/predict``, ``/info`` …"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from isotrope.serving.openai_routes import WIDEST, prompt_in
from isotrope.serving.refusals import Refusal
from isotrope.serving.request_fields import Body, check_texts, flag_in, number_in, read_body, text_in, texts_in
from isotrope.serving.served_model import ServedModel
from isotrope.serving.service import CUT_HEADER, Service
from isotrope.serving.service_limits import Limits
from isotrope.serving.vector_output import written
from isotrope.version import __version__


async def embed(request: Request) -> Response:
    """A bare list of vectors; how many texts were cut is in the header x-cut-inputs."""
    service: Service = request.app.state.service
    body = await read_body(request, service.limits)
    model, prompt = service.model_of(body), prompt_in(body)
    model.prompt(prompt)
    dimensions = number_in(body, "dimensions", None, 1, WIDEST)
    model.check_dimensions(dimensions)
    normalize = flag_in(body, "normalize", True)
    texts = texts_in(body, "inputs", service.limits)
    measured = await service.measured(model, texts, body, prompt)
    vectors = await service.vectors(request, model, measured, dimensions, normalize, prompt)
    content = f"[{','.join(await written(vectors))}]"
    return Response(content, media_type="application/json", headers={CUT_HEADER: str(measured.cut)})


async def similarity(request: Request) -> Response:
    """Cosines of one sentence with others."""
    service: Service = request.app.state.service
    body = await read_body(request, service.limits)
    model, inputs = service.model_of(body), body.get("inputs")
    if not isinstance(inputs, dict):
        raise Refusal(422, "'inputs' is an object with 'source_sentence' and 'sentences'.", "inputs")
    texts = [text_in(inputs, "source_sentence", service.limits), *texts_in(inputs, "sentences", service.limits)]
    options = body.get("parameters")
    measured = await service.measured(model, texts, options if isinstance(options, dict) else body)
    vectors = await service.vectors(request, model, measured)
    scores = [round(float(score), 6) for score in vectors[1:] @ vectors[0]]
    return JSONResponse(scores, headers={CUT_HEADER: str(measured.cut)})


async def tokenize(request: Request) -> Response:
    service: Service = request.app.state.service
    body = await read_body(request, service.limits)
    model, special = service.model_of(body), flag_in(body, "add_special_tokens", True)
    return JSONResponse(await model.tokenize(texts_in(body, "inputs", service.limits), special))


async def predict(request: Request) -> Response:
    """Labels and probabilities, the likeliest first: one list for a text, a list of lists for several."""
    service: Service = request.app.state.service
    body = await read_body(request, service.limits)
    model = service.model_of(body)
    head = model.classifier
    rows = _rows(body, head.inputs, service.limits)
    measured = await service.measured(model, [row if isinstance(row, str) else " ".join(row) for row in rows], body)
    found = await service.computed(request, model.predict, rows, measured.tokens)
    labels = ["score"] if head.task == "score" else [str(label) for label in head.classes_]
    answers = [_ranked(labels, row) for row in found]
    single = isinstance(body["inputs"], str) or (head.inputs == 2 and isinstance(body["inputs"][0], str))
    return JSONResponse(answers[0] if single else answers, headers={CUT_HEADER: str(measured.cut)})


def _rows(body: Body, width: int, limits: Limits) -> list[Any]:
    """Texts, or pairs of them where the model reads pairs; a text may stand in a list of its own."""
    given = body.get("inputs")
    nested = isinstance(given, list) and bool(given) and all(isinstance(row, list) for row in given)
    if width == 1 and not nested:
        return texts_in(body, "inputs", limits)
    rows: list[Any] = given if nested and isinstance(given, list) else [given]
    if len(rows) > limits.inputs:
        raise Refusal(413, f"'inputs' has {len(rows):,} rows; at most {limits.inputs:,} are taken at once.", "inputs")
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != width:
            raise Refusal(422, f"'inputs' holds lists of {width} texts; item {number} is none.", "inputs")
        check_texts(row, "inputs", limits)
    return [row[0] if width == 1 else tuple(row) for row in rows]


def _ranked(labels: list[str], row: Any) -> list[dict[str, Any]]:
    scores = [row] if len(labels) == 1 and not hasattr(row, "__len__") else row
    pairs = [{"score": round(float(score), 6), "label": label} for score, label in zip(scores, labels, strict=True)]
    return sorted(pairs, key=lambda pair: -pair["score"])


async def info(request: Request) -> Response:
    service: Service = request.app.state.service
    limits, facts = service.limits, [_facts(model) for model in service.models.values()]
    shared = {
        "max_concurrent_requests": limits.waiting_requests,
        "max_batch_tokens": limits.batch_tokens,
        "max_client_batch_size": limits.inputs,
        "auto_truncate": True,
        "version": __version__,
        "router": "isotrope",
        "max_map_lines": limits.map_lines,
        "models": facts,
        "index": None if service.index is None else _index_facts(service.index.info()),
    }
    return JSONResponse({**facts[0], **shared})


def _facts(model: ServedModel) -> dict[str, Any]:
    encoder = model.encoder
    kept = getattr(encoder, "classifier", None)
    pooling = "+".join(str(mode) for mode in encoder.pooling.modes)
    return {
        "model_id": model.name,
        "model_sha": model.fingerprint,
        "model_dtype": "float32",
        "model_type": {"embedding": {"pooling": pooling}},
        "max_input_length": encoder.max_length,
        "dimension": encoder.dimension,
        "predicts": None if kept is None else [str(label) for label in kept.classes_],
    }


def _index_facts(found: dict[str, Any]) -> dict[str, Any]:
    """Without the paths of this machine."""
    return {
        name: found[name]
        for name in ("engine", "rows", "cut", "passages", "columns", "modes", "rerank")
        if name in found
    }


async def health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def metrics(request: Request) -> Response:
    service: Service = request.app.state.service
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


ROUTES = [
    Route("/embed", embed, methods=["POST"]),
    Route("/similarity", similarity, methods=["POST"]),
    Route("/tokenize", tokenize, methods=["POST"]),
    Route("/predict", predict, methods=["POST"]),
    Route("/info", info),
    Route("/health", health),
    Route("/metrics", metrics),
]
