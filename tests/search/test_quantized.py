"""Search over codes: against a naive loop, and equal to float search where all candidates are re-scored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotrope.encoders.precision import quantize, ranges_of
from isotrope.errors import InputError
from isotrope.search import quantized
from isotrope.search.quantized import QuantizedIndex

CODES = ("int8", "uint8", "binary", "ubinary")


def units(count: int, seed: int, width: int = 20) -> np.ndarray:
    made = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.mark.parametrize("precision", CODES)
def test_candidates_are_those_of_a_naive_loop(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized, "BLOCK", 7)
    documents, queries = units(50, 0), units(4, 1)
    found = QuantizedIndex(documents, precision).candidates(queries, 6)
    low, high = ranges_of(documents).astype(np.float64)
    for query, rows in zip(queries, found, strict=True):
        if precision.endswith("int8"):
            step = (high - low) / 255
            codes = quantize(documents, precision).astype(np.float64) + (128 if precision == "int8" else 0)
            scores = [float(query @ (code * step + low)) for code in codes]
        else:
            scores = [-float(np.sum((query > 0) != (document > 0))) for document in documents]
        assert sorted(scores[row] for row in rows) == pytest.approx(sorted(scores)[-6:], abs=1e-5)


@pytest.mark.parametrize("precision", CODES)
def test_with_every_document_a_candidate_it_is_float_search(precision: str, tmp_path: Path) -> None:
    documents, queries = units(40, 0), units(5, 1)
    np.save(tmp_path / "documents.npy", documents)
    mapped = np.load(tmp_path / "documents.npy", mmap_mode="r")
    index = QuantizedIndex(documents, precision)
    rows, scores = index.search(queries, top=8, rescore=5, vectors=mapped)
    exact = queries @ documents.T
    np.testing.assert_array_equal(rows, np.argsort(-exact, axis=1, kind="stable")[:, :8])
    np.testing.assert_allclose(scores, -np.sort(-exact, axis=1)[:, :8], atol=1e-6)


def test_memory_is_a_quarter_and_a_thirty_second_and_ranges_are_kept() -> None:
    documents = units(4000, 0, width=64)
    assert QuantizedIndex(documents, "int8").nbytes == documents.nbytes // 4 + 2 * 64 * 4
    assert QuantizedIndex(documents, "binary").nbytes == documents.nbytes // 32
    ranges = ranges_of(documents)
    np.testing.assert_array_equal(
        QuantizedIndex(documents[:5], "int8", ranges).codes, QuantizedIndex(documents, "int8").codes[:5]
    )


def test_without_float_vectors_the_codes_rank_and_a_small_index_gives_what_it_has() -> None:
    documents = units(30, 0)
    for precision in CODES:
        rows, scores = QuantizedIndex(documents, precision).search(documents[:3], top=50)
        assert rows.shape == (3, 30)
        assert rows[:, 0].tolist() == [0, 1, 2]
        assert (np.diff(scores, axis=1) <= 0).all()


def test_what_cannot_be_is_refused() -> None:
    index = QuantizedIndex(units(5, 0), "int8")
    with pytest.raises(InputError, match="Queries are"):
        index.search(units(2, 0, width=8))
    with pytest.raises(InputError, match="at least 1"):
        index.search(units(2, 0), top=0)
    with pytest.raises(InputError, match="float32 has no codes"):
        QuantizedIndex(units(5, 0), "float32")
    with pytest.raises(InputError, match="'int4' was given"):
        QuantizedIndex(units(5, 0), "int4")
