"""The reference of the command line names every option that the commands take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from isotrope.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
EVERYWHERE = {"--device", "--trust-remote-code"}  # the page says once that commands with a model have them
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_lists_the_options_of_a_command(name: str) -> None:
    listed = PAGE.read_text(encoding="utf-8").partition("## Options of each command")[2]
    (row,) = re.findall(rf"^\| `{name}` \| (.*) \|$", listed, re.MULTILINE)
    named = set(re.findall(r"--[a-z0-9-]+", row))
    taken = [{*option.opts, *option.secondary_opts} for option in COMMANDS[name].params]
    options = [spellings for spellings in taken if any(one.startswith("--") for one in spellings)]
    assert [spellings for spellings in options if not spellings & (named | EVERYWHERE)] == []
    assert named <= set().union(*options)
