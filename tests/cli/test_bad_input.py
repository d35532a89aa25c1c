"""Each mistake gets one sentence and exit code 2; nothing is lost, nothing half-written remains."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from isotrope.cli import main

Fails = Callable[..., str]


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fails:
    """Run a command that must fail: returns its one sentence, and checks that no file appeared or changed."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> str:
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        assert stop.value.code == 2, captured.err
        sentences = [line for line in captured.err.splitlines() if line.startswith("isotrope: ")]
        assert len(sentences) == 1, captured.err
        assert "Traceback" not in captured.err
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
        return sentences[0]

    return run


def file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_missing_file(fails: Fails, tiny: Path) -> None:
    assert "no such file" in fails("train", "simcse", "nowhere.txt", "--model", tiny)


def test_empty_file(fails: Fails, tiny: Path, tmp_path: Path) -> None:
    assert "empty" in fails("train", "simcse", file(tmp_path, "a.txt", ""), "--model", tiny)


def test_a_directory(fails: Fails, tiny: Path, tmp_path: Path) -> None:
    assert "this is a folder" in fails("train", "simcse", tmp_path, "--model", tiny)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["train", "--data", "a.txt"], "data"),
        (["train", "simcse", "a.txt", "--method", "simclr"], "method"),
        (["train", "simcse", "a.txt", "--sources", "2"], "sources"),
        (["pretrain", "a.txt", "--output", "run", "--text", "b.txt"], "text"),
        (["compare", "a.txt", "--methods", "simcse", "--data", "b.txt"], "data"),
        (["fit-space", "whitening", "builtin-static", "a.txt", "--output", "w", "--texts", "b.txt"], "texts"),
        (["distil", "builtin", "a.txt", "--output", "s", "--encoder", "builtin-base"], "encoder"),
    ],
)
def test_an_argument_given_as_an_option(fails: Fails, tmp_path: Path, words: list[str], named: str) -> None:
    file(tmp_path, "a.txt", "one\ntwo\n")
    assert fails(*words) == f"isotrope: --{named} is no option or setting; --help shows how {named} is given."


def test_undecodable_bytes_are_named_with_file_and_line(fails: Fails, tiny: Path, tmp_path: Path) -> None:
    path = file(tmp_path, "a.txt", b"fine\nfine\ncaf\xe9\n")
    for words in (
        ["train", "simcse", path, "--model", tiny],
        ["search", tiny, path, "q"],
        ["encode", tiny, path, "--output", "v.npy"],
    ):
        assert "a.txt:3: byte 0xe9" in fails(*words)


def test_nul_bytes(fails: Fails, tiny: Path, tmp_path: Path) -> None:
    assert "a.txt:1: a NUL byte" in fails(
        "train", "simcse", file(tmp_path, "a.txt", "hello".encode("utf-16-le")), "--model", tiny
    )


def test_columns_found_and_columns_wanted(fails: Fails, tiny: Path, tmp_path: Path) -> None:
    path = file(tmp_path, "a.tsv", "left\tright\nx\ty\n")
    sentence = fails("train", "simcse-supervised", path, "--model", tiny)
    assert "'left', 'right'" in sentence
    assert "anchor/positive/negative" in sentence
    assert "no column 'middle'" in fails(
        "train", "simcse-supervised", path, "--model", tiny, "--columns", "left,middle,right"
    )


def test_plain_text_for_a_method_that_needs_triples(fails: Fails, tiny: Path, sentences: Path) -> None:
    assert "triples were asked for" in fails("train", "simcse-supervised", sentences, "--model", tiny)


def test_one_line_and_only_duplicates(fails: Fails, tiny: Path, tmp_path: Path) -> None:
    assert "holds one record" in fails("train", "simcse", file(tmp_path, "one.txt", "only me\n"), "--model", tiny)
    assert "all the same" in fails("train", "simcse", file(tmp_path, "same.txt", "again\n" * 500), "--model", tiny)
    assert "no records" in fails("train", "simcse", file(tmp_path, "blank.txt", "\n \n\n"), "--model", tiny)


def test_fewer_different_records_than_a_batch(fails: Fails, tiny: Path, sentences: Path) -> None:
    assert "fewer than batch_size (4096)" in fails("train", "simcse", sentences, "--model", tiny, "--batch-size", 4096)


@pytest.mark.parametrize(
    ("method", "setting", "batch_size", "said"),
    [
        ("moco", "queue=16", 16, "queue (16) must be larger than batch_size (16)"),
        ("cert", "queue=8", 16, "queue (8) must be larger than batch_size (16)"),
        ("vascl", "neighbours=16", 16, "neighbours must be fewer than the records of a batch; 16 and 16 were given"),
        ("vascl", "neighbours=64", None, "64 and 64 were given"),
    ],
)
def test_a_batch_that_does_not_go_with_the_method_is_refused_before_anything_is_written(
    fails: Fails,
    tiny: Path,
    sentences: Path,
    triples: Path,
    method: str,
    setting: str,
    batch_size: int | None,
    said: str,
) -> None:
    size = [] if batch_size is None else ["--batch-size", batch_size]
    data = triples if method == "cert" else sentences
    name, value = setting.split("=")
    assert said in fails(
        "train", method, data, "--model", tiny, "--output", "one", f"--{name}", value, "--held-out", 40, *size
    )
    compared = [
        "--methods",
        f"simcse,{method}",
        "--set",
        f"{method}.{setting}",
        "--model",
        tiny,
        "--output",
        "all",
        *size,
    ]
    assert said in fails("compare", sentences, triples, *compared)
    assert not Path("one").exists()
    assert not Path("all").exists()


