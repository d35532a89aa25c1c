"""``/search``: the index that the service was started with, under the queue of the models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from isotrope.errors import InputError
from isotrope.serving.batch_queue import Task
from isotrope.serving.refusals import Refusal
from isotrope.serving.request_fields import number_in, read_body, texts_in, word_in
from isotrope.serving.service import Service

MODES = ("hybrid", "dense", "lexical")
TOP = 10
MOST = 1000
RERANKED = 100  # texts of a query that are read once more
TEXT_TOKENS = 128  # that such a text counts for in the queue
FILTER = 2000  # characters
WAYS = 256


async def search(request: Request) -> Response:
    """``query`` gives a list of hits, ``queries`` a list of lists; ``where`` filters by the columns that were kept.

    ``rerank`` orders so many of the first hits anew by their tokens. The model reads each of them, so that the query
    takes the place of many in the queue.
    """
    service: Service = request.app.state.service
    body = await read_body(request, service.limits)
    if service.index is None:
        raise Refusal(
            422, "This server has no index; make one with `isotrope index` and start it with `--index PLACE`."
        )
    if "query" in body and "queries" in body:
        raise Refusal(422, "'query' and 'queries' exclude each other; send one of them.", "queries")
    field = "queries" if "queries" in body else "query"
    texts = texts_in(body, field, service.limits)
    top = number_in(body, "top", TOP, 1, MOST) or TOP
    mode = word_in(body, "mode", MODES[0], MODES)
    rerank = number_in(body, "rerank", 0, 0, RERANKED) or 0
    where = body.get("where")
    if where is not None and (not isinstance(where, str) or len(where) > FILTER):
        raise Refusal(422, f"'where' is a filter such as \"year > 2020\", of at most {FILTER:,} characters.", "where")
    measured = await service.measured(service.default, texts, body)
    task = search_task(service, top, mode, where or None, rerank)
    tokens = [count + rerank * TEXT_TOKENS for count in measured.tokens]
    try:
        found = await service.while_listening(request, service.queue.compute(task, texts, tokens))
    except InputError as error:
        raise Refusal(422, str(error), error.setting or ("where" if where else field)) from error
    answers = [[hit.to_dict() for hit in hits] for hits in found]
    single = isinstance(body[field], str)
    return JSONResponse({"hits": answers[0] if single else answers, "mode": mode, "cut_inputs": measured.cut})


def search_task(service: Service, top: int, mode: str, where: str | None, rerank: int) -> Task:
    """One task for each way to search: queries of one way share a batch."""
    index, ways = service.index, service.search_tasks
    assert index is not None
    if len(ways) >= WAYS:
        ways.clear()  # tasks that are waited for stay alive in the queue

    def run(queries: list[Any]) -> Sequence[Any]:
        return index.search(queries, top=top, mode=mode, where=where, rerank=rerank)

    return ways.setdefault((top, mode, where, rerank), Task(f"search {mode}", run))


ROUTES = [Route("/search", search, methods=["POST"])]
