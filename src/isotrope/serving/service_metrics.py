"""Counts and times for Prometheus, under the names of text-embeddings-inference where it has one.

Labels are routes and statuses, never anything that a client wrote: their number does not grow.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
TOKENS = (16, 64, 256, 512, 1024, 2048, 4096, 16_384, 65_536)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 512, 2048)


class ServiceMetrics:
    """A registry of its own, so that two services in one process do not mix."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        labels = ("route", "status")
        self.requests = Counter("te_request_count", "Requests answered", labels, registry=registry)
        self.seconds = Histogram(
            "te_request_duration", "Seconds from head to answer", ("route",), registry=registry, buckets=SECONDS
        )
        self.batch_texts = Histogram("te_batch_next_size", "Texts of a batch", registry=registry, buckets=TEXTS)
        self.batch_tokens = Histogram("te_batch_next_tokens", "Tokens of a batch", registry=registry, buckets=TOKENS)
        self.queue = Gauge("te_queue_size", "Requests that wait or are computed", registry=registry)
        self.tokens = Counter("te_embed_tokens", "Tokens read", registry=registry)
        self.cut = Counter("isotrope_cut_inputs", "Texts cut at what the model reads", registry=registry)
        self.gone = Counter("isotrope_gone_clients", "Clients that left before their answer", registry=registry)

    def watch_queue(self, size: Callable[[], int]) -> None:
        self.queue.set_function(size)

    def batch(self, texts: int, tokens: int) -> None:
        self.batch_texts.observe(texts)
        self.batch_tokens.observe(tokens)

    def answered(self, route: str, status: int, seconds: float) -> None:
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)
