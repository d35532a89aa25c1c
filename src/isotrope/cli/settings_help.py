"""``--help`` also lists the settings that a command takes as --SETTING VALUE, with their meanings."""

from __future__ import annotations

from typing import Any

import typer

from isotrope.cli.answer_output import print_rows
from isotrope.cli.application import Command
from isotrope.cli.completion_words import method_names
from isotrope.terminal import show

HELP = "--help"


class SettingsCommand(Command):
    """A command with settings of its own: ``pretrain``, ``distil``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if HELP not in args or (owner := self.owner_in(args)) is None:
            return super().parse_args(ctx, args)
        print(self.get_help(ctx))
        show(f"Settings of {owner}, given as --SETTING VALUE:")
        print_rows({}, self.settings_of(owner), as_json=False)
        raise typer.Exit

    def owner_in(self, args: list[str]) -> str | None:
        """Whose settings are listed; None where the words name nobody."""
        return self.name

    def settings_of(self, owner: str) -> list[dict[str, Any]]:
        from isotrope.catalogue import own_settings

        return [setting.to_dict() for setting in own_settings()[owner]()]


class TrainCommand(SettingsCommand):
    """The command, which answers for a method where one is named before or after ``--help``."""

    def owner_in(self, args: list[str]) -> str | None:
        return next((word for word in args if word in method_names()), None)

    def settings_of(self, owner: str) -> list[dict[str, Any]]:
        import isotrope

        return isotrope.methods(owner).rows()
