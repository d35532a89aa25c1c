"""A model whose vectors are no numbers is refused by every verb that would show or store them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import isotrope
from isotrope.cli import main
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.search.kept_index import kept_index

WORDS = "NaN or infinite vectors"


@pytest.fixture
def broken(bert: Path, tmp_path: Path) -> Path:
    """A folder with NaN in one bias."""
    folder = shutil.copytree(bert, tmp_path / "broken")
    tensors = load_file(folder / "model.safetensors")
    tensors["encoder.layer.1.output.dense.bias"][3] = float("nan")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"the cat walks {number}\n" for number in range(40)))
    return path


def test_encode_refuses(broken: Path) -> None:
    with pytest.raises(InputError, match=rf"{WORDS} for 1 of 1 texts, such as 'the cat'.*take an earlier checkpoint"):
        load(broken).encode("the cat")


def test_one_row_of_many_is_enough(bert: Path) -> None:
    """Only the batch with the word meets the NaN; it comes last, since long texts come first."""
    encoder = load(bert)
    word = int(encoder.tokenizer("zebra", add_special_tokens=False)["input_ids"][0])
    with torch.no_grad():
        encoder.backbone.get_input_embeddings().weight[word] = float("inf")
    fine = [f"the old dog eats the bread {number}" for number in range(300)]
    assert np.isfinite(encoder.encode(fine)).all()
    with pytest.raises(InputError, match="such as 'zebra'"):
        encoder.encode([*fine, "zebra"], batch_size=16)


def test_no_file_is_written(broken: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(tmp_path.rglob("*"))
    for words in (
        ["encode", str(broken), str(text), "--output", str(tmp_path / "v.npy")],
        ["search", str(broken), str(text), "the cat", "--json"],
        ["fit-space", "whitening", str(broken), str(text), "--output", str(tmp_path / "space")],
        ["fit-space", "sif", str(broken), str(text), "--output", str(tmp_path / "space")],
        ["fit-space", "sbert-wk", str(broken), str(text), "--output", str(tmp_path / "space"), "--first-layer", "1"],
        ["fit-space", "t-sne", str(broken), str(text), "--output", str(tmp_path / "points.tsv"), "--perplexity", "5"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        said = capsys.readouterr()
        assert ended.value.code == 2, words
        assert "NaN" in said.err
        assert said.out == ""
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_similarity_takes_no_such_vectors(bert: Path, value: float) -> None:
    encoder = load(bert)
    vectors = np.ones((3, 32), dtype=np.float32)
    vectors[1, 5] = value
    with pytest.raises(InputError, match="1 of 3 vectors hold NaN or infinity, the first in row 1"):
        encoder.similarity("the cat", vectors)


def test_stored_vectors_of_nan_are_made_anew(bert: Path, text: Path) -> None:
    encoder = load(bert)
    before = kept_index(encoder, text).search("the cat", mode="dense")
    (place,) = text.with_name(text.name + ".isotrope").rglob("vectors.npy")
    vectors = np.load(place)
    vectors[3] = np.nan
    np.save(place, vectors)
    assert kept_index(encoder, text).search("the cat", mode="dense") == before
    assert np.isfinite(np.load(next(text.with_name(text.name + ".isotrope").rglob("vectors.npy")))).all()


def test_training_from_it_ends_in_a_sentence(broken: Path, text: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=WORDS):
        isotrope.train("simcse", text, model=broken, output=tmp_path / "run", max_steps=2, batch_size=8, held_out=8)


def test_an_encoder_of_another_class_is_checked_by_the_index(bert: Path, text: Path) -> None:
    class Odd(Encoder):
        def encode(self, texts, **named):  # type: ignore[no-untyped-def]
            return np.full((len(texts), 32), np.nan, dtype=np.float32)

    found = load(bert)
    found.__class__ = Odd
    with pytest.raises(InputError, match="hold NaN"):
        kept_index(found, text)
