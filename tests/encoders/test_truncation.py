"""The leading dimensions of vectors: by ``encode``, by ``load``, saved, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.encoders.truncation import truncated
from isotrope.errors import InputError

TEXTS = ["the chef bakes the bread", "the pilot lands the rocket near the crater", ""]


def test_encode_and_load_keep_the_leading_dimensions(tiny: Path) -> None:
    whole = isotrope.load(tiny, device="cpu")
    cut = isotrope.load(tiny, device="cpu", truncate_dim=8)
    expected = whole.encode(TEXTS)[:, :8]
    assert cut.dimension == 8
    np.testing.assert_array_equal(cut.encode(TEXTS), expected)
    np.testing.assert_array_equal(whole.encode(TEXTS, truncate_dim=8), expected)
    units = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(whole.encode(TEXTS, normalize_embeddings=True, truncate_dim=8), units, atol=1e-6)
    np.testing.assert_allclose(cut.encode(TEXTS, normalize_embeddings=True), units, atol=1e-6)
    assert whole.encode(TEXTS[0], truncate_dim=5).shape == (5,)


def test_sentence_transformers_cuts_alike_and_reads_what_is_saved(tiny: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(tiny), device="cpu", truncate_dim=8).encode(TEXTS)
    cut = isotrope.load(tiny, device="cpu", truncate_dim=8)
    np.testing.assert_allclose(cut.encode(TEXTS), theirs, atol=1e-5)
    cut.save(tmp_path / "cut")
    np.testing.assert_allclose(
        SentenceTransformer(str(tmp_path / "cut"), device="cpu").encode(TEXTS), theirs, atol=1e-5
    )
    assert isotrope.load(tmp_path / "cut").fingerprint() == cut.fingerprint()


def test_a_cut_encoder_shares_its_weights_and_leaves_the_other_whole(tiny: Path) -> None:
    whole = isotrope.load(tiny, device="cpu")
    cut = truncated(whole, 8)
    assert (cut.dimension, whole.dimension, cut.backbone is whole.backbone) == (8, 32, True)
    assert cut.fingerprint() != whole.fingerprint()
    assert truncated(whole, 32) is whole
    assert truncated(whole, None) is whole


def test_a_width_of_numpy_is_saved(tiny: Path, tmp_path: Path) -> None:
    isotrope.load(tiny, truncate_dim=np.int64(8)).save(tmp_path / "cut")
    assert isotrope.load(tmp_path / "cut").dimension == 8


@pytest.mark.parametrize("width", [0, -1, 33])
def test_a_width_that_the_vectors_do_not_have_is_refused(tiny: Path, width: int) -> None:
    with pytest.raises(InputError, match=f"truncate_dim must lie between 1 and 32.*{width} was given"):
        isotrope.load(tiny, truncate_dim=width)
    with pytest.raises(InputError, match="truncate_dim must lie between 1 and 32"):
        isotrope.load(tiny).encode(TEXTS, truncate_dim=width)
