"""``--device`` for every command that loads a model."""

from __future__ import annotations

import os
from functools import cache
from typing import Annotated, Any

import typer


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
