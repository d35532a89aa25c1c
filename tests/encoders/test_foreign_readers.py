"""What other readers find in our folders: no weight that is missing, and a token to pad with."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize("pooling", ["mean", "max", "lasttoken", "weightedmean"])
def test_a_tokenizer_that_pads_on_the_left_moves_no_position(
    pooling: str, gpt2: Path, tmp_path: Path, vectors_elsewhere: Callable[[Path, list[str]], Any]
) -> None:
    """GPT-2 counts positions from the left of a row, padding included."""
    folder = shutil.copytree(gpt2, tmp_path / "left")
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "padding_side": "left"}))
    encoder = isotrope.load(folder, pooling=pooling, device="cpu")
    texts = ["the cat", "one", "a dog and a cat on the river", "the old house near the garden"]
    encoder.save(tmp_path / "saved")
    assert encoder.tokenizer.padding_side == "left"
    np.testing.assert_allclose(vectors_elsewhere(tmp_path / "saved", texts), encoder.encode(texts), atol=1e-5)
    assert not encoder.encode(["", "a"])[0].any()  # nothing frames a text here


def test_a_tokenizer_that_keeps_the_end_of_a_long_text_is_refused(bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "left")
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "truncation_side": "left"}))
    with pytest.raises(InputError, match=r"tokenizer_config\.json: truncation_side is left"):
        isotrope.load(folder, device="cpu")


def test_a_model_without_a_table_of_positions_reads_as_far_as_its_folder_says(bert: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer, XLNetConfig, XLNetModel

    tokenizer = AutoTokenizer.from_pretrained(bert, model_max_length=1 << 60)
    shape = {"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 16}
    XLNetModel(XLNetConfig(vocab_size=len(tokenizer), **shape)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert isotrope.load(tmp_path, device="cpu").max_length == 512
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 700}')
    assert isotrope.load(tmp_path, device="cpu").max_length == 700
