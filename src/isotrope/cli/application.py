"""The application that the commands register with, and what every command does alike."""

from __future__ import annotations

import os
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from isotrope.cli.completion_words import complete_model
from isotrope.cli.flags import flags_of, with_flags
from isotrope.cli.help_pages import WIDEST, commands_page, options_page, usage_words
from isotrope.errors import InputError

# typer carries its own copy of click or imports it, depending on its version; this is the base of its usage errors in
# both.
UsageProblem: type[Exception] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
FREE = {"allow_extra_args": True, "ignore_unknown_options": True}  # for settings that only a method or a space knows
MODELS = {"encoder", "model", "models", "subjects", "tokenizer"}  # parameters that name a model
PLACES = ("--output", "--shards")  # options that name what is written
PRINTED = "-"  # the value of --json where no file follows it


class Stopped(Exception):
    """Ctrl-C, with its message: some versions of typer end with 130 and no message at all."""


class Commands(TyperGroup):
    """The group of all commands; it keeps the message of an interrupt."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        formatter.write(commands_page(self, ctx))
        formatter.write(options_page(self, ctx))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Stopped(str(stop) or "stopped") from stop


class Command(TyperCommand):
    """A command that adds its flags to the library's sentences, and whose ``--json`` may stand alone.

    One that takes a model has ``--trust-remote-code`` and ``--device`` too: they hold for every model that the command
    loads.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        if {param.name for param in self.params} & MODELS:
            self.params += [_trust_option(), device_option()]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return usage_words(self)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        formatter.write(options_page(self, ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _refuse_empty(args)
        optional = any("--json" in option.opts and not getattr(option, "is_flag", True) for option in self.params)
        return super().parse_args(ctx, _with_json_value(args) if optional else args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise InputError(with_flags(str(error), flags_of(self), error.setting), error.setting) from error


@cache
def _trust_option() -> Any:
    """Made by typer from a command that has nothing else: the classes of options differ from version to version."""
    only = typer.Typer(add_completion=False)

    @only.command()
    def _(
        trust_remote_code: Annotated[
            list[str] | None,
            typer.Option(
                metavar="FOLDER",
                callback=_trust,
                expose_value=False,
                help="Run the code that this model's folder brings along; without it no folder's code is run.",
            ),
        ] = None,
    ) -> None: ...

    return next(option for option in typer.main.get_command(only).params if option.name == "trust_remote_code")


def _trust(folders: list[str] | None) -> None:
    if folders:
        from isotrope.encoders.remote_code import trust_in_process

        trust_in_process(list(folders))


def _refuse_empty(words: list[str]) -> None:
    """An empty place (a variable of the shell that is not set) would be the folder that one is in."""
    for word, after in zip(words, [*words[1:], None], strict=False):
        name, equals, value = word.partition("=")
        if name in PLACES and (value if equals else after) == "":
            raise InputError(f"{name} is empty; name a file or a folder.")


def _with_json_value(words: list[str]) -> list[str]:
    """``--json`` alone becomes ``--json=-``; a word after it that is not an option is its file."""
    following = [*words[1:], "--"]
    return [
        f"{word}={PRINTED}" if word == "--json" and after.startswith("-") else word
        for word, after in zip(words, following, strict=False)
    ]


app = typer.Typer(
    name="isotrope",
    cls=Commands,
    help="Text in, a sentence encoder out: more than 40 methods, one command.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
    rich_markup_mode=None,  # its frames leave 20 columns of 80 for the meaning of an option
    add_completion=True,
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Columns = Annotated[
    str | None, typer.Option(help="Columns to use, by name, joined by commas; ticket.body is a field of an object.")
]
Pooling = Annotated[
    str | None,
    typer.Option(
        help="cls, mean, max, first_last, layer:K, mask …; auto: the paper's for a raw language model, else its own.",
        show_default="auto",
    ),
]
TruncateDim = Annotated[int | None, typer.Option(help="Leading dimensions to keep; default: all of them.")]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A folder (of a model or of a run), a hub id, or builtin, builtin-base, builtin-static.",
        autocompletion=complete_model,
    ),
]


@app.callback(invoke_without_command=True)
def _version(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        import isotrope

        print(isotrope.__version__)
    elif context.invoked_subcommand is None:
        print(context.get_help())
    else:
        return
    raise typer.Exit


@cache
def device_option() -> Any:
    """Made by typer from a command that has nothing else, as ``--trust-remote-code`` is."""
    only = typer.Typer(add_completion=False)

    @only.command()
    def _(
        device: Annotated[
            str | None,
            typer.Option(
                metavar="NAME",
                callback=_choose,
                expose_value=False,
                help="cpu, cuda, cuda:1 or mps; default: the variable ISOTROPE_DEVICE, or a GPU where there is one.",
            ),
        ] = None,
    ) -> None: ...

    return next(option for option in typer.main.get_command(only).params if option.name == "device")


def _choose(name: str | None) -> None:
    """The variable reaches the processes that a command starts as well."""
    if name is not None:
        from isotrope.encoders.loading import DEVICE, checked_device

        checked_device(name)
        os.environ[DEVICE] = name
