"""``train METHOD --help`` also lists the settings of that method, with their meanings."""

from __future__ import annotations

from typing import Any

import typer

from isotrope.cli.answer_output import print_rows
from isotrope.cli.application import Command
from isotrope.cli.completion_words import method_names
from isotrope.terminal import show

HELP = "--help"


class TrainCommand(Command):
    """The command, which answers for a method where one is named before or after ``--help``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = next((word for word in args if word in method_names()), None) if HELP in args else None
        if named is None:
            return super().parse_args(ctx, args)
        print(self.get_help(ctx))
        import isotrope

        show(f"Settings of {named}, given as --SETTING VALUE:")
        print_rows({}, isotrope.methods(named).rows(), as_json=False)
        raise typer.Exit
