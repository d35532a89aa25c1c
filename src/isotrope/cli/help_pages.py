"""How help reads in a terminal of 80 columns: two columns without frames, and the commands by what one wants to do."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

DATA, TRAIN, JUDGE, USE, OTHER = GROUPS = ("Data", "Train", "Judge", "Use", "Other")
BEGIN = (
    ("isotrope check FILE", "what it holds, what to do"),
    ("isotrope train FILE --output runs/first", "builtin, adapted to it"),
    ('isotrope search runs/first FILE "a query"', "the texts that answer a query"),
)
SPACES, TACTICS = "Spaces, fitted to an encoder afterwards", "Tactics, settings of any method"
WIDEST = 100  # columns: longer lines are hard to read
TERM = 28  # columns of a term; a longer one has a line of its own
# What typer calls the value of an option, from version to version, and how it is called here.
VALUES = {
    r"<str>|<list\[str\]>": "TEXT",
    r"<path>|<list\[Path\]>": "PATH",
    r"<int>|<list\[int\]>|INTEGER|<float>|FLOAT": "N",
    r"<str,str>(\.\.\.)?|<TEXT TEXT>(\.\.\.)?": "TEXT TEXT",
}


def definitions(rows: Iterable[tuple[str, str]], width: int) -> str:
    """Terms and their meanings in two columns."""
    rows = list(rows)
    left = max((len(term) for term, _ in rows if len(term) <= TERM), default=TERM) + 4
    lines = []
    for term, meaning in rows:
        begin = f"  {term}"
        if len(begin) + 2 > left:
            lines.append(begin)
            begin = ""
        lines += textwrap.wrap(
            meaning, width, initial_indent=begin.ljust(left), subsequent_indent=" " * left, break_on_hyphens=False
        )
    return "\n".join(lines) + "\n"


def usage_words(command: Any) -> list[str]:
    """[OPTIONS] and the arguments; brackets are round what may be left out."""
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    named = [(argument, _argument_name(argument)) for argument in arguments]
    return ["[OPTIONS]", *(name if argument.required else f"[{name}]" for argument, name in named)]


def options_page(command: Any, context: Any) -> str:
    """The arguments and the options of a command."""
    rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None:
            plain = param.param_type_name == "argument"
            rows[param.param_type_name].append(
                (_argument_name(param), record[1].removesuffix("[required]").strip())
                if plain
                else (_with_values(record[0]), re.sub(r"\[default: \((.*)\)\]", r"[default: \1]", record[1]))
            )
    width = _width(context)
    return "".join(f"\n{title}:\n{definitions(found, width)}" for title, found in _titled(rows) if found)


def commands_page(group: Any, context: Any) -> str:
    """How to begin, then the commands, a line each."""
    width = _width(context)
    page = "\nBegin with a file of sentences (.txt) or of pairs (.tsv):\n"
    page += "".join(f"  {command:<43}{meaning}\n" for command, meaning in BEGIN)
    listed = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    for title in GROUPS:
        found = [(name, command) for name, command in listed if command.rich_help_panel == title]
        page += f"\n{title}:\n" + "".join(
            f"  {name:<12}{command.get_short_help_str(width - 14)}\n" for name, command in found
        )
    return page


def settings_page(settings: Sequence[dict[str, Any]], width: int) -> str:
    """Settings as options with their defaults, under the name of what they belong to."""
    page = ""
    for owner in dict.fromkeys(setting["of"] for setting in settings):
        rows = [
            (f"--{setting['setting']} {_shown(setting['default'])}", _ranged(setting["meaning"], setting["range"]))
            for setting in settings
            if setting["of"] == owner
        ]
        page += f"\nSettings of {owner}, with their defaults:\n{definitions(rows, width)}"
    return page


def cards_page(cards: Sequence[Any]) -> str:
    """A line for each method, under the record type that it is made for; then spaces and tactics."""
    groups: dict[str, list[Any]] = {}
    for card in cards:
        groups.setdefault(_heading(card), []).append(card)
    page = ""
    for heading in sorted(groups, key=lambda one: (one in (SPACES, TACTICS), -len(groups[one]))):
        page += f"{heading}:\n"
        page += "".join(f"  {card.name:<21}{card.year}  {card.title}{_also(card)}\n" for card in groups[heading])
        page += "\n"
    return page + "`isotrope methods NAME` lists the settings of one; `isotrope check FILE`, the methods for a file."


def card_page(card: Any) -> str:
    """What a method is, and how to call it."""
    facts = {"family": getattr(card, "family", None), "read-out": getattr(card, "read_out", None)}
    known = [f"{name} {value}" for name, value in facts.items() if value not in (None, "none")]
    data = "MODEL TEXT" if card.kind == "space" else "DATA"
    verb = {"space": "fit-space", "training": "train", "head": "train"}.get(card.kind)
    use = (
        f"isotrope {verb} {card.name} {data} --output FOLDER" if verb else "isotrope train METHOD DATA --SETTING VALUE"
    )
    return f"{card.title} ({card.year})\n{card.paper}\n{'; '.join([f'needs {card.needs}', *known])}\n{use}\n"


def _heading(card: Any) -> str:
    return {"space": SPACES, "optimiser": TACTICS}.get(card.kind, f"Record type {card.needs}")


def _also(card: Any) -> str:
    others = [*getattr(card, "accepts", ()), *filter(None, [getattr(card, "images", None)])]
    return f" (also {', '.join(others)})" if others else ""


def terminal_width() -> int:
    """That of the terminal, at most ``WIDEST``, which a file has."""
    return min(shutil.get_terminal_size((WIDEST, 24)).columns, WIDEST)


def _width(context: Any) -> int:
    return int(context.make_formatter().width)


def _titled(rows: dict[str, list[tuple[str, str]]]) -> tuple[tuple[str, list[tuple[str, str]]], ...]:
    return ("Arguments", rows["argument"]), ("Options", rows["option"])


def _argument_name(argument: Any) -> str:
    name = str(argument.metavar or argument.name).upper()
    return f"{name}…" if argument.nargs != 1 else name


def _with_values(words: str) -> str:
    for pattern, name in VALUES.items():
        words = re.sub(pattern, name, words)
    return words


def _shown(default: Any) -> str:
    return "none" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


def _ranged(meaning: str, allowed: str) -> str:
    return f"{meaning} [{allowed}]" if allowed else meaning
