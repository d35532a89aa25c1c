"""Folders of tiny models of many families, with random weights and their own language head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from isotrope.tokens.text_tokenizer import TextTokenizer

SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def families(vocabulary: int) -> dict[str, Any]:
    """By name, a model of each family; small embeddings and relative positions as the released ones have them."""
    from transformers import (
        AlbertConfig,
        AlbertForMaskedLM,
        DebertaV2Config,
        DebertaV2ForMaskedLM,
        DistilBertConfig,
        DistilBertForMaskedLM,
        ElectraConfig,
        ElectraForMaskedLM,
    )

    shape: dict[str, Any] = {**SHAPE, "vocab_size": vocabulary, "pad_token_id": 0}
    relative = {"relative_attention": True, "position_buckets": 16, "pos_att_type": ["p2c", "c2p"]}
    v3 = {**relative, "position_biased_input": False, "type_vocab_size": 0, "share_att_key": True}
    return {
        "albert": lambda: AlbertForMaskedLM(AlbertConfig(**shape, embedding_size=16)),
        "deberta-v2": lambda: DebertaV2ForMaskedLM(DebertaV2Config(**shape, **relative)),
        "deberta-v3": lambda: DebertaV2ForMaskedLM(DebertaV2Config(**shape, **v3, legacy=False)),
        "distilbert": lambda: DistilBertForMaskedLM(
            DistilBertConfig(
                vocab_size=vocabulary, dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=64
            )
        ),
        "electra": lambda: ElectraForMaskedLM(ElectraConfig(**shape, embedding_size=16)),
    }


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> dict[str, Path]:
    """By family, a plain Hugging Face folder with the tiny encoder's tokenizer."""
    from transformers import AutoTokenizer

    tokenizer, folders = AutoTokenizer.from_pretrained(tiny), {}
    for name, make in families(len(tokenizer)).items():
        folders[name] = tmp_path_factory.mktemp("families") / name
        torch.manual_seed(0)
        make().save_pretrained(folders[name])
        tokenizer.save_pretrained(folders[name])
    return folders


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory, byte_tokenizer: TextTokenizer) -> Path:
    """A GPT-2 with its language head, whose tokenizer has no padding token and frames nothing."""
    from transformers import GPT2Config, GPT2LMHeadModel, GPT2TokenizerFast

    folder, pieces = tmp_path_factory.mktemp("families") / "gpt2", tmp_path_factory.mktemp("gpt2-pieces")
    byte_tokenizer.tokenizer.save_pretrained(pieces)
    own = byte_tokenizer.tokenizer.backend_tokenizer
    own.model.save(str(pieces))
    tokenizer = GPT2TokenizerFast(
        vocab=str(pieces / "vocab.json"),
        merges=str(pieces / "merges.txt"),
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
    )
    torch.manual_seed(0)
    size = byte_tokenizer.vocabulary
    GPT2LMHeadModel(
        GPT2Config(vocab_size=size, n_embd=32, n_layer=2, n_head=2, n_positions=64, bos_token_id=0, eos_token_id=2)
    ).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
