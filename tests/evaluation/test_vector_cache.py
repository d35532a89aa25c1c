"""The cache of vectors: each text once, the same bits back, damage noticed, a limit kept; and what is not cached."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.layer_cosines import pair_cosines
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.evaluation.vector_cache import VectorCache, shared_vectors

MODEL = "model"


@pytest.fixture
def encoder(tiny: Path) -> Encoder:
    return isotrope.load(tiny, device="cpu")


@pytest.fixture(autouse=True)
def cache_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vectors"


def made(texts: list[str]) -> np.ndarray:
    """Vectors with every sort of bits."""
    return np.array([[len(text), -0.0, 1e-42, hash(text) % 7] for text in texts], dtype=np.float32).reshape(-1, 4)


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.npy"))


def test_a_text_is_encoded_once_and_comes_back_bit_for_bit(encoder: Encoder, topics: list[str]) -> None:
    with shared_vectors() as cache:
        first = TextVectors.encoded(encoder, topics[:30])
        assert (cache.encoded, cache.found) == (30, 0)
        again = TextVectors.encoded(encoder, topics[20:40], normalize=True)
        assert (cache.encoded, cache.found) == (40, 10)
    with shared_vectors() as later:
        other = TextVectors.encoded(encoder, topics[:40])
        assert (later.encoded, later.found) == (0, 40)
    assert first.vectors.tobytes() == other.of(first.texts).tobytes()
    expected = encoder.encode(again.texts, normalize_embeddings=True)
    assert np.abs(again.vectors - expected).max() < 1e-6
    assert not files_of(Path(os.environ["ISOTROPE_CACHE"]) / "nowhere")


def test_without_a_block_or_a_disk_nothing_is_written(encoder: Encoder, cache_place: Path, topics: list[str]) -> None:
    TextVectors.encoded(encoder, topics[:5])
    with shared_vectors(disk=False) as cache:
        for _ in range(2):
            TextVectors.encoded(encoder, topics[:5])
        with shared_vectors() as inner:  # inside a comparison
            assert inner is cache
        assert (cache.encoded, cache.found) == (5, 5)
    assert not cache_place.exists()


def test_other_weights_are_another_model(encoder: Encoder, topics: list[str]) -> None:
    with shared_vectors() as cache:
        before = TextVectors.encoded(encoder, topics[:4]).vectors
        with torch.no_grad():
            encoder.backbone.embeddings.LayerNorm.bias.add_(1.0)
        after = TextVectors.encoded(encoder, topics[:4]).vectors
        assert cache.encoded == 8
    assert np.abs(before - after).max() > 1e-3


def test_an_encode_of_ones_own_is_never_cached(encoder: Encoder, topics: list[str]) -> None:
    class Shuffled(Encoder):
        def encode(self, texts, *given, **named):  # type: ignore[no-untyped-def]
            return super().encode(texts, *given, **named)[::-1]

    with shared_vectors() as cache:
        plain = TextVectors.encoded(encoder, topics[:6]).vectors
        other = Shuffled(encoder.backbone, encoder.tokenizer, encoder.pooling)
        assert np.allclose(TextVectors.encoded(other, topics[:6]).vectors, plain[::-1], atol=1e-6)
        encoder.encode = lambda texts, **named: np.ones((len(texts), 3), np.float32)  # type: ignore[method-assign]
        assert TextVectors.encoded(encoder, topics[:6]).vectors.shape == (6, 3)
        assert cache.encoded == 6


def test_a_damaged_file_is_made_anew_with_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts = [f"text {number}" for number in range(50)]
    VectorCache(tmp_path).vectors(MODEL, texts, made)
    (file,) = files_of(tmp_path)
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    for broken in (bytes(content), content[:100], b""):
        file.write_bytes(broken)
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="isotrope"):
            cache = VectorCache(tmp_path)
            found = cache.vectors(MODEL, texts, made)
        assert cache.encoded == 50
        assert found.tobytes() == made(texts).tobytes()
        assert [record.message for record in caplog.records] == [f"{file}: damaged; its vectors are made anew."]
        assert files_of(tmp_path) == [file]
        assert VectorCache(tmp_path).vectors(MODEL, texts, made).tobytes() == made(texts).tobytes()


def test_what_another_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / MODEL).mkdir()
    (tmp_path / MODEL / ".half.npy").write_bytes(b"half")
    assert VectorCache(tmp_path).vectors(MODEL, ["a"], made).tobytes() == made(["a"]).tobytes()
    assert (tmp_path / MODEL / ".half.npy").read_bytes() == b"half"


def test_the_oldest_goes_when_the_limit_is_reached(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    for number in range(4):
        cache.vectors(f"model {number}", [f"text {row}" for row in range(10)], made)
        (file,) = (tmp_path / f"model {number}").glob("*.npy")
        os.utime(file, (1000 + number, 1000 + number))
    size = file.stat().st_size
    VectorCache(tmp_path).known("model 0", ["text 1"])  # used: now the newest
    small = VectorCache(tmp_path, limit=3 * size)
    small.vectors("model 4", [f"text {row}" for row in range(10)], made)
    assert [file.parent.name for file in files_of(tmp_path)] == ["model 0", "model 3", "model 4"]
    VectorCache(tmp_path, limit=10).vectors("large", ["a", "b"], made)  # more than the limit: not kept at all
    assert not (tmp_path / "large").exists()


def test_a_place_that_cannot_be_written_costs_no_result(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    with caplog.at_level(logging.INFO, logger="isotrope"):
        found = VectorCache(tmp_path / "file").vectors(MODEL, ["a"], made)
    assert found.tobytes() == made(["a"]).tobytes()
    assert "not kept" in caplog.text


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    VectorCache(tmp_path).vectors(MODEL, ["a"], made)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_vectors_that_are_no_numbers_are_refused_and_not_kept(encoder: Encoder, cache_place: Path) -> None:
    with torch.no_grad():
        encoder.backbone.embeddings.LayerNorm.weight.fill_(torch.nan)
    with shared_vectors(), pytest.raises(InputError, match="NaN or infinite vectors for 2 of 2 texts"):
        TextVectors.encoded(encoder, ["a chef", "a boat"])
    assert files_of(cache_place) == []


def test_no_texts_have_no_vectors(encoder: Encoder) -> None:
    with shared_vectors():
        assert TextVectors.encoded(encoder, []).vectors.shape == (0, 32)


def test_the_layer_sweep_shares_its_vectors(encoder: Encoder, topics: list[str]) -> None:
    first, second = topics[:12], topics[12:24]
    plain = pair_cosines(encoder, first, second)
    with shared_vectors() as cache:
        cold = pair_cosines(encoder, first, second)
        assert cache.encoded == 24
        TextVectors.encoded(encoder, topics[:24])  # the mean of the last layer is one of the readings
        assert cache.encoded == 24
    with shared_vectors() as cache:
        warm = pair_cosines(encoder, first, second)
        assert cache.encoded == 0
    assert list(plain) == list(cold) == list(warm)
    for name, values in plain.items():
        assert np.allclose(values, cold[name], atol=1e-5), name
        assert np.array_equal(cold[name], warm[name]), name


def test_a_sweep_that_does_not_fit_keeps_cosines_alone(
    encoder: Encoder, topics: list[str], monkeypatch: pytest.MonkeyPatch, cache_place: Path
) -> None:
    monkeypatch.setattr("isotrope.evaluation.layer_vectors.MOST", 100)
    with shared_vectors():
        pair_cosines(encoder, topics[:3], topics[3:6])
    assert files_of(cache_place) == []


def test_a_cache_that_may_only_be_read_serves_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    VectorCache(tmp_path).vectors(MODEL, ["a"], made)

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("isotrope.evaluation.vector_cache.os.utime", refused)
    cache = VectorCache(tmp_path)
    assert cache.vectors(MODEL, ["a"], made).tobytes() == made(["a"]).tobytes()
    assert (cache.encoded, cache.found) == (0, 1)
