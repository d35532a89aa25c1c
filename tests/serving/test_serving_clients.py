"""Other people's clients against the server, as their users call them. None of them is a dependency of isotrope."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from isotrope.encoders.encoder import Encoder
from isotrope.serving.service import Service

TEXTS = ["the chef bakes bread", "die Köchin bäckt Brot", "厨师烤面包", "the sailor steers the boat"]
KEY = "a-key-for-tests"


@pytest.fixture(scope="module")
def base(make_service: Callable[..., Service], running_service: Callable[..., Any]) -> Iterator[str]:
    with running_service(make_service(), key=KEY.encode()) as found:
        yield f"{found.address}v1"


@pytest.fixture(scope="module")
def expected(encoder: Encoder) -> np.ndarray:
    return np.asarray(encoder.encode(TEXTS, normalize_embeddings=True))


def test_openai(base: str, expected: np.ndarray) -> None:
    openai = pytest.importorskip("openai", reason="openai's client is not installed")
    client = openai.OpenAI(base_url=base, api_key=KEY, max_retries=0)
    answer = client.embeddings.create(model="tiny", input=TEXTS)  # base64, by its own default
    assert np.allclose([row.embedding for row in answer.data], expected, atol=1e-5)
    assert answer.usage.prompt_tokens > len(TEXTS)
    floats = client.embeddings.create(model="tiny", input=TEXTS[0], encoding_format="float", dimensions=32)
    assert np.allclose(floats.data[0].embedding, expected[0], atol=1e-5)
    assert [model.id for model in client.models.list()] == ["tiny", "labelled"]
    with pytest.raises(openai.NotFoundError, match="No model 'text-embedding-3-small' is served here"):
        client.embeddings.create(model="text-embedding-3-small", input="a")
    with pytest.raises(openai.UnprocessableEntityError, match="check_embedding_ctx_length=False"):
        client.embeddings.create(model="tiny", input=[[1, 2, 3]])
    with pytest.raises(openai.AuthenticationError, match="key is missing or wrong"):
        openai.OpenAI(base_url=base, api_key="wrong", max_retries=0).models.list()


def test_openai_asynchronously(base: str, expected: np.ndarray) -> None:
    openai = pytest.importorskip("openai", reason="openai's client is not installed")

    async def ask() -> list[Any]:
        async with openai.AsyncOpenAI(base_url=base, api_key=KEY, max_retries=0) as client:
            return await asyncio.gather(*(client.embeddings.create(model="tiny", input=text) for text in TEXTS * 4))

    found = [answer.data[0].embedding for answer in asyncio.run(ask())]
    assert np.allclose(found, np.tile(expected, (4, 1)), atol=1e-5)


def test_langchain(base: str, expected: np.ndarray) -> None:
    module = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    embeddings = module.OpenAIEmbeddings(
        model="tiny", base_url=base, api_key=KEY, check_embedding_ctx_length=False, max_retries=0
    )
    assert np.allclose(embeddings.embed_documents(TEXTS), expected, atol=1e-5)
    assert np.allclose(embeddings.embed_query(TEXTS[2]), expected[2], atol=1e-5)


def test_llama_index(base: str, expected: np.ndarray) -> None:
    module = pytest.importorskip(
        "llama_index.embeddings.openai_like", reason="llama-index-embeddings-openai-like is not installed"
    )
    embeddings = module.OpenAILikeEmbedding(model_name="tiny", api_base=base, api_key=KEY, max_retries=0)
    assert np.allclose(embeddings.get_text_embedding_batch(TEXTS), expected, atol=1e-5)
    assert np.allclose(embeddings.get_query_embedding(TEXTS[1]), expected[1], atol=1e-5)


def test_haystack(base: str, expected: np.ndarray) -> None:
    embedders = pytest.importorskip("haystack.components.embedders", reason="haystack-ai is not installed")
    from haystack import Document
    from haystack.utils import Secret

    named = {"model": "tiny", "api_base_url": base, "api_key": Secret.from_token(KEY)}
    documents = embedders.OpenAIDocumentEmbedder(**named, progress_bar=False).run([Document(content=t) for t in TEXTS])
    assert np.allclose([one.embedding for one in documents["documents"]], expected, atol=1e-5)
    assert np.allclose(embedders.OpenAITextEmbedder(**named).run(TEXTS[0])["embedding"], expected[0], atol=1e-5)


def test_mteb(server: Any, expected: np.ndarray) -> None:
    """Its wrapper looks for the model without the key, so the server has none."""
    models = pytest.importorskip("mteb.models", reason="mteb is not installed")
    import mteb
    from torch.utils.data import DataLoader

    wrapper = models.OpenAIAPIEncodeWrapper(endpoint_url=server.address, model_name="tiny", use_chat_template=False)
    rows: Any = DataLoader([{"text": text} for text in TEXTS], batch_size=2)
    task = mteb.get_task("STSBenchmark").metadata
    found = wrapper.encode(rows, task_metadata=task, hf_split="test", hf_subset="default")
    assert np.allclose(found, expected, atol=1e-5)
