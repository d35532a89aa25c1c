"""Attention as a read-out: sums to one, never sees padding, starts as the mean, and goes along with the saved model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.attention import Attention, attend, attention_weights
from isotrope.errors import InputError

TEXTS = ["the chef bakes", "the sailor steers the boat across the windy bay", "salt"]


def attending(tiny: Path, spread: float = 1.0) -> Encoder:
    encoder = isotrope.load(tiny, device="cpu")
    attend(encoder)
    assert isinstance(encoder.token_weights, Attention)
    torch.nn.init.normal_(encoder.token_weights.vector, std=spread, generator=torch.Generator().manual_seed(0))
    return encoder


def test_golden_values() -> None:
    """w·h = log 1, log 2, log 5 and one that is padding: shares 1/8, 2/8, 5/8."""
    states = torch.log(torch.tensor([[1.0, 2.0, 5.0, 100.0]])).unsqueeze(-1)
    weights = attention_weights(states, torch.tensor([[1, 1, 1, 0]]), torch.ones(1))
    assert weights.tolist()[0] == pytest.approx([0.125, 0.25, 0.625, 0.0])
    huge = attention_weights(1e4 * states.half().float(), torch.ones(1, 4), torch.ones(1))
    assert torch.isfinite(huge).all()
    assert attention_weights(states.bfloat16(), torch.ones(1, 4), torch.ones(1)).dtype == torch.float32


def test_the_vector_is_the_weighted_sum_of_a_naive_loop(tiny: Path) -> None:
    encoder = attending(tiny).eval()
    tokens = encoder.tokenize(TEXTS)
    with torch.no_grad():
        states, found = encoder.states(tokens), encoder.pooled(tokens)
        assert isinstance(encoder.token_weights, Attention)
        vector = encoder.token_weights.vector.double()
        for row, length in enumerate(tokens.lengths):
            own = states[row, :length].double()
            share = torch.exp(own @ vector)
            expected = (share / share.sum()) @ own
            assert torch.allclose(found[row].double(), expected, atol=1e-5)


def test_it_starts_as_the_mean_and_company_does_not_matter(tiny: Path) -> None:
    plain = isotrope.load(tiny, pooling="mean", device="cpu").encode(TEXTS)
    assert np.allclose(attending(tiny, spread=0.0).encode(TEXTS), plain, atol=1e-6)
    encoder = attending(tiny)
    assert np.abs(encoder.encode(TEXTS) - plain).max() > 1e-3
    assert np.allclose(encoder.encode(TEXTS), np.stack([encoder.encode(text) for text in TEXTS]), atol=1e-5)
    assert encoder.fingerprint() != attending(tiny, spread=0.5).fingerprint()


def test_a_saved_model_attends_here_and_in_sentence_transformers(tiny: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = attending(tiny)
    expected = encoder.encode(TEXTS)
    encoder.save(tmp_path / "model")
    again = isotrope.load(tmp_path / "model", device="cpu")
    assert again.pooling.name == "attention"
    assert again.state_dict().keys() == encoder.state_dict().keys()
    assert np.allclose(again.encode(TEXTS), expected, atol=1e-6)
    assert again.fingerprint() == encoder.fingerprint()
    there = SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True, trust_remote_code=True)
    assert np.allclose(there.encode(TEXTS), expected, atol=1e-5)
    with pytest.raises(
        ValueError, match="trust_remote_code"
    ):  # no stock module can hold it, and nothing else is loaded in its place
        SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)


def test_another_pooling_leaves_the_attention_behind(tiny: Path, tmp_path: Path) -> None:
    attending(tiny).save(tmp_path / "model")
    plain = isotrope.load(tmp_path / "model", pooling="mean", device="cpu")
    assert plain.token_weights is None
    assert np.allclose(plain.encode(TEXTS), isotrope.load(tiny, pooling="mean", device="cpu").encode(TEXTS), atol=1e-6)
    assert isotrope.load(tmp_path / "model", pooling="attention", device="cpu").token_weights is not None


def test_it_goes_on_from_what_was_learned_and_does_not_mix_with_sif(tiny: Path, topics: list[str]) -> None:
    encoder = attending(tiny)
    before = encoder.fingerprint()
    attend(encoder)
    assert encoder.fingerprint() == before
    with pytest.raises(InputError, match="load it with mean pooling"):
        isotrope.fit_space("sif", encoder, topics[:50])
    with pytest.raises(InputError, match="by their frequency"):
        attend(isotrope.fit_space("sif", isotrope.load(tiny, pooling="mean", device="cpu"), topics[:50], components=0))


def test_a_damaged_folder_is_refused(tiny: Path, tmp_path: Path) -> None:
    attending(tiny).save(tmp_path / "model")
    (tmp_path / "model" / "1_IsotropeAttention" / "config.json").write_text('{"width": 7}', encoding="utf-8")
    with pytest.raises(InputError, match="do not fit together"):
        isotrope.load(tmp_path / "model")
