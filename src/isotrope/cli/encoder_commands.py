"""Commands that use an encoder: encode, complete, fit-space, distil."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotrope.cli.answer_output import print_answer, print_rows
from isotrope.cli.application import FREE, Columns, Command, Json, Model, Pooling, TruncateDim, app
from isotrope.cli.help_pages import TRAIN, USE
from isotrope.cli.options import check_free, split_names, split_settings
from isotrope.cli.settings_help import FitSpaceCommand, SettingsCommand
from isotrope.data.joined_files import one_file

Top = Annotated[int, typer.Option(help="How many are shown.")]


@app.command(cls=Command, rich_help_panel=USE)
def encode(
    encoder: Model,
    text: Annotated[
        list[str],
        typer.Argument(
            help="Files of sentences or folders of documents, read as one; - is standard input. Or a source of images."
        ),
    ],
    output: Annotated[Path | None, typer.Option(help="Where the vectors are written (.npy).")] = None,
    columns: Columns = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale each vector to unit length.")] = False,
    precision: Annotated[str, typer.Option(help="float32, int8, uint8, binary or ubinary.")] = "float32",
    ranges: Annotated[
        Path | None, typer.Option(help="Ranges for int8 that an earlier call wrote; default: those of these vectors.")
    ] = None,
    truncate_dim: TruncateDim = None,
    prompt_name: Annotated[
        str | None, typer.Option(help="The model's prompt of this name goes before each text, such as query.")
    ] = None,
    query: Annotated[
        bool, typer.Option("--query", help="Texts are queries: their prompt, if the model has one.")
    ] = False,
    document: Annotated[
        bool, typer.Option("--document", help="Texts are documents: their prompt, if the model has one.")
    ] = False,
    half: Annotated[
        bool, typer.Option("--half", help="A GPU multiplies in float16; what that changes is said.")
    ] = False,
    shards: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder in which processes and machines share the work: start the same command in each.",
        ),
    ] = None,
    shard_size: Annotated[int, typer.Option(help="Lines in a shard.")] = 16_384,
    ray: Annotated[bool, typer.Option("--ray", help="Spread the shards over a Ray cluster.")] = False,
    as_json: Json = False,
) -> None:
    """Write the vectors of a file's sentences, one row each.

    Memory does not grow with the file.
    """
    import isotrope

    found = isotrope.encode(
        encoder,
        one_file(text),
        output,
        split_names(columns),
        normalize,
        precision,
        ranges,
        truncate_dim,
        prompt_name=prompt_name,
        query=query,
        document=document,
        half=half,
        shards=shards,
        shard_size=shard_size,
        ray=ray,
    )
    print_answer(found, as_json)


@app.command(cls=Command, rich_help_panel=USE)
def complete(
    encoder: Annotated[str, typer.Argument(metavar="MODEL", help="A folder that `isotrope train lre` wrote.")],
    concept: Annotated[str, typer.Argument(help="A name, as the relations write it.")],
    relation: Annotated[str, typer.Argument(help="A relation, as the data write it.")],
    top: Top = 5,
    as_json: Json = False,
) -> None:
    """Name the concepts that stand in a relation to another."""
    import isotrope

    found = isotrope.complete(encoder, concept, relation, top)
    rows = [{"concept": one.concept, "distance": round(one.distance, 4)} for one in found]
    print_rows(rows, rows, as_json)


@app.command("fit-space", cls=FitSpaceCommand, rich_help_panel=TRAIN, context_settings=FREE)
def fit_space(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A space that `isotrope methods` lists: whitening, flow, …")],
    encoder: Model,
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT…", help="Files of sentences, folders of documents, or - for standard input; no labels."
        ),
    ],
    output: Annotated[
        Path, typer.Option(help="A new folder for the mapped model; for sne and t-sne a .tsv for the points.")
    ],
    pooling: Pooling = None,
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Fit a map that follows an encoder. Any setting of the space can be given as --SETTING VALUE.

    `isotrope fit-space NAME --help` lists them.
    """
    import isotrope

    files, settings = split_settings([*texts, *context.args])
    check_free(settings, isotrope.fit_space)
    file = one_file(files)
    fitted = isotrope.fit_space(name, encoder, file, output, pooling=pooling, columns=split_names(columns), **settings)
    print_answer(fitted, as_json)


@app.command(cls=SettingsCommand, rich_help_panel=TRAIN, context_settings=FREE)
def distil(
    context: typer.Context,
    encoder: Model,
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT…", help="Files of sentences, folders of documents, or - for standard input; no labels."
        ),
    ],
    output: Annotated[Path, typer.Option(help="A new folder for the student.")],
    to: Annotated[str, typer.Option(help="static: a table of token vectors, read out by its mean.")] = "static",
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Make a small, fast student of an encoder. Any setting of the student can be given as --SETTING VALUE."""
    import isotrope

    files, settings = split_settings([*texts, *context.args])
    check_free(settings, isotrope.distil)
    student = isotrope.distil(encoder, one_file(files), output, to, columns=split_names(columns), **settings)
    print_answer(student, as_json)
