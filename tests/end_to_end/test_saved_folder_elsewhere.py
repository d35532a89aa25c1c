"""The saved folder in other programs, run for real: the same vectors, maps behind the pooling included.

Each program is an extra of the test job; where it is not installed, its test says so and is skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope

TEXTS = ["the chef bakes the bread", "the sailor steers the boat", "the pilot lands the rocket", "a comet"]


@pytest.fixture(scope="module")
def sentences_of_topics(topics: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "sentences.txt"
    path.write_text("\n".join(topics[:300]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=["plain", "whitening", "dense", "truncated"])
def model(
    request: pytest.FixtureRequest, tiny: Path, sentences_of_topics: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder without a map, with a whitening (Dense), with a tanh head (Dense), and cut to 12 dimensions (Dense)."""
    from isotrope.towers.heads import tanh_head

    folder = tmp_path_factory.mktemp("saved") / str(request.param)
    encoder = isotrope.load(tiny)
    if request.param == "whitening":
        isotrope.fit_space("whitening", tiny, sentences_of_topics, folder, k=16)
        return folder
    if request.param == "dense":
        encoder = encoder.with_parts([tanh_head(encoder.dimension, spread=0.3)])
    if request.param == "truncated":
        encoder = isotrope.load(tiny, truncate_dim=12)
    encoder.save(folder)
    return folder


def same(found: Any, model: Path, texts: list[str] = TEXTS, unit: bool = False) -> None:
    expected = isotrope.load(model).encode(texts, normalize_embeddings=unit)
    np.testing.assert_allclose(np.asarray(found, dtype=np.float32), expected, atol=1e-5)


def test_sentence_transformers(model: Path) -> None:
    from sentence_transformers import SentenceTransformer

    same(SentenceTransformer(str(model), device="cpu").encode(TEXTS), model)


def test_langchain_huggingface(model: Path) -> None:
    package = pytest.importorskip("langchain_huggingface", reason="the extra interop is not installed")
    embeddings = package.HuggingFaceEmbeddings(model_name=str(model), model_kwargs={"device": "cpu"})
    same(embeddings.embed_documents(TEXTS), model)
    same([embeddings.embed_query(TEXTS[1])], model, TEXTS[1:2])


def test_langchain_huggingface_asks_with_the_named_prompts(tiny: Path, tmp_path: Path) -> None:
    package = pytest.importorskip("langchain_huggingface", reason="the extra interop is not installed")
    encoder = isotrope.load(tiny)
    encoder.prompts = {"query": "the pilot: ", "document": "the farmer: "}
    encoder.save(tmp_path / "m")
    named = {"query_encode_kwargs": {"prompt_name": "query"}, "encode_kwargs": {"prompt_name": "document"}}
    embeddings = package.HuggingFaceEmbeddings(model_name=str(tmp_path / "m"), model_kwargs={"device": "cpu"}, **named)
    np.testing.assert_allclose(embeddings.embed_query(TEXTS[0]), encoder.encode_query(TEXTS[0]), atol=1e-5)
    np.testing.assert_allclose(embeddings.embed_documents(TEXTS), encoder.encode_document(TEXTS), atol=1e-5)


def test_mteb(model: Path) -> None:
    mteb = pytest.importorskip("mteb", reason="the extra mteb is not installed")
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from torch.utils.data import DataLoader

    wrapped = mteb.models.SentenceTransformerEncoderWrapper(SentenceTransformer(str(model), device="cpu"))
    rows = DataLoader(Dataset.from_dict({"text": TEXTS}), batch_size=2)
    metadata = mteb.get_task("STS12").metadata
    found = wrapped.encode(rows, task_metadata=metadata, hf_split="test", hf_subset="default")
    same(found, model)


def test_txtai(model: Path) -> None:
    txtai = pytest.importorskip("txtai", reason="the extra interop is not installed")
    index = txtai.Embeddings(path=str(model), method="sentence-transformers", gpu=False)
    same([index.transform(text) for text in TEXTS], model, unit=True)  # it scales every vector to unit length
    index.index(TEXTS)
    assert [place for place, _ in index.search(TEXTS[2], 1)] == [2]


def test_bertopic(model: Path, topics: list[str]) -> None:
    bertopic = pytest.importorskip("bertopic", reason="the extra interop is not installed")
    from sentence_transformers import SentenceTransformer
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    body = SentenceTransformer(str(model), device="cpu")
    # Plain stages in place of UMAP and HDBSCAN, which take a minute to compile.
    stages = {"umap_model": PCA(4), "hdbscan_model": KMeans(5, n_init=2, random_state=0)}
    found = bertopic.BERTopic(embedding_model=body, **stages)
    texts = topics[:200]
    given, _ = found.fit_transform(texts)
    assert len(given) == 200
    same(found.embedding_model.embed(TEXTS), model)
