"""max_length: refused where no text fits, said where it is more than the model reads or cuts texts."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import isotrope
from isotrope.errors import InputError


@pytest.mark.parametrize("max_length", [1, 2])
@pytest.mark.parametrize("method", ["simcse", "mlm"])
def test_a_length_that_special_tokens_fill_is_refused(
    tiny: Path, sentences: Path, tmp_path: Path, method: str, max_length: int
) -> None:
    with pytest.raises(InputError, match="max_length must be at least 3"):
        isotrope.train(method, sentences, tiny, tmp_path / "run", max_length=max_length, max_steps=1, batch_size=8)
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_cut_texts_and_missing_positions_are_said(
    tiny: Path, sentences: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    short = {"max_steps": 1, "batch_size": 8, "held_out": 16}
    with caplog.at_level(logging.INFO, "isotrope"):
        isotrope.train("simcse", sentences, tiny, tmp_path / "one", max_length=8, **short)
        assert "400 of 400 texts (100.0%) are longer than 8 tokens and are cut" in caplog.text
        caplog.clear()
        isotrope.train("simcse", sentences, tiny, tmp_path / "two", max_length=500, **short)
        assert "max_length 500 is more than the model reads; texts are cut at 64 tokens" in caplog.text
        assert "are longer than" not in caplog.text
        caplog.clear()
        isotrope.train("simcse", sentences, tiny, tmp_path / "three", max_length=64, **short)
        assert "max_length" not in caplog.text
