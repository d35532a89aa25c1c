"""What encoding on a GPU does on the host: blocks in order, groups that make up all texts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotrope.encoders import gpu_encoding
from isotrope.encoders.gpu_encoding import tokenized_ahead
from isotrope.encoders.vector_groups import _outputs_ahead

WORDS = "the cat walks home while an unbelievable number of dogs run".split()


def texts_of(count: int) -> list[str]:
    return [" ".join(WORDS[: 1 + number % len(WORDS)]) + f" {number % 97}" for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 28, 29, 100])
def test_blocks_come_in_order_and_hold_all_texts(tokenizer, monkeypatch, count):
    monkeypatch.setattr(gpu_encoding, "FIRST", 8)
    monkeypatch.setattr(gpu_encoding, "BLOCK", 20)
    texts = texts_of(count)
    blocks = list(tokenized_ahead(tokenizer, texts))
    assert [start for start, _ in blocks] == ([0, *range(8, count, 20)] if count else [])
    ids, lengths = tokenizer.flat(texts)
    assert np.concatenate([lengths[:0], *(found[1] for _, found in blocks)]).tolist() == lengths.tolist()
    assert np.concatenate([ids[:0], *(found[0] for _, found in blocks)]).tolist() == ids.tolist()


def test_a_failure_in_the_thread_reaches_the_caller(tokenizer):
    with pytest.raises(TypeError, match="TextEncodeInput"):
        list(tokenized_ahead(tokenizer, ["the cat", "half \ud800"]))


def test_groups_made_ahead_give_the_vectors_of_encode(fresh, monkeypatch):
    monkeypatch.setattr(gpu_encoding, "FIRST", 16)
    monkeypatch.setattr(gpu_encoding, "BLOCK", 64)
    encoder, texts = fresh(), texts_of(150)
    found = np.full((len(texts), encoder.dimension), np.nan, dtype=np.float32)
    with torch.inference_mode():
        for group, output in _outputs_ahead(encoder.eval(), texts, 7):
            found[group] = output.numpy()
    np.testing.assert_allclose(found, encoder.encode(texts), atol=1e-5)
