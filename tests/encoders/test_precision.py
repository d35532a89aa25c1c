"""Codes of vectors: the same numbers as sentence-transformers, written with their ranges, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.encoders.precision import PRECISIONS, quantize, ranges_of
from isotrope.errors import InputError


@pytest.fixture
def vectors() -> np.ndarray:
    made = np.random.default_rng(0).normal(size=(120, 20)).astype(np.float32)
    made[:, 3] = 0.25  # a dimension that never varies
    return made


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("calibrated", [False, True])
def test_codes_are_those_of_sentence_transformers(vectors: np.ndarray, precision: str, calibrated: bool) -> None:
    from sentence_transformers.util.quantization import quantize_embeddings

    ranges = ranges_of(vectors[:60]) if calibrated else None
    ours, theirs = quantize(vectors, precision, ranges), quantize_embeddings(vectors, precision, ranges=ranges)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_array_equal(ours, theirs)


def test_a_code_is_within_a_step_of_its_value(vectors: np.ndarray) -> None:
    low, high = ranges_of(vectors)
    step = (high - low) / 255
    restored = (quantize(vectors, "int8").astype(np.float64) + 128) * step + low
    assert (np.abs(restored - vectors) <= step + 1e-6).all()


def test_encode_writes_codes_and_their_ranges_and_takes_them_again(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    floats = isotrope.load(tiny, device="cpu").encode(
        [line for line in sentences.read_text(encoding="utf-8").splitlines() if line], truncate_dim=16
    )
    made = isotrope.encode(tiny, sentences, tmp_path / "v.npy", precision="int8", truncate_dim=16)
    assert (made.to_dict()["precision"], made.dimension) == ("int8", 16)
    ranges = np.load(tmp_path / "v.ranges.npy")
    np.testing.assert_allclose(ranges, ranges_of(floats), atol=1e-6)
    codes = np.load(tmp_path / "v.npy")
    assert codes.dtype == np.int8
    assert np.abs(codes.astype(int) - quantize(floats, "int8", ranges)).max() <= 1  # rounding of batches
    isotrope.encode(
        tiny, sentences, tmp_path / "w.npy", precision="int8", truncate_dim=16, ranges=tmp_path / "v.ranges.npy"
    )
    np.testing.assert_array_equal(np.load(tmp_path / "w.npy"), codes)
    assert not (tmp_path / "w.ranges.npy").exists()
    isotrope.encode(tiny, sentences, tmp_path / "b.npy", precision="ubinary")
    assert (np.load(tmp_path / "b.npy").dtype, np.load(tmp_path / "b.npy").shape) == (np.uint8, (400, 4))


def test_what_cannot_be_is_refused_and_leaves_no_file(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="precision is float32, int8, uint8, binary or ubinary; 'int4' was given"):
        isotrope.encode(tiny, sentences, tmp_path / "v.npy", precision="int4")
    np.save(tmp_path / "r.npy", np.zeros((2, 5), dtype=np.float32))
    with pytest.raises(InputError, match=r"ranges have the shape \(2, 32\)"):
        isotrope.encode(tiny, sentences, tmp_path / "v.npy", precision="int8", ranges=tmp_path / "r.npy")
    with pytest.raises(InputError, match="ranges belong to int8"):
        isotrope.encode(tiny, sentences, tmp_path / "v.npy", precision="binary", ranges=tmp_path / "r.npy")
    with pytest.raises(InputError, match="no array of ranges"):
        isotrope.encode(tiny, sentences, tmp_path / "v.npy", precision="int8", ranges=sentences)
    (tmp_path / "one.txt").write_text("one sentence\n", encoding="utf-8")
    with pytest.raises(InputError, match="two vectors or more"):
        isotrope.encode(tiny, tmp_path / "one.txt", tmp_path / "v.npy", precision="int8")
    with pytest.raises(InputError, match="truncate_dim must lie between 1 and 32"):
        isotrope.encode(tiny, sentences, tmp_path / "v.npy", truncate_dim=64)
    with pytest.raises(InputError, match="truncate_dim must lie between 1 and 32"):
        isotrope.search(tiny, sentences, "the pilot", truncate_dim=0)
    assert not list(tmp_path.glob("v*.npy"))
