"""Models that are not BERT: their language heads, their embeddings, and a causal model of its own."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import open_corpus
from isotrope.encoders.language_head import vocabulary_scores
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.towers.generator import Generator

FAMILIES = ("albert", "deberta-v2", "deberta-v3", "distilbert", "electra")
TEXTS = ["the chef bakes the bread", "the sailor steers", "salt", ""]
FEW: dict[str, Any] = {"max_steps": 3, "batch_size": 8, "eval_steps": 3, "learning_rate": 1e-3}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_head_gives_the_scores_of_the_whole_model(family: str, model_folders: dict[str, Path]) -> None:
    encoder = load(model_folders[family], device="cpu", language_head=True)
    scores, parts = vocabulary_scores(encoder.language_model)
    tokens = encoder.tokenize(TEXTS[:2])
    with torch.no_grad():
        expected = encoder.language_model(input_ids=tokens.ids, attention_mask=tokens.mask).logits
        found = scores(encoder.states(tokens).flatten(0, 1)).view_as(expected)
    assert torch.allclose(found, expected, atol=1e-5)
    assert len(list(parts.parameters())) >= 4


@pytest.mark.parametrize("family", FAMILIES)
def test_the_generator_reads_the_table_and_knows_positions(family: str, model_folders: dict[str, Path]) -> None:
    encoder = load(model_folders[family], device="cpu")
    torch.manual_seed(0)
    generator = Generator(encoder, 0.5).eval()
    assert generator.width == 16
    table = encoder.backbone.embeddings.word_embeddings
    assert generator.model.generator_lm_head.weight is table.weight
    ids = torch.tensor([[5, 60, 70, 80, 6]])
    mask, asked = torch.ones_like(ids), torch.tensor([2])
    with torch.no_grad():
        plain = generator(ids, mask, asked)
        swapped = generator(ids[:, [0, 3, 2, 1, 4]], mask, asked)
        padded = generator(torch.cat([ids, ids.new_zeros(1, 3)], 1), torch.tensor([[1] * 5 + [0] * 3]), asked)
    assert plain.shape == (1, table.num_embeddings)
    assert not torch.allclose(plain, swapped, atol=1e-6)
    assert torch.allclose(plain, padded, atol=1e-5)


@pytest.mark.parametrize("method", ["rtd", "mlm"])
@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_is_trained_saved_and_loaded(
    family: str, method: str, model_folders: dict[str, Path], sentences: Path, tmp_path: Path
) -> None:
    run = isotrope.train(method, sentences, model=model_folders[family], output=tmp_path / "run", **FEW)
    again = isotrope.load(tmp_path / "run" / "model", device="cpu")
    assert np.isfinite(again.encode(TEXTS)).all()
    assert np.allclose(again.encode(TEXTS), run.encoder.encode(TEXTS), atol=1e-5)
    start = isotrope.load(model_folders[family], device="cpu")
    assert not np.allclose(again.encode(TEXTS), start.encode(TEXTS), atol=1e-3)


def test_gpt2_is_trained_as_the_causal_model_it_is(gpt2: Path, sentences: Path, tmp_path: Path) -> None:
    """Its own head learns: a uniform guess costs log 320, and a trained one less."""
    from sentence_transformers import SentenceTransformer

    run = isotrope.train(
        "clm", sentences, model=gpt2, output=tmp_path / "run", **{**FEW, "max_steps": 30, "learning_rate": 3e-3}
    )
    figures = [line["evaluation"]["clm_perplexity"] for line in run.history if "evaluation" in line]
    assert math.log(figures[-1]) < 0.8 * math.log(figures[0])
    folder = tmp_path / "run" / "model"
    again = load(folder, device="cpu", language_head=True)
    assert again.causal
    assert type(again.language_model).__name__ == "GPT2LMHeadModel"
    vectors = again.encode(TEXTS)
    assert np.isfinite(vectors).all()
    assert np.allclose(vectors, run.encoder.encode(TEXTS), atol=1e-5)
    assert np.allclose(vectors[:3], [again.encode(text) for text in TEXTS[:3]], atol=1e-5)  # padding changes nothing
    elsewhere = SentenceTransformer(str(folder), device="cpu").encode(TEXTS[:3])
    assert np.allclose(vectors[:3], elsewhere, atol=1e-5)


def test_gpt2_pads_with_the_token_that_ends_a_text(gpt2: Path, tmp_path: Path, sentences: Path) -> None:
    encoder = load(gpt2, device="cpu")
    assert encoder.text_tokenizer.pad == encoder.tokenizer.eos_token_id
    assert (encoder.text_tokenizer.prefix, encoder.text_tokenizer.suffix) == ([], [])
    encoder.save(tmp_path / "saved")
    assert load(tmp_path / "saved", device="cpu").text_tokenizer.fingerprint() == encoder.text_tokenizer.fingerprint()
    corpus = open_corpus(sentences, ["documents"], encoder.text_tokenizer)
    whole = " ".join(corpus.text(row) for row in corpus.document(0))
    assert corpus.joined(0).tolist() == encoder.tokenizer(whole)["input_ids"]


@pytest.mark.parametrize("method", ["mlm", "rtd"])
def test_a_causal_model_has_nothing_to_mask_with(gpt2: Path, method: str, sentences: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\[MASK\]"):
        isotrope.train(method, sentences, model=gpt2, output=tmp_path / "run", **FEW)


def test_a_decoder_learns_from_gpt2s_vectors_too(gpt2: Path, sentences: Path, tmp_path: Path) -> None:
    run = isotrope.train("skip-thought", sentences, model=gpt2, output=tmp_path / "run", **FEW)
    assert np.isfinite(run.encoder.encode(TEXTS)).all()
