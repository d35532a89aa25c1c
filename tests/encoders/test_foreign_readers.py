"""What other readers find in our folders: no weight that is missing, and a token to pad with."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError


def test_sentence_transformers_looks_for_no_pooler(
    tiny: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sentence_transformers", reason="the test extra has it")
    from sentence_transformers import SentenceTransformer

    ours = isotrope.load(tiny, device="cpu")
    ours.save(tmp_path / "saved")
    facts = json.loads((tmp_path / "saved" / "sentence_bert_config.json").read_text(encoding="utf-8"))
    assert facts["model_args"] == {"add_pooling_layer": False}
    logging.getLogger("transformers").setLevel(logging.WARNING)
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    said = "".join(capfd.readouterr())
    assert "pooler" not in said
    assert not [name for name in theirs.state_dict() if "pooler" in name]
    assert np.allclose(theirs.encode(["a text"]), ours.encode(["a text"]), atol=1e-5)


def test_a_model_that_never_had_a_pooler_is_told_nothing_of_it(model_folders: dict[str, Path], tmp_path: Path) -> None:
    isotrope.load(model_folders["distilbert"], device="cpu").save(tmp_path / "saved")
    facts = json.loads((tmp_path / "saved" / "sentence_bert_config.json").read_text(encoding="utf-8"))
    assert "model_args" not in facts


def test_a_tokenizer_without_any_special_token_is_refused(tmp_path: Path) -> None:
    """Padding would have to be a word."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import GPT2Config, GPT2Model, PreTrainedTokenizerFast

    words = Tokenizer(WordLevel({"a": 0, "b": 1}, unk_token="a"))
    words.pre_tokenizer = Whitespace()
    shape = {"n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 16, "vocab_size": 2}
    GPT2Model(GPT2Config(**shape, bos_token_id=None, eos_token_id=None)).save_pretrained(tmp_path / "gpt2")
    PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(tmp_path / "gpt2")
    with pytest.raises(InputError, match=r"no padding token.*pad_token"):
        isotrope.load(tmp_path / "gpt2", device="cpu")
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="a").save_pretrained(tmp_path / "gpt2")
    isotrope.load(tmp_path / "gpt2", device="cpu").save(tmp_path / "saved")
    kept = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert kept["pad_token"] == "a"
