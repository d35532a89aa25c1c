"""Texts and names are shown as they are: no markup of rich is read in them, no escape sequence reaches the terminal."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.cli import main
from isotrope.cli.answer_output import print_rows
from isotrope.comparison.table_text import TextTable, plain_text
from isotrope.evaluation.results import Results, Section
from isotrope.json_text import json_text
from isotrope.terminal import show, visible

ODD = [
    "the [/b] chef bakes",
    "a list[int] of [bold]bread[/bold]",
    "the sailor :smile: steers",
    "red \x1b[31malert\x1b[0m and a title \x1b]0;owned\x07",
    "a bell \x07, a CSI \x9b2J and \u202ereversed\u202c",
    "half \udc9f a character",
]
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """All odd lines that a file can hold."""
    file = tmp_path / "odd.txt"
    file.write_text("\n".join(line for line in ODD if "\udc9f" not in line) + "\n", encoding="utf-8")
    return file


def test_nothing_is_shown_by_the_word_that_options_take(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows({}, [{"setting": "patience", "default": None}], as_json=False)
    shown = capsys.readouterr().out
    assert "none" in shown
    assert "None" not in shown


def test_every_control_character_is_shown_and_nothing_else_changes() -> None:
    assert visible("\x1b[31m\x07\x7f\x9b\r\n\u2028\u202e\udc9f") == r"\x1b[31m\x07\x7f\x9b\r\n\u2028\u202e\udc9f"
    plain = "Käse\t北京 résumé 👩‍👩‍👧 عربي \\x1b [b]"
    assert visible(plain) == plain


@pytest.mark.parametrize("line", ODD)
def test_a_table_shows_a_text_as_it_is(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([], [{"score": 1, line: line}], as_json=False)
    shown = capsys.readouterr().out
    assert shown.count(visible(line)) == 2  # as a column and as a cell
    assert not CONTROL.search(shown)


@pytest.mark.parametrize("line", ODD)
def test_json_keeps_the_text_and_hides_its_commands(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"text": line, line: 1}], [], as_json=True)
    shown = capsys.readouterr().out
    assert json.loads(shown) == [{"text": line, line: 1}]
    assert not CONTROL.search(shown)
    shown.encode("utf-8")


def test_json_holds_no_bare_nan() -> None:
    value: Any = {"a": float("nan"), "b": [1.5, float("inf"), (-float("inf"),)], "c": {"d": float("nan")}}
    assert json.loads(json_text(value), parse_constant=pytest.fail) == {
        "a": None,
        "b": [1.5, None, [None]],
        "c": {"d": None},
    }


def test_search_prints_markup_as_text(tiny: Path, texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(["search", str(tiny), str(texts), "[/b] :smile:", "--top", "9"], capsys)
    assert (code, err) == (0, "")
    for line in texts.read_text(encoding="utf-8").splitlines():
        assert visible(" ".join(line.split())) in out.replace("**", "")  # which marks the words of the query
    assert not CONTROL.search(out)


def test_encode_into_a_folder_whose_name_is_markup(
    tiny: Path, texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out[" / "x]\x1b[2J" / "v.npy"
    code, out, _ = run(["encode", str(tiny), str(texts), "--output", str(output)], capsys)
    assert code == 0
    assert output.is_file()
    assert "x]\\x1b[2J/v.npy" in "".join(out.split())
    assert "\x1b" not in out


def test_leaks_and_their_examples(texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = tmp_path / "te[b]st\x1b[2J.txt"
    test.write_text(texts.read_text(encoding="utf-8"), encoding="utf-8")
    code, out, _ = run(["leaks", str(texts), "--against", str(test)], capsys)
    assert code == 0
    assert r"red \x1b[31malert\x1b[0m" in out
    assert r"te[b]st\x1b[2J" in out
    assert not CONTROL.search(out)


@pytest.mark.parametrize(
    "words",
    [
        ["encode", "tiny\x1b[2J", "TEXT", "--output", "v.npy"],
        ["search", "builtin", "no\x1b[2J[/b].txt", "a"],
        ["evaluate", "builtin", "--suite", "s\x1b[2Jts[/b]"],
        ["train", "sim\x1b[2Jcse[/b]", "TEXT"],
        ["methods", "\x1b[2J[/b]"],
        ["no\x1b[2Jsuch[/b]"],
        ["search", "builtin", "TEXT", "a", "--to\x1b[2Jp", "3"],
    ],
    ids=str,
)
def test_an_error_message_repeats_no_command(words: list[str], texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run([str(texts) if word == "TEXT" else word for word in words], capsys)
    assert code == 2
    assert "\x1b" not in out + err
    assert r"\x1b[2J" in err


def test_log_lines_and_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    import warnings

    from isotrope.cli import _show_log
    from isotrope.progress import say

    _show_log()
    say("made anew: \x1b[2J[/b].txt")
    show("\x1b[2J", error=True)
    with pytest.raises(SystemExit):
        main(["--version"])
    warnings.showwarning("\x1b[2J", UserWarning, "", 0)
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert said.count(r"\x1b[2J") == 3


@pytest.mark.parametrize("line", ODD)
def test_tables_of_scores_and_of_comparisons(line: str) -> None:
    results = Results({}, {line: line}, ("task", line), [(line, "1")], [Section(line, ("a", "b"), [(line, line)])])
    shown = visible(line)
    assert "".join(results.table().split()).count("".join(shown.split())) >= 3
    table = plain_text([TextTable([line, "score"], [[line, "1"]], 1)], [line])
    assert table.count(shown) == 3
    assert not CONTROL.search(results.table() + table)


def test_a_progress_bar_shows_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from isotrope import progress

    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, for rich
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.labelled("[/b]\x1b[2J"), progress.bar("encoding", 3, show=True) as advance:
        advance(1, note="[/note] \x1b[2J")
        advance(2)
    assert "\x1b[2J" not in stream.getvalue().replace("\x1b[2K", "")
    assert r"[/b]\x1b[2J: encoding" in stream.getvalue()


def test_an_output_that_knows_no_chinese_is_no_traceback(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("北京 résumé\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "isotrope", "search", str(tiny), str(tmp_path / "text.txt"), "a", "--json"],
        capture_output=True,
        env={
            **os.environ,
            "PYTHONIOENCODING": "ascii",
            "PYTHONPATH": str(Path(isotrope.__file__).parents[1]),
        },
    )
    assert done.returncode == 0, done.stderr
    assert rb"\u5317" in done.stdout
