"""The command that writes a model for other runtimes: export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotrope.cli.answer_output import print_answer
from isotrope.cli.application import Columns, Command, Json, Model, app
from isotrope.cli.help_pages import USE
from isotrope.cli.options import split_names


@app.command(cls=Command, rich_help_panel=USE)
def export(
    encoder: Model,
    output: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for the exported model.")],
    int8: Annotated[bool, typer.Option("--int8", help="Quantise the weights: a quarter of their size.")] = False,
    text: Annotated[
        Path | None, typer.Option(help="Sentences to measure the drift on; default: Python's own documentation.")
    ] = None,
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Write the whole model, pooling included, as one ONNX graph."""
    import isotrope

    print_answer(isotrope.export(encoder, output, int8, text, split_names(columns)), as_json)
