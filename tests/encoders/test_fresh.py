"""A new encoder: reproducible, whatever the order of the machine's hash tables."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.encoders.fresh import fresh_encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError

SHAPE = {"vocabulary": 120, "layers": 1, "width": 16, "heads": 2, "max_length": 16}


def sentences() -> list[str]:
    return [f"{a}{b} über {b}{c}, {a}-{c} 北京." for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwxyz"]


def test_the_same_text_and_seed_give_the_same_encoder():
    prints = {fresh_encoder(sentences(), **SHAPE).fingerprint() for _ in range(4)}
    assert len(prints) == 1
    assert fresh_encoder(sentences(), seed=7, **SHAPE).fingerprint() not in prints


def test_the_vocabulary_fits_its_size_and_covers_the_text():
    encoder = fresh_encoder(iter(sentences()), **SHAPE)
    assert encoder.text_tokenizer.vocabulary == encoder.backbone.config.vocab_size <= SHAPE["vocabulary"]
    ids, _ = encoder.text_tokenizer.flat(sentences())
    assert encoder.tokenizer.unk_token_id not in ids
    assert len(encoder.text_tokenizer.specials) == 5  # inner letters are ordinary pieces
    assert (
        encoder.tokenizer.decode(encoder.tokenizer("ai uber iq")["input_ids"], skip_special_tokens=True) == "ai uber iq"
    )


def test_it_survives_its_folder(tmp_path):
    encoder = fresh_encoder(sentences(), **SHAPE).eval()
    encoder.save(tmp_path / "model")
    again = load(tmp_path / "model", language_head=True)
    np.testing.assert_array_equal(again.encode(sentences()[:5]), encoder.encode(sentences()[:5]))
    assert again.fingerprint() == encoder.fingerprint()


def test_too_little_text_is_one_sentence():
    with pytest.raises(InputError, match="too small"):
        fresh_encoder(["ab"], **SHAPE)
