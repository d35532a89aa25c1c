"""What the service takes at most. Beyond it a request is refused with a sentence, and nothing is computed for it."""

from __future__ import annotations

from dataclasses import dataclass

CPU_TOKENS, GPU_TOKENS = 1024, 65_536  # a forward of more tokens is not faster, and whoever comes next waits for it


@dataclass(frozen=True)
class Limits:
    """Bounds of one request and of everything that waits.

    ``inputs`` is that of OpenAI. ``batch_tokens`` joins texts of several requests into one forward. A text longer than
    the model reads is cut and counted; one of more than ``text_characters`` is refused, because nearly all of it would
    be lost and the rest of the service would wait for its tokens.
    """

    batch_tokens: int = CPU_TOKENS
    inputs: int = 2048
    body_bytes: int = 8_000_000
    text_characters: int = 200_000
    header_bytes: int = 32_768
    waiting_requests: int = 512
    waiting_texts: int = 16_384
    map_lines: int = 500
    body_seconds: float = 30.0
    header_seconds: float = 20.0
    drain_seconds: int = 30
