"""What the first hour needs: data without a method, several files, standard input, devices, completion, meanings."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import isotrope
from isotrope.catalogue import describe_settings, own_settings
from isotrope.cli import main
from isotrope.cli.completion_words import complete_method, complete_model, method_names, space_names
from isotrope.cli.options import parse_train_words, split_names
from isotrope.encoders.loading import DEVICE, checked_device, default_device
from isotrope.errors import InputError


def run(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    captured = capsys.readouterr()
    assert stop.value.code == code, captured.err
    return captured.out if code == 0 else captured.err


def test_the_words_of_train() -> None:
    assert parse_train_words(["simcse", "a.txt"], ["b.txt", "--seed", "1"]) == (
        "simcse",
        ["a.txt", "b.txt"],
        {"seed": "1"},
    )
    assert parse_train_words(["a.tsv"], []) == (None, ["a.tsv"], {})
    assert parse_train_words(["-"], []) == (None, ["-"], {})
    with pytest.raises(InputError, match="'more' was not understood"):
        parse_train_words(["simcse", "a.txt"], ["more"])
    assert parse_train_words(["--seed", "1"], ["simcse"]) == ("simcse", [], {"seed": "1"})
    assert parse_train_words([], []) == (None, [], {})


def test_a_folder_alone_is_data_unless_a_method_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("docs", "simcse", "head"):
        (tmp_path / name).mkdir()
    assert parse_train_words(["docs"], []) == (None, ["docs"], {})
    assert parse_train_words(["simcse"], []) == ("simcse", [], {})
    assert parse_train_words(["head"], []) == ("head", [], {})
    assert parse_train_words(["simclr", "docs"], []) == ("simclr", ["docs"], {})


def test_completion_knows_every_method_without_importing_them() -> None:
    taken = [card.name for card in isotrope.methods() if card.kind in ("training", "head")]
    assert method_names() == sorted(taken)
    assert space_names() == sorted(card.name for card in isotrope.methods() if card.kind == "space")
    assert complete_method("simcse") == ["simcse", "simcse-supervised"]
    assert complete_model("builtin-") == ["builtin-base", "builtin-static"]


def test_the_help_of_train_lists_the_settings_of_a_head_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert "multi-label" in run(capsys, "train", "head", "--help")


def test_a_device_is_chosen_by_name_and_one_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv(DEVICE, "cpu")
    assert default_device().type == "cpu"
    for wrong in ("gpu", "cuda:99", "meta"):
        with pytest.raises(InputError, match="device"):
            checked_device(wrong)
    refused = run(capsys, "encode", tiny, sentences, "--output", tmp_path / "v.npy", "--device", "cuda:99", code=2)
    assert "no device 'cuda:99'" in refused
    run(capsys, "encode", tiny, sentences, "--output", tmp_path / "v.npy", "--device", "cpu")
    assert (tmp_path / "v.npy").is_file()


def test_encode_reads_several_files_and_says_which_lines_have_no_vector(
    capsys: pytest.CaptureFixture[str], tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("one\n\n  \ntwo\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("three\n", encoding="utf-8")
    target, aside = tmp_path / "v.npy", tmp_path / "v.left_out.txt"
    told = json.loads(run(capsys, "encode", tiny, tmp_path / "a.txt", "--output", target, "--json"))
    assert (told["rows"], told["empty_left_out"], told["left_out"]) == (2, 2, str(aside))
    assert aside.read_text(encoding="utf-8") == "2\n3\n"
    run(capsys, "encode", tiny, tmp_path / "b.txt", "--output", target)
    assert not aside.exists()  # it would speak of other vectors
    run(capsys, "encode", tiny, tmp_path / "a.txt", tmp_path / "b.txt", "--output", target)
    assert np.load(target).shape[0] == 3
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"one\ntwo\nthree\nfour\n")))
    run(capsys, "encode", tiny, "-", "--output", target)
    assert np.load(target).shape[0] == 4


def test_the_help_of_train_has_the_settings_of_a_method_with_their_meanings(capsys: pytest.CaptureFixture[str]) -> None:
    told = run(capsys, "train", "simcse", "--help")
    assert "Settings of simcse" in told
    assert "second-edits" in told
    assert "Settings of" not in run(capsys, "train", "--help")


@pytest.mark.parametrize("command", ["pretrain", "distil"])
def test_the_help_of_a_command_with_settings_of_its_own_lists_all_of_them(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    told = run(capsys, command, "--help")
    for setting in own_settings()[command]():
        assert f"Settings of {setting.owner}" in told
        assert f"  --{setting.name.replace('_', '-')} " in told
        assert setting.meaning[:30] in told


@pytest.mark.parametrize("space", space_names())
def test_the_help_of_fit_space_lists_the_settings_of_each_space(capsys: pytest.CaptureFixture[str], space: str) -> None:
    told = run(capsys, "fit-space", space, "--help")
    settings = describe_settings(space)
    assert (f"Settings of {space}" if settings else f"{space} has no settings of its own") in told
    for setting in settings:
        words = " ".join(told.split())
        default = "none" if setting.default is None else str(setting.default)
        assert f"--{setting.name.replace('_', '-')} {default} {setting.meaning}".lower() in words.lower()
        assert setting.range in words
    assert "Settings of" not in run(capsys, "fit-space", "--help")


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_data_alone_adapts_a_finished_encoder(
    capsys: pytest.CaptureFixture[str], tiny: Path, topics: list[str], tmp_path: Path
) -> None:
    encoder = isotrope.load(tiny, device="cpu")
    encoder.facts = {"method": "simcse"}
    encoder.save(tmp_path / "finished")
    for number, part in enumerate((topics[:100], topics[100:200])):
        rows = "".join(f"{text.split(' with')[0]}\t{text}\n" for text in part)
        (tmp_path / f"{number}.tsv").write_text(f"query\tpassage\n{rows}", encoding="utf-8")
    words = ["train", tmp_path / "0.tsv", tmp_path / "1.tsv", "--model", tmp_path / "finished", "--json"]
    told = json.loads(run(capsys, *words, "--output", tmp_path / "run", "--max-steps", 2, "--batch-size", 16))
    facts = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert (facts["method"], facts["data"]["records"]) == ("simcse-supervised", 200)
    assert [line["step"] for line in told["evaluations"]] == [0, 2]
    assert "retrieval_mrr" in told["selected_by"]


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_labels_that_training_leaves_out_are_said(
    capsys: pytest.CaptureFixture[str], tiny: Path, topics: list[str], tmp_path: Path
) -> None:
    encoder = isotrope.load(tiny, device="cpu")
    encoder.facts = {"method": "simcse"}
    encoder.save(tmp_path / "finished")
    rows = "".join(f"{text}\t{number % 2}\n" for number, text in enumerate(topics[:60]))
    (tmp_path / "a.tsv").write_text(f"text\tlabel\n{rows}", encoding="utf-8")
    words = ["train", tmp_path / "a.tsv", "--model", tmp_path / "finished", "--output", tmp_path / "run"]
    with pytest.raises(SystemExit):
        main([str(word) for word in (*words, "--max-steps", 1, "--batch-size", 16, "--no-final-table")])
    captured = capsys.readouterr()
    assert "its labels are not used: `train head` fits a classifier to them" in captured.err
    assert (
        captured.out.splitlines()[-1] == f"model: {tmp_path / 'run' / 'model'}"
    )  # the last line is what to go on with


def test_names_are_split_at_commas_outside_quotes() -> None:
    assert split_names('"Body, full",Category') == ["Body, full", "Category"]
    assert split_names("title,body") == ["title", "body"]
    assert split_names(None) is None


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_evaluations_are_shown_while_a_run_trains(
    capsys: pytest.CaptureFixture[str], tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    words = ["--max-steps", "2", "--eval-steps", "1", "--batch-size", "16", "--max-length", "32"]
    with pytest.raises(SystemExit):
        main(["train", "simcse", str(sentences), "--model", str(tiny), "--output", str(tmp_path / "run"), *words])
    lines = capsys.readouterr().err.splitlines()
    shown = [line.split(":")[0] for line in lines if "other_view" in line and not line.startswith("warning")]
    assert shown == ["the start", "step 1", "step 2"]
