"""No command replaces what it reads, a trained model, or one of its own outputs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from isotrope.cli import main

Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Refused:
    """Run a command that must be refused; every file stays as it is, and none appears."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> str:
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        said = capsys.readouterr().err
        assert stop.value.code == 2, said
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
        return said

    return run


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    rows = [f"the boat number {row}\tthe ship number {row}" for row in range(80)]
    path.write_text("\n".join(["anchor\tpositive", *rows]) + "\n", encoding="utf-8")
    return path


def test_an_output_that_is_the_input(refused: Refused, tiny: Path, pairs: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.tsv"
    link.symlink_to(pairs)
    text = ["--columns", "anchor"]
    for words in (
        ["mine", pairs, "--output", pairs, "--model", tiny],
        ["mine", pairs, "--output", link, "--model", tiny],
        ["paraphrase", pairs, "--output", "./pairs.tsv", "--model", tiny, *text],
        ["fit-space", "t-sne", tiny, pairs, "--output", pairs, *text],
        ["links", pairs, "--output", pairs],
        ["report", tiny, "--text", pairs, "--output", pairs, "--format", "json", *text],
        ["evaluate", tiny, "--suite", "geometry", "--text", pairs, "--json", pairs, *text],
        ["compare", pairs, "--methods", "simcse", "--markdown", pairs, "--output", "all"],
        ["compare", f"pairs={pairs}", "--methods", "simcse", "--markdown", pairs, "--output", "all"],
    ):
        assert "the output is also read" in refused(*words), words


def test_a_space_does_not_replace_a_trained_model(
    refused: Refused, tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    model, other = tmp_path / "model", tmp_path / "other"
    for folder in (model, other):
        shutil.copytree(tiny, folder)
    for output in (model, other):
        assert "a model is here already" in refused("fit-space", "whitening", model, sentences, "--output", output)
        assert "a model is here already" in refused("distil", model, sentences, "--output", output)


def test_an_empty_place_is_not_the_folder_that_one_is_in(refused: Refused, tiny: Path, sentences: Path) -> None:
    assert "--shards is empty" in refused("encode", tiny, sentences, "--shards", "")
    assert "--output is empty" in refused("train", "simcse", sentences, "--model", tiny, "--output=")


def test_clean_copies_neither_meet_nor_replace_what_is_read(refused: Refused, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(f"the cat of {folder} sat on the old mat\n", encoding="utf-8")
    against = tmp_path / "b.txt"
    against.write_text("the dog ran over the wide field\n", encoding="utf-8")
    asked = ["--against", against]
    assert "2 texts are called a.txt" in refused("leaks", "one/a.txt", "two/a.txt", *asked, "--output", "clean")
    assert "also read" in refused("leaks", "one/a.txt", *asked, "--output", "one")
    (tmp_path / "one" / "b.txt").write_text("something else is here\n", encoding="utf-8")
    assert "also read" in refused("leaks", "one/b.txt", *asked, "--output", ".")
    assert not (tmp_path / "clean").exists()
