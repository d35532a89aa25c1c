"""Commands that judge: evaluate, report, doctor."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from isotrope.cli.answer_output import print_answer, print_rows
from isotrope.cli.application import PRINTED, Columns, Command, Json, Model, TruncateDim, app
from isotrope.cli.help_pages import JUDGE, OTHER
from isotrope.cli.options import split_names
from isotrope.json_text import json_text
from isotrope.terminal import show


@app.command(cls=Command, rich_help_panel=JUDGE)
def evaluate(
    encoder: Model,
    suite: Annotated[
        str,
        typer.Option(
            help="sts, transfer, probing, retrieval, answers, clustering, bitext, robustness, linear, layers, "
            "geometry, counterfactual, mteb:TASK; several joined by commas; all: every one that the data folder has."
        ),
    ] = "sts",
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="Another model, a run folder, or runs joined by commas: is MODEL really better? May be repeated."
        ),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="The evaluation data; default: the variable ISOTROPE_DATA.")
    ] = None,
    seeds: Annotated[
        list[int],
        typer.Option(
            "--seed",
            help="Random seed for the bootstrap, the folds or the sample; repeated, transfer averages over them.",
        ),
    ] = [0],  # noqa: B006 - typer copies it
    aggregation: Annotated[str, typer.Option(help="all, mean or wmean over the subsets of STS12–16.")] = "all",
    texts: Annotated[
        Path | None,
        typer.Option(
            "--text",
            help="A file of your own: scored pairs for sts, pairs for retrieval, labelled text for linear, clustering, "
            "answers and counterfactual, any text for geometry.",
        ),
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="The test part for linear; default: rows of split test, or a fifth of --text.")
    ] = None,
    columns: Columns = None,
    baselines: Annotated[
        bool, typer.Option(help="TF-IDF, BM25 and random vectors on the same texts, where the suite has them.")
    ] = True,
    protocol: Annotated[
        str | None,
        typer.Option(help="For transfer and probing: transfer-logistic-v2, senteval, senteval-mlp or senteval-fast."),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help="Some tasks of transfer (MR,CR or seven) or probing, or sets of retrieval; default: all."),
    ] = None,
    lang: Annotated[str | None, typer.Option(help="Another language for sts: zh.")] = None,
    pooling: Annotated[str | None, typer.Option(help="For a plain Hugging Face folder, which stores none.")] = None,
    truncate_dim: TruncateDim = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="Judge the int8 export of each model: quicker on a CPU, nearly the same.")
    ] = False,
    leaks: Annotated[
        bool, typer.Option("--leaks/--no-leaks", help="Mark scores whose test items stand in the training text.")
    ] = True,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="[FILE]", help="Print JSON, or write it to this file as well.")
    ] = None,
) -> None:
    """Judge an encoder or a run, alone or against others."""
    import isotrope
    from isotrope.files import check_overwrite

    check_overwrite(json_file, texts, test, encoder)
    results = isotrope.evaluate(
        encoder,
        suite,
        data_dir,
        seeds,
        aggregation,
        texts,
        split_names(columns),
        pooling,
        test,
        baselines,
        against=against or (),
        leaks=leaks,
        protocol=protocol,
        tasks=split_names(tasks),
        lang=lang,
        truncate_dim=truncate_dim,
        int8=int8,
    )
    if json_file == PRINTED:
        print(json_text(results.to_dict()))
        return
    if json_file is not None:
        results.to_json(json_file)
    print(results.table())


@app.command(cls=Command, rich_help_panel=JUDGE)
def report(
    subjects: Annotated[
        list[str],
        typer.Argument(help="Run folders and models: a folder, a hub id, or builtin.", metavar="RUN_OR_MODEL…"),
    ],
    output: Annotated[Path, typer.Option(help="Where the page is written, such as report.html.")],
    text: Annotated[
        Path | None, typer.Option(help="The sentences to look at; default: those of the first run.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="The evaluation data; default: ISOTROPE_DATA, or a label-free score.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="html, png, svg or json; default: by the name of the output.")
    ] = None,
    figure: Annotated[
        str | None, typer.Option(help="A single figure, such as plane or map; png and svg need it.")
    ] = None,
    sentences: Annotated[int, typer.Option(help="How many sentences are sampled for the map.")] = 1000,
    queries: Annotated[
        list[str] | None, typer.Option("--query", help="A sentence whose neighbours are shown; may be repeated.")
    ] = None,
    columns: Columns = None,
    seed: Annotated[int, typer.Option(help="Random seed for the sample, the map and the intervals.")] = 42,
    as_json: Json = False,
) -> None:
    """Draw runs and models on one page, or a single figure of it."""
    import isotrope

    found = isotrope.report(
        *subjects,
        output=output,
        text=text,
        data_dir=data_dir,
        format=format,
        figure=figure,
        sentences=sentences,
        queries=queries or (),
        columns=split_names(columns),
        seed=seed,
    )
    from isotrope.report.build import summary
    from isotrope.report.image_page import ImageReport

    if isinstance(found, ImageReport):
        print_rows({"output": str(output), "rows": found.rows}, found.rows, as_json)
        return
    rows = summary(found)
    warnings = found.findings.warnings
    print_rows({"output": str(output), "rows": rows, "warnings": [asdict(one) for one in warnings]}, rows, as_json)
    if not as_json:
        for warning in warnings:
            show(f"{warning.category}: {warning.subject}: {warning.sentence}")
        show(f"report: {output}")


@app.command(cls=Command, rich_help_panel=OTHER)
def doctor(as_json: Json = False) -> None:
    """Show what this machine can do: threads, torch, GPU, extras."""
    import isotrope

    machine = isotrope.doctor()
    print_answer(machine, as_json)
    if not as_json:
        for sentence in machine.advice:
            show(f"advice: {sentence}")
