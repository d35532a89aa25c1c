"""States of tokens: those of a plain forward, of all of a long text, without frame and prompt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders import token_states as room
from isotrope.encoders.token_states import token_states, windows, word_states
from isotrope.errors import InputError

TEXTS = ["the chef bakes the bread", "", "the sailor steers the boat across the windy bay with anchor and mast"]


def plain(encoder: isotrope.Encoder, text: str, prompt: str = "") -> np.ndarray:
    """The states of transformers' model between the frame and the prompt; unit rows."""
    ids = encoder.tokenizer(prompt + text, return_tensors="pt")
    start = 1 + len(encoder.tokenizer(prompt, add_special_tokens=False)["input_ids"]) if prompt else 1
    with torch.inference_mode():
        states = encoder.backbone.eval()(**ids).last_hidden_state[0, start:-1]
    return torch.nn.functional.normalize(states, dim=-1).numpy()


def test_states_are_those_of_a_plain_forward(tiny: Path) -> None:
    encoder = isotrope.load(tiny)
    encoder.train()
    found = token_states(encoder, TEXTS)
    assert encoder.training
    for text, tokens in zip(TEXTS, found, strict=True):
        assert tokens.ids.tolist() == encoder.tokenizer(text, add_special_tokens=False)["input_ids"]
        np.testing.assert_allclose(tokens.states, plain(encoder, text).reshape(-1, encoder.width), atol=2e-3)
    assert found[1].states.shape == (0, encoder.width)
    assert token_states(encoder, []) == []


def test_the_prompt_is_read_and_has_no_row(tiny: Path) -> None:
    encoder = isotrope.load(tiny)
    (bare,), (prompted,) = token_states(encoder, TEXTS[:1]), token_states(encoder.with_prompt("the pilot "), TEXTS[:1])
    assert prompted.ids.tolist() == bare.ids.tolist()
    np.testing.assert_allclose(prompted.states, plain(encoder, TEXTS[0], "the pilot "), atol=2e-3)
    assert not np.allclose(prompted.states, bare.states, atol=1e-2)


def test_a_long_text_is_read_in_windows(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rows as tokens; each window is a row of its own; beyond the longest text nothing is read."""
    encoder = isotrope.load(tiny)
    text = " ".join(f"boat {number} steers" for number in range(80))
    (found,) = token_states(encoder, [text])
    ids = encoder.tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(ids) > 2 * encoder.max_length
    assert found.ids.tolist() == ids
    assert len(found.states) == len(ids)
    last = windows(found.ids, encoder.max_length - 2)[-1]
    with torch.inference_mode():
        framed = torch.tensor([[*encoder.text_tokenizer.start, *last.tolist(), *encoder.text_tokenizer.suffix]])
        states = encoder.backbone.eval()(input_ids=framed).last_hidden_state[0, 1:-1]
    expected = torch.nn.functional.normalize(states, dim=-1).numpy()
    np.testing.assert_allclose(found.states[-len(last) :], expected, atol=2e-3)
    monkeypatch.setattr(room, "LONGEST", 70)
    assert len(token_states(encoder, [text])[0].states) == 70


def test_windows_are_of_equal_length_and_lose_nothing() -> None:
    ids = np.arange(131, dtype=np.int32)
    found = windows(ids, 50)
    assert [len(window) for window in found] == [44, 44, 43]
    assert np.concatenate(found).tolist() == ids.tolist()
    assert windows(ids[:0], 50) == []


def test_words_are_input_embeddings_and_a_table_has_no_other_states() -> None:
    static = isotrope.load("builtin-static")
    (tokens,) = token_states(static, ["remove a file"])
    np.testing.assert_allclose(word_states(static, tokens.ids), tokens.states, atol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(tokens.states.astype(np.float32), axis=1), 1, atol=2e-3)


def test_an_exported_model_has_none(tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    isotrope.export(tiny, tmp_path / "exported")
    with pytest.raises(InputError, match="gives sentence vectors only"):
        token_states(isotrope.load(tmp_path / "exported"), TEXTS)
