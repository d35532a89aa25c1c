"""A real server on a free port, with tiny models, an index in memory and a classifier of two words."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")
pytest.importorskip("prometheus_client", reason="the extra serve is not installed")

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.serving.launch import make_server
from isotrope.serving.listening_port import bind
from isotrope.serving.served_model import ServedModel
from isotrope.serving.service import Service
from isotrope.serving.service_limits import Limits

TEXTS = ["the chef bakes the bread", "the sailor steers the boat", "the pilot lands the rocket", "salt and soup"]


@dataclass
class Answer:
    status: int
    body: Any
    headers: dict[str, str]


@dataclass
class Running:
    """A server and a way to ask it."""

    host: str
    port: int
    service: Service

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}/"

    def ask(self, path: str, body: Any = None, method: str | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method or ("GET" if body is None else "POST"), path, content, sent)
            found = connection.getresponse()
            text = found.read().decode()
            is_json = (found.getheader("content-type") or "").startswith("application/json")
            return Answer(
                found.status, json.loads(text) if is_json else text, {k.lower(): v for k, v in found.getheaders()}
            )
        finally:
            connection.close()

    def vectors(self, texts: list[str], **fields: Any) -> np.ndarray:
        answer = self.ask("/embed", {"inputs": texts, **fields})
        assert answer.status == 200, answer.body
        return np.array(answer.body)


@contextmanager
def running(service: Service, key: bytes | None = None, host: str = "127.0.0.1") -> Iterator[Running]:
    listening = bind(host, 0)
    server = make_server(service, key, host)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Running(host, listening.getsockname()[1], service)
    finally:
        server.should_exit = True
        thread.join(60)


@dataclass(frozen=True)
class FakeHit:
    text: str
    score: float
    line: int
    file: str = "texts.txt"
    columns: dict[str, Any] = field(default_factory=dict)
    marks: tuple[tuple[int, int], ...] = ()
    passage: dict[str, int] = field(default_factory=lambda: {"number": 2, "of": 3, "start": 10, "end": 30})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class FakeIndex:
    """Texts by how many words of the query they hold; re-ranked, the last one first."""

    def search(
        self, queries: list[str], top: int = 10, mode: str = "hybrid", where: str | None = None, rerank: int = 0
    ) -> list[list[FakeHit]]:
        if where is not None and where != "line > 1":
            raise InputError(f"where {where!r} is no filter.", setting="where")
        return [self._hits(query, top, where)[:: -1 if rerank else 1] for query in queries]

    def _hits(self, query: str, top: int, where: str | None) -> list[FakeHit]:
        found = []
        for line, text in enumerate(TEXTS, 1):
            words = [word for word in query.split() if word in text]
            marks = tuple((text.index(word), text.index(word) + len(word)) for word in words[:1])
            if words and (where is None or line > 1):
                found.append(FakeHit(text, float(len(words)), line, columns={"year": 2000 + line}, marks=marks))
        return sorted(found, key=lambda hit: -hit.score)[:top]

    def info(self) -> dict[str, Any]:
        return {
            "place": "/secret/place",
            "engine": "folder",
            "rows": len(TEXTS),
            "modes": ["hybrid", "dense", "lexical"],
            "rerank": True,
        }


@dataclass(frozen=True)
class FakeClassifier:
    task: str = "classes"
    inputs: int = 1
    classes_: tuple[str, ...] = ("food", "other")


@pytest.fixture(scope="session")
def encoder(tiny: Path) -> Encoder:
    return load(tiny, device="cpu")


@pytest.fixture(scope="session")
def labelled(tiny: Path) -> Encoder:
    """An encoder that keeps a classifier: food is what holds the word bread."""
    found: Any = load(tiny, device="cpu")
    found.classifier = FakeClassifier()
    found.predict_proba = lambda texts: np.array([[0.9, 0.1] if "bread" in text else [0.2, 0.8] for text in texts])
    return found


@pytest.fixture(scope="session")
def make_service(encoder: Encoder, labelled: Encoder) -> Callable[..., Service]:
    def make(index: Any = None, **limits: Any) -> Service:
        models = [ServedModel("tiny", encoder), ServedModel("labelled", labelled)]
        return Service(models, Limits(**limits), index)

    return make


@pytest.fixture(scope="session")
def running_service() -> Callable[..., Any]:
    return running


@pytest.fixture(scope="session")
def server(make_service: Callable[..., Service]) -> Iterator[Running]:
    with running(make_service(FakeIndex(), inputs=64, body_bytes=2_000_000)) as found:
        yield found
