"""The body of a request: read within its limits, parsed, and each field checked with a sentence of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request

from isotrope.serving.refusals import Refusal
from isotrope.serving.service_limits import Limits

TOKEN_IDS = (
    "holds token ids, which belong to another model's vocabulary; send the texts themselves. LangChain sends texts "
    "with OpenAIEmbeddings(check_embedding_ctx_length=False)."
)
Body = Mapping[str, Any]


async def read_body(request: Request, limits: Limits) -> dict[str, Any]:
    """The JSON object of a request, or a refusal: 408 too slow, 413 too long, 422 not JSON."""
    try:
        content = await asyncio.wait_for(_read(request, limits.body_bytes), limits.body_seconds)
    except asyncio.TimeoutError:
        raise Refusal(408, f"The body did not arrive within {limits.body_seconds:g} seconds.") from None
    return parse_body(content)


async def _read(request: Request, most: int) -> bytes:
    """A body that is too long is read to its end and dropped: a client that still sends would not see the answer."""
    parts, length = [], 0
    async for part in request.stream():
        length += len(part)
        if length <= most:
            parts.append(part)
        else:
            parts.clear()
        if length > 8 * most:
            break
    if length > most:
        raise Refusal(413, f"The body has more than {most:,} bytes; send fewer texts at once.")
    return b"".join(parts)


def parse_body(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise Refusal(422, f"The body is not UTF-8 (byte {error.start:,}).") from None
    except json.JSONDecodeError as error:
        raise Refusal(422, f"The body is not JSON: {error.msg} at character {error.pos:,}.") from None
    except (RecursionError, ValueError) as error:
        deep = isinstance(error, RecursionError)
        raise Refusal(
            422, f"The body is not JSON that can be read: {'nested too deeply' if deep else error}."
        ) from None
    if not isinstance(found, dict):
        raise Refusal(422, f'The body is a JSON object such as {{"input": "a text"}}, not {_kind(found)}.')
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def texts_in(body: Body, field: str, limits: Limits) -> list[str]:
    """The texts of a field, one or a list of them."""
    if field not in body:
        raise Refusal(422, f"'{field}' is missing: a text or a list of texts.", field)
    given = body[field]
    rows = [given] if isinstance(given, str) else given
    if not isinstance(rows, list):
        raise Refusal(422, f"'{field}' is a text or a list of texts, not {_kind(given)}.", field)
    if not rows:
        raise Refusal(422, f"'{field}' is empty; send at least one text.", field)
    if _is_ids(rows):
        raise Refusal(422, f"'{field}' {TOKEN_IDS}", field, "token_ids")
    if len(rows) > limits.inputs:
        raise Refusal(413, f"'{field}' has {len(rows):,} texts; at most {limits.inputs:,} are taken at once.", field)
    check_texts(rows, field, limits)
    return rows


def check_texts(rows: Sequence[Any], field: str, limits: Limits) -> None:
    for number, text in enumerate(rows):
        if not isinstance(text, str):
            raise Refusal(422, f"'{field}' holds texts; item {number} is {_kind(text)}.", field)
        if not text.strip():
            raise Refusal(422, f"'{field}' holds an empty text (item {number}); leave it out.", field)
        if len(text) > limits.text_characters:
            raise Refusal(
                413,
                f"Item {number} of '{field}' has {len(text):,} characters; at most {limits.text_characters:,} are "
                "taken, and a model reads far fewer: split it into passages.",
                field,
            )
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise Refusal(422, f"Item {number} of '{field}' holds half a character (a lone surrogate).", field)


def text_in(body: Body, field: str, limits: Limits) -> str:
    if not isinstance(body.get(field), str):
        raise Refusal(422, f"'{field}' is one text, not {_kind(body.get(field))}.", field)
    return texts_in(body, field, limits)[0]


def flag_in(body: Body, field: str, default: bool) -> bool:
    found = body.get(field)
    if found is None:
        return default
    if not isinstance(found, bool):
        raise Refusal(422, f"'{field}' is true or false, not {_kind(found)}.", field)
    return found


def number_in(body: Body, field: str, default: int | None, least: int, most: int) -> int | None:
    found = body.get(field)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
        shown = found if isinstance(found, int | float) and abs(found) < 1e9 else _kind(found)
        raise Refusal(422, f"'{field}' is a whole number from {least:,} to {most:,}, not {shown}.", field)
    return found


def word_in(body: Body, field: str, default: str, known: Sequence[str]) -> str:
    found = body.get(field)
    if found is None:
        return default
    if not isinstance(found, str) or found not in known:
        shown = repr(found[:40]) if isinstance(found, str) else _kind(found)
        raise Refusal(422, f"'{field}' is {' or '.join(known)}, not {shown}.", field)
    return found


def _is_ids(rows: Sequence[Any]) -> bool:
    first = rows[0]
    return _is_number(first) or (isinstance(first, list) and bool(first) and _is_number(first[0]))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    """What JSON calls it."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
