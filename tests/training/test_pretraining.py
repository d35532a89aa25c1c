"""Pre-training from nothing: full rows, masks at a fixed count, resume, and sentences for text that will not do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.packing import pack, read_sentences
from isotrope.errors import InputError

SMALL: dict[str, Any] = {
    "vocabulary": 300, "layers": 2, "width": 32, "heads": 2, "length": 32, "batch_size": 16, "steps": 12, "warmup_steps": 2,
    "save_steps": 6, "logging_steps": 3, "learning_rate": 3e-3,
}  # fmt: skip


@pytest.fixture
def text(tmp_path: Path, topics: list[str]) -> Path:
    """A file of 600 documents of two sentences."""
    lines = topics
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join("\n".join(lines[i : i + 2]) for i in range(0, 1200, 2)) + "\n", encoding="utf-8")
    return path


def test_rows_are_full_and_hold_the_text_in_order(tiny: Path, text: Path) -> None:
    tokeniser = isotrope.load(tiny).tokeniser
    start, stop = tokeniser.prefix[0], tokeniser.suffix[0]
    packed = pack([text], tokeniser.flat, tokeniser.fingerprint(), tokeniser.vocabulary, start, stop, 32)
    assert (packed.documents, packed.sentences) == (600, 1200)
    for rows in (packed.train, packed.held):
        assert rows.shape[1] == 32
        assert (rows[:, 0] == start).all()
        assert (rows[:, -1] == stop).all()
        assert tokeniser.pad not in rows
    body = packed.train[:, 1:-1].flatten()
    expected: list[int] = []
    last = -1
    for record in read_sentences([text]):
        if record.document % 200 == 199:
            continue  # held out
        if record.document != last:
            expected.append(stop)
            last = record.document
        expected.extend(tokeniser.flat([record.texts[0]])[0].tolist())
    assert body.tolist() == expected[: len(body)]
    assert len(expected) - len(body) < 30  # only what fills no row is left out


def test_documents_are_numbered_through_several_files(tmp_path: Path) -> None:
    for name, content in (("a.txt", "one\ntwo\n\nthree\n"), ("b.txt", "four\n\nfive\n")):
        (tmp_path / name).write_text(content)
    found = [(record.texts[0], record.document) for record in read_sentences([tmp_path / "a.txt", tmp_path / "b.txt"])]
    assert found == [("one", 0), ("two", 0), ("three", 1), ("four", 2), ("five", 3)]


def test_it_learns_and_the_folder_is_a_plain_masked_language_model(text: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM

    encoder = isotrope.pretrain([text], tmp_path / "run", **{**SMALL, "steps": 60, "warmup_steps": 5, "save_steps": 30})
    assert encoder is not None
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    held = [line["held_out_loss"] for line in lines if "held_out_loss" in line]
    assert losses[-1] < 0.8 * losses[0]
    assert held[-1] < held[0]
    assert all(line["tokens_per_second"] > 0 for line in lines if "loss" in line)
    again, report = AutoModelForMaskedLM.from_pretrained(tmp_path / "run" / "model", output_loading_info=True)
    assert not report["missing_keys"]
    assert again.config.hidden_dropout_prob == 0.1
    texts = ["the chef bakes the bread", "the pilot lands"]
    assert np.allclose(isotrope.load(tmp_path / "run" / "model").encode(texts), encoder.encode(texts), atol=1e-5)


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_a_run_cut_into_pieces_equals_a_run_in_one(text: Path, tmp_path: Path, optimiser: str) -> None:
    settings = {**SMALL, "optimiser": optimiser}
    whole = isotrope.pretrain([text], tmp_path / "whole", **settings)
    assert isotrope.pretrain([text], tmp_path / "cut", **{**settings, "minutes": 1e-9}) is None  # out of time after one step
    assert not (tmp_path / "cut" / "model").exists()
    resumed = isotrope.pretrain([text], tmp_path / "cut", resume=True, **settings)
    assert whole is not None
    assert resumed is not None
    for (name, first), second in zip(whole.named_parameters(), resumed.parameters(), strict=True):
        assert torch.equal(first, second), name


def test_another_models_vocabulary_can_be_taken(text: Path, tiny: Path, tmp_path: Path) -> None:
    encoder = isotrope.pretrain([text], tmp_path / "run", tokenizer=tiny, **{**SMALL, "vocabulary": 123, "steps": 3, "warmup_steps": 1})
    assert encoder is not None
    assert encoder.tokeniser.fingerprint() == isotrope.load(tiny).tokeniser.fingerprint()
    assert encoder.backbone.config.vocab_size == encoder.tokeniser.vocabulary


def test_text_that_will_not_do(text: Path, tmp_path: Path, topics: list[str]) -> None:
    one = tmp_path / "one.txt"
    one.write_text("\n".join(topics[:100]) + "\n")
    with pytest.raises(InputError, match="documents"):
        isotrope.pretrain([one], tmp_path / "a", **{**SMALL, "vocabulary": 100})
    with pytest.raises(InputError, match="pieces, and 5,000 were asked for"):
        isotrope.pretrain([text], tmp_path / "v", **{**SMALL, "vocabulary": 5000})
    letters = tmp_path / "letters.txt"
    letters.write_text("a b\n\nb a\n")
    with pytest.raises(InputError, match="too small"):
        isotrope.pretrain([letters], tmp_path / "b", **SMALL)
    with pytest.raises(InputError, match="fewer than batch_size"):
        isotrope.pretrain([text], tmp_path / "c", **{**SMALL, "batch_size": 100_000})


def test_resume_with_another_shape_or_text_is_refused(text: Path, tmp_path: Path) -> None:
    isotrope.pretrain([text], tmp_path / "run", **{**SMALL, "steps": 3, "warmup_steps": 1})
    with pytest.raises(InputError, match="width was 32 and is 64"):
        isotrope.pretrain([text], tmp_path / "run", resume=True, **{**SMALL, "width": 64})
    with pytest.raises(InputError, match="vocabulary was 300 and is 200"):
        isotrope.pretrain([text], tmp_path / "run", resume=True, **{**SMALL, "steps": 3, "warmup_steps": 1, "vocabulary": 200})
    with pytest.raises(InputError, match="no run to resume"):
        isotrope.pretrain([text], tmp_path / "nothing", resume=True, **SMALL)


@pytest.mark.parametrize(
    ("name", "value"),
    [("heads", 3), ("mask_rate", 1.0), ("warmup_steps", 12), ("learning_rate", 0), ("length", 4), ("steps", 0), ("optimiser", 1)],
)
def test_settings_that_cannot_work_are_refused(text: Path, tmp_path: Path, name: str, value: float) -> None:
    with pytest.raises(InputError, match=name):
        isotrope.pretrain([text], tmp_path / "run", **{**SMALL, name: value})
