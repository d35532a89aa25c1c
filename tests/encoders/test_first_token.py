"""cls pooling is refused where a model has no first token that stands for the text."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
    PreTrainedTokenizerFast,
)

from isotrope.cli import main
from isotrope.encoders.causal import make_causal
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError

SHAPE = {"vocab_size": 12, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SMALL = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}


def tokenizer(frame: str, **special: str) -> PreTrainedTokenizerFast:
    """Nine words; ``frame`` is what stands around a text, such as ``<s> $A``."""
    words = Tokenizer(WordLevel({word: number for number, word in enumerate(["<pad>", "<s>", "</s>", *"abcdefghi"])}))
    words.pre_tokenizer = Whitespace()
    words.post_processor = TemplateProcessing(single=frame, special_tokens=[("<s>", 1), ("</s>", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", **special)


def gpt2() -> GPT2Model:
    return GPT2Model(GPT2Config(n_embd=8, n_layer=2, n_head=2, n_positions=32, **SHAPE))


def llama() -> LlamaModel:
    return LlamaModel(LlamaConfig(max_position_embeddings=32, **SHAPE, **SMALL))


def bert() -> BertModel:
    torch.manual_seed(0)
    return BertModel(BertConfig(max_position_embeddings=32, **SHAPE, **SMALL), add_pooling_layer=False)


@pytest.mark.parametrize("pooling", ["cls", "layer:1:cls", "cls+mean"])
@pytest.mark.parametrize(
    ("make", "frame", "said"),
    [
        (gpt2, "$A", "puts none before a text; take mean, or lasttoken"),
        (bert, "$A </s>", "puts none before a text"),  # as T5 frames its texts
        (llama, "<s> $A", "sees no other token, so every text would get the same vector"),
    ],
    ids=["gpt2", "t5", "llama"],
)
def test_a_model_without_a_first_token_is_refused(pooling, make, frame, said):
    with pytest.raises(InputError, match=said):
        Encoder(make(), tokenizer(frame, bos_token="<s>", eos_token="</s>"), pooling)


@pytest.mark.parametrize("pooling", ["mean", "max", "lasttoken", "layer:1", "layer:0:max"])
@pytest.mark.parametrize("make", [gpt2, llama])
def test_the_other_poolings_suit_it(pooling, make):
    encoder = Encoder(make(), tokenizer("$A", eos_token="</s>"), pooling).eval()
    assert encoder.encode(["a b", "b a c"]).shape == (2, 8)


def test_a_bidirectional_model_whose_tokenizer_names_no_cls_token_keeps_it():
    encoder = Encoder(bert(), tokenizer("<s> $A </s>"), "layer:1:cls").eval()
    first, second = encoder.encode(["a b", "a c"])
    assert abs(first - second).max() > 1e-5


def test_roberta_has_one(roberta: Path):
    assert load(roberta, pooling="cls").pooling.name == "cls"


def test_a_model_that_was_made_causal_has_none(fresh, tmp_path):
    encoder = fresh()
    make_causal(encoder)
    encoder.save(tmp_path / "model")
    assert load(tmp_path / "model", pooling="lasttoken").causal
    with pytest.raises(InputError, match="every text would get the same vector"):
        load(tmp_path / "model", pooling="cls")


@pytest.mark.parametrize(
    ("pooling", "said"),
    [("layer:1:cls", "take mean, or lasttoken"), ("layer:3", "this model has the layers 0 (embeddings) to 2")],
)
def test_the_command_says_it_in_one_sentence(pooling, said, tmp_path, capsys):
    gpt2().save_pretrained(tmp_path / "gpt2")
    tokenizer("$A", eos_token="</s>").save_pretrained(tmp_path / "gpt2")
    (tmp_path / "text.txt").write_text("a b\nb c\nc d\n", encoding="utf-8")
    arguments = ["evaluate", str(tmp_path / "gpt2"), "--suite", "geometry", "--text", str(tmp_path / "text.txt")]
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--pooling", pooling])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err
