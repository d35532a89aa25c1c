"""The commands on the pages can be typed: command, method, suite, recipe and every setting with its value are known."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest
from typer.main import get_command

from isotrope.catalogue import describe_settings, own_settings
from isotrope.cli import app
from isotrope.cli.options import split_settings
from isotrope.cli.recipe import read_recipe
from isotrope.evaluation.suite import find_suite
from isotrope.heads.head_settings import HEAD
from isotrope.methods.frame.method_registry import find, registry
from isotrope.methods.frame.settings import check, resolve
from isotrope.spaces.space_registry import registry as spaces
from isotrope.training.plan import setting_classes

ROOT = Path(__file__).parents[2]
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.DOTALL | re.MULTILINE)
TYPED = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:torchrun .*-m )?isotrope ([a-z-]+) ?(.*)$", re.MULTILINE)
EXAMPLE = "mixed-negatives"  # the method that CONTRIBUTING.md makes up
ANY_SUITE = "all"


def typed() -> Iterator[tuple[str, str, str]]:
    """Page, command and the words after it, of each command in a bash block; what stands for something is left out."""
    for page in sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")}):
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            for command, words in TYPED.findall(re.sub(r"\\\n\s*", " ", block)):
                if not {"…", "METHOD", "NAME", EXAMPLE} & set(re.split(r"[\s,\]]", words)):
                    yield str(page.relative_to(ROOT)), command, words


def options(command: str) -> dict[str, bool]:
    """The flags of a command, and whether a value follows."""
    found = {}
    for option in COMMANDS[command].params:
        flag = getattr(option, "is_flag", False)
        found.update(dict.fromkeys((*option.opts, *option.secondary_opts), not flag))
    return found


def split(command: str, words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The command's own options with their values, and every other word."""
    known, own, others = options(command), {}, []
    rest = [part for word in words for part in (word.split("=", 1) if word.partition("=")[0] in known else [word])]
    while rest:
        word = rest.pop(0)
        if word not in known:
            others.append(word)
        elif not known[word] or (word == "--json" and (not rest or rest[0].startswith("-"))):
            own[word] = ""
        else:
            own[word] = rest.pop(0)
    return own, others


def problem(command: str, words: str) -> str | None:
    assert command in COMMANDS, command
    own, others = split(
        command, list(takewhile(lambda word: word not in (">", "|"), shlex.split(words, comments=True)))
    )
    plain, settings = split_settings(others)
    for suite in own.get("--suite", "").split(","):
        if suite not in ("", ANY_SUITE, "own", "label-free") and "$" not in suite:
            find_suite(suite)
    for name in own.get("--methods", "").split(","):
        if name:
            find(name.rpartition("=")[2])
    if command == "train":
        method = plain[0] if plain and (plain[0] == HEAD or plain[0] in registry()) else None
        assert method or not plain or set("./") & set(plain[0]) or plain[0] == "DATA", f"unknown method {plain[0]}"
        if (recipe := own.get("--config", "")).startswith("recipes/"):
            assert read_recipe(ROOT / recipe, method).method in (method, None)
        if method not in (None, HEAD):
            for found in resolve(settings, *setting_classes(find(method))):
                check(found)
            return None
        known = {one.name for one in describe_settings(method or "simcse-supervised")}
        return f"unknown {set(settings) - known}" if set(settings) - known else None
    if command in own_settings():
        known = {one.name for one in own_settings()[command]()}
    elif command == "fit-space":
        known = {one.name for one in describe_settings(plain[0])}
        assert plain[0] in spaces()
    elif command == "compare":
        known = {one.name for one in describe_settings("simcse")}
    else:
        known = set()
    return f"unknown {set(settings) - known}" if set(settings) - known else None


def test_there_are_commands() -> None:
    assert len(list(typed())) > 200


@pytest.mark.parametrize("page", sorted({page for page, _, _ in typed()}))
def test_the_commands_of_a_page_are_known(page: str) -> None:
    found = []
    for where, command, words in typed():
        if where == page:
            try:
                wrong = problem(command, words)
            except (AssertionError, ValueError, KeyError) as error:
                wrong = str(error)
            found += [f"isotrope {command} {words}: {wrong}"] if wrong else []
    assert found == []
