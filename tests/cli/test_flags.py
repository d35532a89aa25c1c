"""The library names a setting; the command line adds its flag."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotrope.cli import main
from isotrope.cli.flags import with_flags

FLAGS = {
    "batch_size": "--batch-size",
    "queue": "--queue",
    "output": "--output",
    "texts": "--text",
    "data_dir": "--data-dir",
    "sentences": "--sentences",
    "temperature": "--temperature",
    "top": "--top",
}


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "batch_size must be at least 2; 1 was given.",
            "batch_size must be at least 2; 1 was given (--batch-size).",
        ),
        (
            "queue (16) must be larger than batch_size (16).",
            "queue (16) must be larger than batch_size (16) (--queue, --batch-size).",
        ),
        ("runs/a: it is taken; choose another output.", "runs/a: it is taken; choose another output (--output)."),
        ("sts has its own texts; leave texts out.", "sts has its own texts; leave texts out (--text)."),
        (
            "Unknown setting 'temprature'; did you mean 'temperature'?",
            "Unknown setting 'temprature'; did you mean 'temperature' (--temperature)?",
        ),
        ("Too few. Lower queue or raise it.", "Too few. Lower queue or raise it (--queue)."),
        ("Data is needed: give data_dir", "Data is needed: give data_dir (--data-dir)"),
        ("top must be at least 1, not 0.", "top must be at least 1, not 0 (--top)."),
    ],
)
def test_the_flag_of_a_named_setting_is_added(sentence: str, expected: str) -> None:
    assert with_flags(sentence, FLAGS) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "The texts are all the same.",  # prose, not the setting
        "a.txt: no sentences found.",
        "runs/batch_size/a.txt: no such file.",  # a path
        "batch_size.txt: no such file.",
        "give --data-dir, and data_dir is found.",  # said already
        "weight_decay must not be negative.",  # not a setting of this command
        "The stop of the output was unexpected.",
        "No method has the setting foo; known: batch_size, max_steps.",  # a list of known names
        "p.tsv: columns found: 'anchor', 'top'; sentences need text.",  # columns of a table
        "p.tsv: no column 'queue'; columns found: 'anchor', 'top'.",
    ],
)
def test_prose_paths_and_flags_that_are_there_stay_as_they_are(sentence: str) -> None:
    assert with_flags(sentence, FLAGS) == sentence


def test_a_setting_that_the_error_names_itself() -> None:
    assert with_flags("v.csv: vectors are written as .npy.", FLAGS, "output") == (
        "v.csv: vectors are written as .npy (--output)."
    )
    assert with_flags("v.csv: unknown.", FLAGS, "no_such_option") == "v.csv: unknown."


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        (["train", "simcse", "{text}", "--model", "{tiny}", "--batch-size", "1"], "(--batch-size)."),
        (["train", "simcse", "{text}", "--model", "{tiny}", "--temperature", "0"], "(--temperature)."),
        (["train", "simcse", "{text}", "--model", "{tiny}", "--temprature", "1"], "--stage-patience)?"),
        (["compare", "{text}", "--methods", "simcse", "--learning-rate", "0"], "(--learning-rate)."),
        (["pretrain", "{text}", "--output", "x", "--save-steps", "0"], "(--save-steps)."),
        (["fit-space", "flow", "{tiny}", "{text}", "--output", "x", "--batch-size", "0"], "(--batch-size)."),
        (["search", "{tiny}", "{text}", "q", "--top", "0"], "(--top)."),
    ],
)
def test_a_command_adds_the_flags_of_its_options_and_of_the_settings_it_takes(
    words: list[str],
    flag: str,
    tiny: Path,
    sentences: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main([word.format(tiny=tiny, text=sentences) for word in words])
    said = capsys.readouterr().err
    assert stop.value.code == 2, said
    assert said.strip().endswith(flag)
    assert said.count(flag.strip("().?")) == 1
