"""Word vectors from a text file: GloVe, word2vec and fastText as encoders, and files that are none."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data import vector_files
from isotrope.errors import InputError

ROWS = {"the": (1, 2, 3), "cat": (0.5, 0.01, -3), "sat": (2, 0, 1), ".": (0, 0, 1), "new": (3, 1, 0), "york": (1, 1, 4)}
GLOVE = "".join(f"{word} {' '.join(map(str, numbers))}\n" for word, numbers in ROWS.items())
Written = Callable[[str, str | bytes], Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def mean(*words: str) -> Any:
    return np.mean([ROWS[word] for word in words], axis=0)


def test_a_vector_is_the_mean_of_the_words_that_the_table_has(written: Written) -> None:
    encoder = isotrope.load(written("glove.txt", GLOVE), device="cpu")
    assert (encoder.dimension, len(encoder.tokenizer)) == (3, 1 + len(ROWS))
    found = encoder.encode(["The cat sat.", "the xylophone sat", "Xylophone!", "", "New-York"])
    expected = [mean("the", "cat", "sat", "."), mean("the", "sat"), (0, 0, 0), (0, 0, 0), mean("new", "york")]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_no_letter_of_an_unknown_word_counts(written: Written) -> None:
    encoder = isotrope.load(written("letters.txt", "a 1 1\nx 2 2\nb 3 3\n"), device="cpu")
    assert encoder.encode(["xab axb ba", "x xab"]).tolist() == [[0, 0], [2, 2]]


@pytest.mark.parametrize("packed", [False, True])
def test_word2vec_and_fasttext_begin_with_two_counts_and_lines_may_end_in_a_blank(
    written: Written, packed: bool
) -> None:
    text = (f"{len(ROWS)} 3\n" + GLOVE.replace("\n", " \n")).encode()
    path = written("wiki.vec.gz", gzip.compress(text)) if packed else written("wiki.vec", text)
    np.testing.assert_allclose(isotrope.load(path, device="cpu").encode("the cat"), mean("the", "cat"), atol=1e-6)


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        (
            ("do", "n't", "cat", "'s", "3.5"),
            "Don't: the CAT'S 3.5 don’t",
            ["do", "n't", "cat", "'s", "3.5", "do", "n't"],
        ),
        (("don't", "cat", "s"), "don't, cat's", ["don't"]),
        (("don", "t", "cat"), "don't cat", ["don", "t", "cat"]),
        (("Cat", "cat", "The"), "The Cat the cat", ["The", "Cat", "cat"]),
        (("北", "京"), "北京", ["北", "京"]),
        (("café",), "Cafe\u0301", ["café"]),
    ],
)
def test_texts_are_cut_and_lowered_as_the_table_is(
    written: Written, words: tuple[str, ...], text: str, expected: list[str]
) -> None:
    encoder = isotrope.load(written("t.txt", "".join(f"{word} 1 2\n" for word in words)), device="cpu")
    assert [token.removeprefix("▁") for token in encoder.tokenizer.tokenize(text)] == expected


def test_the_table_is_read_over_the_borders_of_blocks(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_files, "LINES", 7)
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 5)).astype(np.float32)
    lines = "".join(f"w{i} {' '.join(f'{v:.9g}' for v in row)}\n" for i, row in enumerate(vectors))
    words, table = vector_files.read_word_vectors(written("v.txt", lines), before=2)
    assert words == [f"w{i}" for i in range(50)]
    np.testing.assert_array_equal(table[2:], vectors)
    assert not table[:2].any()


def test_words_with_blanks_are_passed_over(written: Written) -> None:
    words, table = vector_files.read_word_vectors(written("g.txt", "the 1 2\n. . . 3 4\nat name@x.org 5 6\ncat 7 8\n"))
    assert (words, table.tolist()) == (["the", "cat"], [[1, 2], [7, 8]])


def test_of_a_repeated_word_the_first_vector_is_taken(written: Written) -> None:
    path = written("g.txt", "the 1 2\ncat 3 4\nthe 5 6\nthe 7 8\n")
    with pytest.warns(UserWarning, match=r"g\.txt:3: 'the' stood earlier in the file.*2 left out"):
        words, table = vector_files.read_word_vectors(path)
    assert (words, table.tolist()) == (["the", "cat"], [[1, 2], [3, 4]])


def test_every_verb_takes_it(written: Written, sentences: Path, tmp_path: Path) -> None:
    words = sorted({word for line in sentences.read_text().splitlines() for word in line.split()})
    rng = np.random.default_rng(1)
    glove = written("g.txt", "".join(f"{w} {' '.join(f'{v:.4f}' for v in rng.normal(size=8))}\n" for w in words))
    assert isotrope.encode(glove, sentences, tmp_path / "v.npy").dimension == 8
    best = isotrope.search(glove, sentences, "the sailor steers the boat", top=1)[0]
    assert "sailor" in best.text
    for space in ("sif", "whitening"):
        fitted = isotrope.fit_space(space, glove, sentences, tmp_path / space)
        assert fitted.encoder is not None
        np.testing.assert_allclose(
            isotrope.load(tmp_path / space, device="cpu").encode("the old house"),
            fitted.encoder.to("cpu").encode("the old house"),
            atol=1e-5,
        )


def test_a_saved_table_gives_the_same_vectors_here_and_in_sentence_transformers(
    written: Written, vectors_elsewhere: Any, tmp_path: Path
) -> None:
    encoder = isotrope.load(written("glove.txt", GLOVE), device="cpu")
    encoder.save(tmp_path / "model")
    texts = ["The cat sat.", "the xylophone", "xylophone", "new york"]
    np.testing.assert_allclose(isotrope.load(tmp_path / "model", device="cpu").encode(texts), encoder.encode(texts))
    np.testing.assert_allclose(vectors_elsewhere(tmp_path / "model", texts), encoder.encode(texts), atol=1e-6)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (GLOVE + "mat 1 2\n", ":7: 2 numbers, 3 expected."),
        (GLOVE + "mat 1 2 3 4\n", ":7: 4 numbers, 3 expected."),
        ("3 300\nthe 1 2\n", ":2: 2 numbers, 300 expected."),
        ("3 2\nthe 1 2\ncat 1 2\n", "2 vectors found, and the first line says 3; the file is cut short"),
        ("3 2\n", "no vectors found"),
        ("", "the file is empty"),
        (" \n\n", "the file is empty"),
        ("the 1 2\ncat 1 x\n", ":2: a word and numbers with single blanks between them were expected, 'x' found"),
        ("the 1 2\ncat 1 nan\n", ":2: a number is not finite"),
        ("the 1 2\ncat 1 1e60\n", ":2: a number is not finite"),
        ("A sentence of a text.\n", "this is a file, and line 1 is no word with its numbers"),
        ("the 1 2\ncaf\udce9 1 2\n", "byte 0xe9 is not UTF-8"),
        (b"2 3\nthe " + np.linspace(-1, 1, 30, dtype="<f4").tobytes(), "this is a binary file"),
        (b"\0\1\2", "this is a binary file"),
    ],
)
def test_what_is_no_table_of_vectors(written: Written, content: str | bytes, sentence: str) -> None:
    raw = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    with pytest.raises(InputError) as caught:
        isotrope.load(written("bad.txt", raw))
    assert sentence in str(caught.value)


def test_a_packed_file_that_is_cut_short(written: Written) -> None:
    rng = np.random.default_rng(0)
    text = "".join(f"w{i} {rng.random()} {rng.random()}\n" for i in range(20_000)).encode()
    with pytest.raises(InputError, match="damaged or cut short"):
        isotrope.load(written("g.txt.gz", gzip.compress(text)[:-2000]))


def test_a_table_has_one_read_out(written: Written) -> None:
    path = written("glove.txt", GLOVE)
    assert isotrope.load(path, pooling="mean", device="cpu").pooling.name == "mean"
    with pytest.raises(InputError, match="read out by its mean; 'cls' was asked for"):
        isotrope.load(path, pooling="cls")
    with pytest.raises(InputError, match="no language head"):
        isotrope.load(path, language_head=True)


def test_a_table_is_trained_without_padding(written: Written) -> None:
    """One lookup has the vectors and the gradient of padded rows; a text without words is zero."""
    encoder = isotrope.load(written("glove.txt", GLOVE), device="cpu").train()
    table = encoder.backbone.table.weight
    views = [encoder.tokenize(texts) for texts in (["the cat sat", "york", "xylophone"], ["new york ."] * 3)]
    weights = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))

    def gradient(vectors: torch.Tensor) -> torch.Tensor:
        (found,) = torch.autograd.grad((vectors * weights).sum(), table)
        return found

    looked_up = torch.cat(encoder.embed(*views))
    padded = torch.cat([encoder(view) for view in views])
    torch.testing.assert_close(looked_up, padded)
    torch.testing.assert_close(gradient(looked_up), gradient(padded))
    assert not looked_up[2].any()
