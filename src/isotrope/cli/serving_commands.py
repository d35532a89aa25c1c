"""The command that answers over HTTP: serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotrope.cli.application import Command, app
from isotrope.cli.help_pages import USE


@app.command(cls=Command, rich_help_panel=USE)
def serve(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL…", help="Folders, hub ids or builtin; NAME=MODEL names one.")
    ],
    index: Annotated[str | None, typer.Option(help="What `isotrope index` wrote with one of the models.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one.")] = 8080,
    api_key_file: Annotated[Path | None, typer.Option(help="A file with the key that clients must send.")] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(help="Tokens joined into one forward; default: 1024 on a CPU, 65536 on a GPU.")
    ] = None,
    max_inputs: Annotated[int, typer.Option(help="Texts that one request may hold.")] = 2048,
    max_body: Annotated[int, typer.Option(help="Bytes that one request may have.")] = 8_000_000,
    max_waiting: Annotated[int, typer.Option(help="Requests that may wait; those beyond get status 429.")] = 512,
) -> None:
    """Serve embeddings, search and predictions over HTTP, and a page."""
    import isotrope

    isotrope.serve(
        models,
        index,
        host,
        port,
        api_key_file,
        batch_tokens=batch_tokens,
        max_inputs=max_inputs,
        max_body=max_body,
        max_waiting=max_waiting,
    )