def test_a_queue_that_the_text_makes_too_short_for_the_batch(fails: Fails, tiny: Path, sentences: Path) -> None:
    words = ["--model", tiny, "--output", "one", "--batch-size", 400, "--held-out", 0]
    assert "queue (400) must be larger than batch_size (400)" in fails("train", "moco", sentences, *words)
    assert not Path("one").exists()


def test_unknown_method_setting_and_option(fails: Fails, tiny: Path, sentences: Path) -> None:
    assert "did you mean 'simcse'" in fails("train", "simsce", sentences, "--model", tiny)
    assert "did you mean 'temperature'" in fails("train", "simcse", sentences, "--model", tiny, "--temprature", "1")
    assert "needs a value" in fails("train", "simcse", sentences, "--model", tiny, "--temperature")
    assert "not understood" in fails("train", "simcse", sentences, "more", "--model", tiny)
    assert "No such command" in fails("trian")
    assert "did you mean" in fails("methods", "simsce")


@pytest.mark.parametrize(
    "words", [("--temperature", "0"), ("--temperature", "-1"), ("--learning-rate", "0"), ("--learning-rate", "-1e-5")]
)
def test_temperature_and_learning_rate_must_be_above_zero(
    fails: Fails, tiny: Path, sentences: Path, words: tuple[str, str]
) -> None:
    assert "must be above 0" in fails("train", "simcse", sentences, "--model", tiny, *words)


def test_an_output_folder_that_holds_something_else(fails: Fails, tiny: Path, sentences: Path, tmp_path: Path) -> None:
    file(tmp_path, "thesis.txt", "years of work")
    assert "holds something else" in fails(
        "train", "simcse", sentences, "--model", tiny, "--output", tmp_path, "--batch-size", 16
    )
    assert "a file stands where" in fails(
        "train", "simcse", sentences, "--model", tiny, "--output", tmp_path / "thesis.txt", "--batch-size", 16
    )
    assert "no run to resume" in fails(
        "train", "simcse", sentences, "--model", tiny, "--output", tmp_path / "x", "--batch-size", 16, "--resume"
    )
    assert "--output" in fails("train", "simcse", sentences, "--model", tiny, "--resume")


@pytest.mark.parametrize(
    ("removed", "said"),
    [
        ("tokenizer.json", "tokenizer is missing"),
        ("model.safetensors", "weights are missing"),
        ("config.json", "config.json"),
    ],
)
def test_a_model_folder_with_a_part_missing(
    fails: Fails, tiny: Path, sentences: Path, tmp_path: Path, removed: str, said: str
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(tiny, broken)
    (broken / removed).unlink()
    assert said in fails("train", "simcse", sentences, "--model", broken)
    assert said in fails("evaluate", broken, "--suite", "geometry", "--text", sentences)


def test_a_hub_id_while_offline(fails: Fails, sentences: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert "the hub cannot be reached" in fails("train", "simcse", sentences, "--model", "nobody/no-such-model")


def test_a_recipe_that_is_none(fails: Fails, tiny: Path, sentences: Path, tmp_path: Path) -> None:
    words = ["train", "simcse", sentences, "--model", tiny, "--config"]
    assert "no such recipe" in fails(*words, "nowhere.yaml")
    assert "not a YAML file" in fails(*words, file(tmp_path, "a.yaml", "a: [1"))
    assert "a recipe is a mapping" in fails(*words, file(tmp_path, "b.yaml", "- 1"))
    assert "unknown keys" in fails(*words, file(tmp_path, "c.yaml", "metod: simcse"))
    assert "is for mlm" in fails(*words, file(tmp_path, "d.yaml", "method: mlm"))


def test_encode_writes_npy_only_and_leaves_nothing_behind(
    fails: Fails, tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    assert ".npy" in fails("encode", tiny, sentences, "--output", "vectors.csv")
    file(tmp_path, "taken", "x")
    assert "Cannot write" in fails("encode", tiny, sentences, "--output", "taken/vectors.npy")


def test_a_search_in_a_file_that_is_not_there(fails: Fails, tiny: Path, tmp_path: Path) -> None:
    assert "no such file" in fails("search", tiny, "nowhere.txt", "hello")


def test_an_unknown_suite_and_aggregation(fails: Fails, tiny: Path, tmp_path: Path) -> None:
    assert "Unknown suite" in fails("evaluate", tiny, "--suite", "stss", "--data-dir", tmp_path)
    assert "Unknown aggregation" in fails("evaluate", tiny, "--aggregation", "sum", "--data-dir", tmp_path)
    assert "is missing" in fails("evaluate", tiny, "--data-dir", tmp_path)


def test_geometry_without_sentences(fails: Fails, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    assert "Geometry needs sentences: give texts" in fails("evaluate", tiny, "--suite", "geometry")
    one = tmp_path / "one.txt"
    one.write_text("only this\n", encoding="utf-8")
    out = tmp_path / "out.json"
    assert "two different sentences; 1 found" in fails(
        "evaluate", tiny, "--suite", "geometry", "--text", one, "--json", out
    )
    assert not out.exists()
