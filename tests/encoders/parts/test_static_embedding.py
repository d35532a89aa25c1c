"""Tables of word vectors: read as sentence-transformers reads them, and encoded without padding."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

import isotrope
from isotrope.encoders.cut_texts import CutTextWarning
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.errors import InputError
from isotrope.files import write_json


@pytest.fixture
def framed(fresh: Callable[[], Encoder], tmp_path: Path) -> Path:
    """A StaticEmbedding folder whose tokenizer puts [CLS] and [SEP] around a text, as those made of a BERT do."""
    backend = fresh().tokenizer.backend_tokenizer
    assert backend.post_processor is not None
    backend.save(str(tmp_path / "tokenizer.json"))
    table = torch.randn(backend.get_vocab_size(), 6, generator=torch.Generator().manual_seed(0))
    save_file({"embedding.weight": table}, tmp_path / "model.safetensors")
    entry = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}
    write_json(tmp_path / "modules.json", [entry])
    return tmp_path


def test_special_tokens_of_the_tokenizer_have_no_part_in_the_mean(
    framed: Path, texts: list[str], vectors_elsewhere: Callable[[Path, list[str]], Any]
) -> None:
    ours = isotrope.load(framed, device="cpu").encode(texts)
    np.testing.assert_allclose(ours, vectors_elsewhere(framed, texts), atol=1e-6)


def test_lookups_without_padding_give_the_mean_of_padded_rows(framed: Path, texts: list[str]) -> None:
    encoder = isotrope.load(framed, device="cpu")
    with torch.no_grad():
        padded = encoder(encoder.tokenize(texts)).numpy()
    for batch_size in (None, 1, 5):
        np.testing.assert_allclose(encoder.encode(texts, batch_size), padded, atol=1e-6)
    assert encoder.encode(texts[0]).shape == (6,)
    assert encoder.encode([]).shape == (0, 6)


def test_a_shorter_length_still_cuts(framed: Path) -> None:
    encoder = isotrope.load(framed, device="cpu")
    long, short = "the cat sees the old river near the house", "the cat sees"
    encoder.max_length = 3
    np.testing.assert_allclose(encoder.encode(long), encoder.encode(short), atol=1e-6)


def test_the_length_in_the_tokenizer_cuts_here_as_elsewhere(
    framed: Path, tmp_path: Path, texts: list[str], vectors_elsewhere: Callable[[Path, list[str]], Any]
) -> None:
    known = Tokenizer.from_file(str(framed / "tokenizer.json"))
    known.enable_truncation(5)
    known.save(str(framed / "tokenizer.json"))
    encoder = isotrope.load(framed, device="cpu")
    np.testing.assert_allclose(encoder.encode(texts), vectors_elsewhere(framed, texts), atol=1e-6)
    encoder.max_length = 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutTextWarning)
        encoder.save(tmp_path / "shorter")
        again = isotrope.load(tmp_path / "shorter", device="cpu")
        assert again.max_length == 3
        np.testing.assert_allclose(again.encode(texts), encoder.encode(texts), atol=1e-6)
        np.testing.assert_allclose(again.encode(texts), vectors_elsewhere(tmp_path / "shorter", texts), atol=1e-6)


def test_a_tokenizer_that_keeps_the_end_of_a_text_is_refused(framed: Path) -> None:
    known = Tokenizer.from_file(str(framed / "tokenizer.json"))
    known.enable_truncation(5, direction="left")
    known.save(str(framed / "tokenizer.json"))
    with pytest.raises(InputError, match=r"tokenizer\.json: its truncation keeps 5 tokens from the left"):
        isotrope.load(framed, device="cpu")


def test_a_text_without_tokens_is_zero() -> None:
    table = StaticVectors(torch.ones(3, 2))
    found = table.means(torch.tensor([1, 2]), torch.tensor([0, 0, 2]))
    assert found.tolist() == [[0, 0], [1, 1], [0, 0]]
