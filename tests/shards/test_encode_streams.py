"""``encode`` block by block: the same vectors as at once, in every precision, whatever the block."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.encoders.precision import quantize, ranges_of
from isotrope.errors import InputError


@pytest.fixture
def text(tmp_path: Path, topics: list[str]) -> Path:
    file = tmp_path / "text.txt"
    file.write_text("\n".join("" if number % 7 == 3 else line for number, line in enumerate(topics[:60])) + "\n")
    return file


@pytest.fixture
def sentences(text: Path) -> list[str]:
    return [line for line in text.read_text().splitlines() if line]


@pytest.mark.parametrize("size", [1, 8, 1000])
def test_the_vectors_of_every_precision(
    tiny: Path, text: Path, sentences: list[str], size: int, tmp_path: Path
) -> None:
    vectors = isotrope.load(tiny, device="cpu").encode(sentences)
    for precision in ("float32", "int8", "binary"):
        place = tmp_path / f"{precision}.npy"
        answer = isotrope.encode(tiny, text, place, precision=precision, shard_size=size)
        found = np.load(place)
        assert (answer.sentences, answer.dimension, answer.empty_left_out) == (len(sentences), vectors.shape[1], 9)
        if precision == "float32":
            assert np.abs(found - vectors).max() < 1e-5
            floats = found
        else:
            ranges = ranges_of(floats) if precision == "int8" else None
            assert np.array_equal(found, quantize(floats, precision, ranges))
    assert np.array_equal(np.load(tmp_path / "int8.ranges.npy"), ranges_of(floats))


def test_a_file_without_sentences_is_refused_and_leaves_nothing(tiny: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n \n")
    with pytest.raises(InputError, match="no sentences found"):
        isotrope.encode(tiny, empty, tmp_path / "new" / "v.npy")
    assert not (tmp_path / "new").exists()


def test_a_bad_line_far_behind_leaves_nothing(tiny: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"a line\n" * 30 + b"\xff\n")
    with pytest.raises(InputError, match=r"bad\.txt:31"):
        isotrope.encode(tiny, bad, tmp_path / "v.npy", shard_size=4)
    assert [file.name for file in tmp_path.iterdir()] == ["bad.txt"]


def test_somewhere_to_write_is_needed(tiny: Path, text: Path) -> None:
    with pytest.raises(InputError, match="encode needs output"):
        isotrope.encode(tiny, text)
