"""Small models with random weights, and sentence-transformers as the judge of what a folder means."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.fresh import fresh_encoder

WORDS = """the a one cat dog river stone bread morning light old small quick brown green walks eats sees finds writes
paints under over near beside house garden school music paper glass winter summer friend teacher quietly gladly never
often xylophone zebra jumping""".split()


def make_sentences(count: int, seed: int = 0) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choice(WORDS) for _ in range(dice.randint(2, 20))) for _ in range(count)]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Tiny models spend their time waking threads, most of all where others use the machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Short and long, cut and whole, empty, unknown letters, blanks at both ends."""
    odd = ["", "Zebra", "  two blanks at each end  ", "ÉCOLE 北京 résumé!", " ".join(WORDS * 3), "the [SEP] cat"]
    return make_sentences(12, seed=1) + odd


@pytest.fixture(scope="session")
def fresh() -> Callable[[], Encoder]:
    """A new tiny BERT at each call, with the same weights each time."""
    return lambda: fresh_encoder(make_sentences(200), vocabulary=400, layers=3, width=32, heads=4, max_length=48).eval()


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory, fresh: Callable[[], Encoder]) -> Path:
    """A plain Hugging Face folder: a BERT of 48 positions, nothing of sentence-transformers."""
    folder = tmp_path_factory.mktemp("encoders") / "bert"
    encoder = fresh()
    encoder.backbone.save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain Hugging Face folder:

    a RoBERTa whose 66 positions leave room for 64 tokens, and whose tokenizer states no limit.
    """
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import AutoTokenizer, RobertaConfig, RobertaModel

    folder = tmp_path_factory.mktemp("encoders") / "roberta"
    pieces = ByteLevelBPETokenizer()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces.train_from_iterator(
        make_sentences(200), vocab_size=400, min_frequency=1, special_tokens=specials, show_progress=False
    )
    vocabulary, merges = pieces._tokenizer.get_vocab(), tmp_path_factory.mktemp("merges")
    pieces.save_model(str(merges))
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = RobertaConfig(
        vocab_size=len(vocabulary), max_position_embeddings=66, pad_token_id=1, bos_token_id=0, eos_token_id=2, **shape
    )
    config.save_pretrained(merges)  # by the config AutoTokenizer knows the class, on every transformers 5
    RobertaModel(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(merges).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def vectors_elsewhere() -> Callable[[Path, list[str]], Any]:
    """What sentence-transformers makes of a folder, without remote code."""
    from sentence_transformers import SentenceTransformer

    def vectors(folder: Path, texts: list[str]) -> np.ndarray:
        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True, trust_remote_code=False)
        return model.encode(texts, batch_size=4)

    return vectors
