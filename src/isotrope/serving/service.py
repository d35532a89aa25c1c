"""What the routes share: the models by name, the queue, the limits, the counts, the index."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from starlette.requests import Request
from starlette.responses import Response

from isotrope.errors import InputError
from isotrope.serving.batch_queue import BatchQueue, Task
from isotrope.serving.refusals import Refusal
from isotrope.serving.request_fields import Body, flag_in
from isotrope.serving.served_model import Measured, ServedModel
from isotrope.serving.service_limits import Limits
from isotrope.serving.service_metrics import ServiceMetrics
from isotrope.serving.vector_output import checked

T = TypeVar("T")
CUT_HEADER = "x-cut-inputs"


class Index(Protocol):
    """What the service asks of an opened search index (search/)."""

    def search(
        self, queries: Any, top: int = 10, mode: str = "hybrid", where: str | None = None, rerank: int = 0
    ) -> list[list[Any]]: ...

    def info(self) -> dict[str, Any]: ...


class Service:
    """Everything that answers, apart from HTTP."""

    def __init__(self, models: Sequence[ServedModel], limits: Limits, index: Index | None = None) -> None:
        self.models = {model.name: model for model in models}
        self.default = models[0]
        self.limits, self.index = limits, index
        self.metrics = ServiceMetrics()
        self.queue = BatchQueue(limits, self.metrics)
        self.metrics.watch_queue(lambda: self.queue.size)
        self.layouts = ThreadPoolExecutor(1, "isotrope-maps")
        self.layouts_waiting = 0
        self.search_tasks: dict[tuple[int, str, str | None, int], Task] = {}

    def model_of(self, body: Body) -> ServedModel:
        """The model that a request names, by the name it is served under; no path is ever looked at."""
        name = body.get("model")
        if name is None:
            return self.default
        if not isinstance(name, str) or name not in self.models:
            shown = repr(name[:80]) if isinstance(name, str) else "that name"  # half a character cannot be sent back
            raise Refusal(
                404,
                f"No model {shown} is served here; it is one of: {', '.join(self.models)}.",
                "model",
                "model_not_found",
            )
        return self.models[name]

    async def measured(self, model: ServedModel, texts: list[str], body: Body, prompt: str | None = None) -> Measured:
        """Tokens of texts; a text that would be cut is refused where ``truncate`` is false."""
        found = await model.measure(texts, prompt)
        if found.cut and not flag_in(body, "truncate", True):
            most = model.encoder.max_length
            raise Refusal(
                413, f"{found.cut:,} of {len(texts):,} texts have more than {most:,} tokens, and 'truncate' is false."
            )
        self.metrics.tokens.inc(found.total)
        self.metrics.cut.inc(found.cut)
        return found

    async def vectors(
        self,
        request: Request,
        model: ServedModel,
        measured: Measured,
        dimensions: int | None = None,
        normalize: bool = True,
        prompt: str | None = None,
    ) -> npt.NDArray[np.float32]:
        """Checked vectors [texts, dimensions]; nothing more is computed once the client has gone."""
        width = model.check_dimensions(dimensions)
        task = model.embed(prompt)
        found = await self.computed(request, task, measured.texts, measured.tokens)
        return checked(found, width, normalize)

    async def computed(self, request: Request, task: Task, texts: list[Any], tokens: Sequence[int]) -> list[Any]:
        try:
            return await self.while_listening(request, self.queue.compute(task, texts, tokens))
        except InputError as error:
            raise Refusal(503, f"The model cannot answer: {error}") from error

    async def while_listening(self, request: Request, answer: Awaitable[T]) -> T:
        """The answer, unless the client leaves first: then its work is cancelled."""
        working = asyncio.ensure_future(answer)
        leaving = asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                self.metrics.gone.inc()
                raise Gone
            return working.result()
        finally:
            working.cancel()
            leaving.cancel()

    def close(self) -> None:
        """Finish what waits, then end the threads."""
        self.queue.close()
        self.layouts.shutdown(wait=False, cancel_futures=True)
        for model in self.models.values():
            model.close()


class Gone(Exception):
    """The client left: there is nobody to answer."""


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def answer_nobody(request: Request, error: Exception) -> Response:
    return Response(status_code=499)
