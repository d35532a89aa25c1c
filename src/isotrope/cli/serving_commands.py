"""Commands that use a model elsewhere: serve, predict, push, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotrope.cli.answer_output import print_answer, print_rows
from isotrope.cli.application import PRINTED, Columns, Command, Json, Model, app
from isotrope.cli.help_pages import USE
from isotrope.cli.options import split_names
from isotrope.errors import InputError
from isotrope.terminal import show


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


@app.command(cls=Command, rich_help_panel=USE)
def predict(
    encoder: Model,
    text: Annotated[str, typer.Argument(help="A file of texts, or a text of several words in quotes.")],
    columns: Columns = None,
    top: Annotated[int, typer.Option(help="How many classes of a text are named, the likeliest first.")] = 1,
    output: Annotated[Path | None, typer.Option(help="Write all predictions to this .tsv or .jsonl file.")] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="[FILE]", help="Print JSON, or write it to a .json file.")
    ] = None,
) -> None:
    """Classify texts by the classifier that a model keeps."""
    if json_file not in (None, PRINTED) and not str(json_file).endswith(".json"):
        raise InputError(f"{json_file}: JSON is written to a name that ends with .json; TEXT goes before --json.")
    import isotrope
    from isotrope.files import write_json

    found = isotrope.predict(encoder, text, split_names(columns), top, output)
    if json_file not in (None, PRINTED):
        write_json(str(json_file), found.to_dict())
    rows = found.rows() if output is None else found.summary(output)
    print_rows(found.to_dict(), rows, json_file == PRINTED)
    if json_file != PRINTED and found.calibration:
        show(f"probabilities: {found.calibration}")


@app.command(cls=Command, rich_help_panel=USE)
def push(
    folder: Annotated[Path, typer.Argument(help="A saved model, or a run folder.")],
    repo: Annotated[str, typer.Argument(help="Where to: owner/name on the hub.")],
    private: Annotated[bool, typer.Option(help="A new repository is private, or public with --no-private.")] = True,
    license: Annotated[str | None, typer.Option(help="The licence that the card names, such as apache-2.0.")] = None,
    revision: Annotated[str | None, typer.Option(help="A branch; default: main.")] = None,
    message: Annotated[str, typer.Option(help="The message of the commit.")] = "Upload a sentence encoder",
    as_json: Json = False,
) -> None:
    """Send a saved model with its card to a hub.

    The token is that of `hf auth login` or HF_TOKEN.
    """
    import isotrope

    print_answer(isotrope.push(folder, repo, private, license, revision, message), as_json)


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
