"""Commands that use an encoder: encode, search, complete, fit-space, distil."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotrope.cli.answer_output import print_answer, print_rows
from isotrope.cli.application import FREE, Columns, Command, Json, Model, Pooling, TruncateDim, app
from isotrope.cli.options import parse_settings, split_names

Top = Annotated[int, typer.Option(help="How many are shown.")]


@app.command(cls=Command)
def encode(
    encoder: Model,
    text: Annotated[Path, typer.Argument(help="A file of sentences, or a source of images.")],
    output: Annotated[Path, typer.Option(help="Where the vectors are written (.npy).")],
    columns: Columns = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale each vector to unit length.")] = False,
    precision: Annotated[str, typer.Option(help="float32, int8, uint8, binary or ubinary.")] = "float32",
    ranges: Annotated[
        Path | None, typer.Option(help="Ranges for int8 that an earlier call wrote; default: those of these vectors.")
    ] = None,
    truncate_dim: TruncateDim = None,
    as_json: Json = False,
) -> None:
    """Write the vectors of a file's sentences, one row each."""
    import isotrope

    names = split_names(columns)
    print_answer(isotrope.encode(encoder, text, output, names, normalize, precision, ranges, truncate_dim), as_json)


@app.command(cls=Command)
def search(
    encoder: Model,
    text: Annotated[Path, typer.Argument(help="A file of sentences, whose vectors are cached next to it; or images.")],
    query: Annotated[str, typer.Argument(help="What to look for; among images the file of one.")],
    top: Top = 5,
    columns: Columns = None,
    truncate_dim: TruncateDim = None,
    as_json: Json = False,
) -> None:
    """Find the sentences nearest to a query."""
    import isotrope

    hits = isotrope.search(encoder, text, query, top, split_names(columns), truncate_dim)
    rows = [{"score": round(hit.score, 4), "line": hit.line, "text": hit.text} for hit in hits]
    print_rows(rows, rows, as_json)


@app.command(cls=Command)
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


@app.command("fit-space", cls=Command, context_settings=FREE)
def fit_space(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A space that `isotrope methods` lists: whitening, flow, …")],
    encoder: Model,
    texts: Annotated[Path, typer.Argument(metavar="TEXT", help="A file of sentences; no labels are used.")],
    output: Annotated[
        Path, typer.Option(help="A new folder for the mapped model; for sne and t-sne a .tsv for the points.")
    ],
    pooling: Pooling = None,
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Fit a map that follows an encoder. Any setting of the space can be given as --SETTING VALUE."""
    import isotrope

    settings = parse_settings(context.args)
    fitted = isotrope.fit_space(name, encoder, texts, output, pooling=pooling, columns=split_names(columns), **settings)
    print_answer(fitted, as_json)


@app.command(cls=Command, context_settings=FREE)
def distil(
    context: typer.Context,
    encoder: Model,
    texts: Annotated[Path, typer.Argument(metavar="TEXT", help="A file of sentences; no labels are used.")],
    output: Annotated[Path, typer.Option(help="A new folder for the student.")],
    to: Annotated[str, typer.Option(help="static: a table of token vectors, read out by its mean.")] = "static",
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Make a small, fast student of an encoder. Any setting of the student can be given as --SETTING VALUE."""
    import isotrope

    settings = parse_settings(context.args)
    student = isotrope.distil(encoder, texts, output, to, columns=split_names(columns), **settings)
    print_answer(student, as_json)
