"""What a newcomer sees first: help that fits a terminal of 80 columns, with every name whole."""

from __future__ import annotations

import re

import pytest
from typer.main import get_command

import isotrope
from isotrope.cli import app, main
from isotrope.cli.answer_output import print_rows
from isotrope.cli.help_pages import GROUPS, definitions, settings_page

COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    captured = capsys.readouterr()
    assert stop.value.code == 0, captured.err
    assert captured.err == ""
    return captured.out


def test_no_command_shows_the_first_screen_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    told = run(capsys)
    assert told == run(capsys, "--help") == run(capsys, "-h")
    assert len(told.splitlines()) <= 50
    assert "isotrope train FILE" in told
    listed = [line.split()[0] for line in told.splitlines() if line.startswith("  ")]
    assert all(listed.count(name) == 1 for name in COMMANDS)
    assert "..." not in told.partition("COMMAND [ARGS]...")[2]  # each command is said in one whole line


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_fits_80_columns(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert COMMANDS[name].rich_help_panel in GROUPS
    told = run(capsys, name, "--help")
    assert max(map(len, told.splitlines())) <= 80
    assert not re.search(r"<\w", told)  # no type of Python as the name of a value
    for option in COMMANDS[name].params:
        assert any(word in told for word in (*option.opts, str(option.metavar or option.name).upper()))


def test_every_method_is_listed_by_its_whole_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = run(capsys, "methods")
    named = [line.split()[0] for line in told.splitlines() if line.startswith("  ")]
    assert sorted(named) == sorted(card.name for card in isotrope.methods())
    assert "simcse-supervised    2021  SimCSE, supervised (also pairs)" in told
    assert max(map(len, told.splitlines())) <= 100


def test_a_method_says_what_it_is_before_its_settings(capsys: pytest.CaptureFixture[str]) -> None:
    told = run(capsys, "methods", "whitening")
    assert "Su, Cao, Liu, Ou." in told
    assert "isotrope fit-space whitening MODEL TEXT --output FOLDER" in told
    assert "  --k none" in told


def test_a_long_term_has_a_line_of_its_own() -> None:
    told = definitions(
        [("--short", "a b c d e f g h"), ("--a-name-that-is-longer-than-it-may-be N", "its meaning")], 22
    )
    assert told.splitlines() == [
        "  --short  a b c d e f",
        "           g h",
        "  --a-name-that-is-longer-than-it-may-be N",
        "           its meaning",
    ]


def test_settings_stand_under_their_owner_with_default_and_range() -> None:
    rows = [
        {"setting": "chunk-size", "default": None, "range": "at least 1", "meaning": "Records", "of": "the loop"},
        {"setting": "fixed-mask", "default": False, "range": "", "meaning": "One mask", "of": "simcse"},
    ]
    told = settings_page(rows, 80)
    assert "Settings of the loop, with their defaults:\n  --chunk-size none  Records [at least 1]" in told
    assert "Settings of simcse, with their defaults:\n  --fixed-mask false  One mask" in told


def test_a_narrow_table_cuts_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr("rich.console.Console.is_terminal", property(lambda self: True))
    print_rows({}, [{"name": "contrastive-tension", "title": "unsupervised", "score": "0.123456"}], as_json=False)
    told = capsys.readouterr().out
    assert "…" not in told
