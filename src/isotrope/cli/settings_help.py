"""``--help`` also lists the settings that a command takes as --SETTING VALUE, with their meanings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import typer

from isotrope.cli.application import Command
from isotrope.cli.completion_words import method_names, space_names
from isotrope.cli.help_pages import settings_page, terminal_width
from isotrope.terminal import show

HELP = {"-h", "--help"}


class SettingsCommand(Command):
    """A command with settings of its own: ``pretrain``, ``distil``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if HELP.isdisjoint(args) or (owner := self.owner_in(args)) is None:
            return super().parse_args(ctx, args)
        print(self.get_help(ctx))
        if settings := self.settings_of(owner):
            print(settings_page(settings, terminal_width()), end="")
        else:
            show(f"{owner} has no settings of its own.")
        raise typer.Exit

    def owner_in(self, args: list[str]) -> str | None:
        """Whose settings are listed; None where the words name nobody."""
        return self.name

    def settings_of(self, owner: str) -> list[dict[str, Any]]:
        from isotrope.catalogue import own_settings

        return [setting.to_dict() for setting in own_settings()[owner]()]


class NamedCommand(SettingsCommand):
    """The command, which answers for a method or a space where one is named before or after ``--help``."""

    names: ClassVar[Callable[[], list[str]]]

    def owner_in(self, args: list[str]) -> str | None:
        return next((word for word in args if word in type(self).names()), None)

    def settings_of(self, owner: str) -> list[dict[str, Any]]:
        import isotrope

        return isotrope.methods(owner).rows()


class TrainCommand(NamedCommand):
    names = method_names


class FitSpaceCommand(NamedCommand):
    names = space_names
