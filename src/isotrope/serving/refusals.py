"""What the service answers instead of a result: a status, one sentence, and the shape that the client reads.

OpenAI's clients read ``error.message``, those of text-embeddings-inference ``error`` and ``error_type``.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

OPENAI_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}
TEI_TYPES = {401: "Unauthorized", 413: "Validation", 429: "Overloaded", 500: "Backend", 503: "Unhealthy"}
AGAIN = (429, 503)  # a client may try these again


class Refusal(Exception):
    """A request that gets no result; ``field`` is the part of the body that the sentence is about."""

    def __init__(self, status: int, sentence: str, field: str | None = None, code: str | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.field, self.code = status, sentence, field, code


def refusal_body(path: str, refusal: Refusal) -> dict[str, Any]:
    if path.startswith("/v1/"):
        kind = OPENAI_TYPES.get(refusal.status, "invalid_request_error")
        return {
            "error": {"message": refusal.sentence, "type": kind, "param": refusal.field, "code": refusal.code},
        }
    return {"error": refusal.sentence, "error_type": TEI_TYPES.get(refusal.status, "Validation")}


def refusal_response(path: str, refusal: Refusal) -> JSONResponse:
    headers = {"retry-after": "1"} if refusal.status in AGAIN else {}
    if refusal.status == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse(refusal_body(path, refusal), refusal.status, headers)


async def answer_refusal(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal)
    return refusal_response(request.url.path, error)
