"""Families that people start from today: ModernBERT, Qwen3, and T5, whose encoder is taken alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")  # one or two steps

TEXTS = ["A man is playing a guitar on a stage.", "Two dogs run.", "a", "The film was long, and nobody left early."]
SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


def modernbert(size: int) -> Any:
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    marks = {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    return ModernBertForMaskedLM(ModernBertConfig(**SHAPE, **marks, vocab_size=size, local_attention=8))


def qwen3(size: int) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return Qwen3ForCausalLM(Qwen3Config(**SHAPE, vocab_size=size, num_key_value_heads=1, head_dim=16))


def t5(size: int) -> Any:
    from transformers import T5Config, T5ForConditionalGeneration

    shape = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    return T5ForConditionalGeneration(T5Config(**shape, vocab_size=size, decoder_start_token_id=0))


def bart(size: int) -> Any:
    from transformers import BartConfig, BartForConditionalGeneration

    shape = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1}
    return BartForConditionalGeneration(BartConfig(**shape, vocab_size=size, pad_token_id=0))


@pytest.fixture
def folder(tmp_path: Path, tiny: Path, request: pytest.FixtureRequest) -> Path:
    """A folder as a hub has it: the weights with their language head, and a tokenizer."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    make: Callable[[int], Any] = request.param
    torch.manual_seed(0)
    make(len(tokenizer)).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("folder", [modernbert, qwen3, t5], indirect=True)
def test_a_text_has_the_same_vector_alone_in_a_batch_saved_and_elsewhere(folder: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = isotrope.load(folder, device="cpu")
    vectors = encoder.encode(TEXTS)
    assert np.allclose(vectors, [encoder.encode(text) for text in TEXTS], atol=1e-5)
    assert len(np.unique(vectors.round(4), axis=0)) == len(TEXTS)
    encoder.save(tmp_path / "saved")
    assert np.allclose(vectors, isotrope.load(tmp_path / "saved", device="cpu").encode(TEXTS), atol=1e-6)
    elsewhere = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert np.allclose(vectors, elsewhere.encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize("folder", [modernbert, qwen3, t5], indirect=True)
@pytest.mark.parametrize("method", ["simcse", "moco", "sg-opt"])
def test_they_are_trained(folder: Path, tmp_path: Path, method: str) -> None:
    texts = [f"{text} It is the {number}th." for number in range(8) for text in TEXTS]
    terms = {"max_steps": 2, "batch_size": 8, "held_out": 8, "eval_steps": 2}
    run = isotrope.train(method, texts, model=str(folder), output=tmp_path / "run", **terms)
    start = isotrope.load(folder, device="cpu", pooling=run.encoder.pooling.name)
    assert not np.allclose(run.encoder.encode(TEXTS), start.encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize("folder", [t5], indirect=True)
def test_the_encoder_of_a_t5_is_taken_without_its_decoder(folder: Path) -> None:
    from transformers import AutoTokenizer, T5EncoderModel

    rows = AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
    mask = rows["attention_mask"].unsqueeze(2)
    with torch.no_grad():
        model = T5EncoderModel.from_pretrained(folder).eval()
        states = model(rows["input_ids"], rows["attention_mask"]).last_hidden_state
    means = (states * mask).sum(1) / mask.sum(1)
    assert np.allclose(means, isotrope.load(folder, device="cpu").encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize("folder", [t5], indirect=True)
def test_a_t5_has_no_language_head_of_its_encoder(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs a model with a masked-language head"):
        isotrope.train("mlm", TEXTS * 8, model=str(folder), output=tmp_path / "run", max_steps=1)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("folder", [bart], indirect=True)
def test_other_encoder_decoders_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"bart is an encoder-decoder.*or a T5"):
        isotrope.load(folder)


@pytest.mark.parametrize("folder", [modernbert], indirect=True)
def test_a_refused_tie_names_the_setting_that_helps(folder: Path, tmp_path: Path) -> None:
    terms = {"max_steps": 1, "batch_size": 4, "held_out": 4}
    with pytest.raises(InputError, match="set tie_weights false"):
        isotrope.train("tsdae", TEXTS * 4, model=str(folder), output=tmp_path / "tied", **terms)
    isotrope.train("tsdae", TEXTS * 4, model=str(folder), output=tmp_path / "free", tie_weights=False, **terms)
