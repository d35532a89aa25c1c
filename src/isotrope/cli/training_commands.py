"""Commands that train: methods, train, pretrain, compare."""

from __future__ import annotations

import os
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isotrope.cli.answer_output import print_answer, print_rows
from isotrope.cli.application import FREE, PRINTED, Columns, Command, Json, Pooling, app
from isotrope.cli.completion_words import complete_method, complete_model
from isotrope.cli.help_pages import TRAIN, card_page, cards_page, settings_page, terminal_width
from isotrope.cli.options import (
    check_free,
    parse_own_settings,
    parse_train_words,
    parse_values,
    split_names,
    split_settings,
)
from isotrope.cli.recipe import Recipe, read_recipe
from isotrope.cli.settings_help import SettingsCommand, TrainCommand
from isotrope.data.joined_files import one_file
from isotrope.errors import InputError
from isotrope.files import check_overwrite
from isotrope.json_text import json_text
from isotrope.terminal import show

if TYPE_CHECKING:
    from isotrope.evaluation.worth_table import Worth
    from isotrope.training.run import Run, RunSource


@app.command(cls=Command, rich_help_panel=TRAIN)
def methods(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this method.")] = None,
    needs: Annotated[str | None, typer.Option(help="Only methods that train on this record type.")] = None,
    family: Annotated[str | None, typer.Option(help="Only methods of this family.")] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="[FILE]", help="Print JSON, or write it to a .json file.")
    ] = None,
) -> None:
    """List the methods, or the settings of one."""
    if json_file not in (None, PRINTED) and not str(json_file).endswith(".json"):
        raise InputError(f"{json_file}: JSON is written to a name that ends with .json; NAME goes before --json.")
    import isotrope
    from isotrope.files import write_json

    if name is None:
        cards = isotrope.methods(needs=needs, family=family)
        value: Any = [asdict(card) for card in cards]
        page = cards_page(cards)
    else:
        described = isotrope.methods(name, needs, family)
        value = described.to_dict()
        page = card_page(described.card) + settings_page(described.rows(), terminal_width()).rstrip("\n")
    if json_file not in (None, PRINTED):
        write_json(str(json_file), value)
    print(json_text(value) if json_file == PRINTED else page)


@app.command(cls=TrainCommand, rich_help_panel=TRAIN, context_settings=FREE)
def train(
    context: typer.Context,
    method: Annotated[
        str | None,
        typer.Argument(
            help="A name that `isotrope methods` lists; without it builtin is adapted to DATA, the advised way.",
            autocompletion=complete_method,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA…",
            help="A .txt, .tsv, .csv, .jsonl or .parquet file, or one of these with .gz or .xz; several are read as "
            "one, and - is standard input; documents: a folder or .md, .rst; images: a folder, .npz or .parquet. "
            "A recipe names the METHOD where none is given; one that lists sources takes the place of both.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The encoder to start from: a folder or a hub id; for images timm:NAME.",
            show_default="builtin-base; without METHOD builtin; images: timm:resnet18",
            autocompletion=complete_model,
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="A new folder for the run.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="A recipe: settings in YAML; the command line wins over it.")
    ] = None,
    pooling: Pooling = None,
    eval_data: Annotated[
        list[Path] | None,
        typer.Option(
            help="Scored pairs, or queries and passages, to select the checkpoint by, the mean of several; "
            "default: a label-free score."
        ),
    ] = None,
    columns: Columns = None,
    split: Annotated[bool, typer.Option("--split", help="Split the texts into sentences first.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --output.")] = False,
    final_table: Annotated[
        bool, typer.Option(help="At the end, compare with the start, builtin and TF-IDF on held-out text.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Train an encoder. Any setting of the method or the loop can be given as --SETTING VALUE.

    `isotrope train METHOD --help` lists them. Without METHOD, builtin is adapted to DATA.
    """
    import isotrope

    method, files, given = parse_train_words([word for word in (method, data) if word], context.args)
    data = str(one_file(files)) if files else None
    recipe = read_recipe(config, method) if config else Recipe(method)
    settings = {**recipe.settings, **given}
    check_free(settings, isotrope.train)
    warnings.filterwarnings("ignore", message=r"(Source '.*': )?Training did not pay")  # the table below says it
    run = isotrope.train(
        recipe.method,
        data,
        model=model or recipe.model or "builtin-base",
        output=output,
        pooling=pooling or recipe.pooling,
        columns=split_names(columns),
        split=split,
        eval_data=eval_data,
        resume=resume,
        final_table=final_table,
        sources=recipe.sources,
        **settings,
    )
    if os.environ.get("RANK", "0") == "0":  # one process of a torchrun speaks for all
        _print_run(run, as_json)


def _print_run(run: Run, as_json: bool) -> None:
    evaluations = [line for line in run.history if "evaluation" in line]
    summary = {
        "folder": str(run.folder),
        "model": str(run.folder / "model"),
        "selected_step": run.selected_step,
        "selected_by": run.selected_by,
        "read_out": asdict(run.read_out),
        "data": str(run.corpus.counts),
        "evaluations": evaluations,
        "worth": None if run.worth is None else run.worth.to_dict(),
    }
    if run.sources:
        summary |= {"sources": [_summary_of(source) for source in run.sources]}
    several = len(evaluations) > 1  # a head is fitted at once and has no steps
    rows = [
        {**({"step": line["step"]} if several else {}), **{k: f"{v:.4f}" for k, v in line["evaluation"].items()}}
        for line in evaluations
    ]
    print_rows(summary, rows, as_json)
    if not as_json:
        for source in run.sources:
            part = f"{source.method}, {100 * source.share:.1f} % of the batches"
            show(f"data of {source.name} ({part}): {source.corpus.counts}")
        if not run.sources:
            show(f"data: {run.corpus.counts}")
        show(run.read_out)
        show(f"kept: {f'step {run.selected_step}, ' if several else ''}{run.selected_by}")
        _print_tables(run)
        show(f"model: {run.folder / 'model'}")


def _summary_of(source: RunSource) -> dict[str, Any]:
    return {
        "name": source.name,
        "method": source.method,
        "share": source.share,
        "data": str(source.corpus.counts),
        "worth": None if source.worth is None else source.worth.to_dict(),
    }


def _print_tables(run: Run) -> None:
    """The final table, or those of the sources."""
    for source in run.sources:
        if source.worth is not None:
            _print_worth(source.worth, f"{source.name}: ")
    if run.worth is not None and not run.sources:
        _print_worth(run.worth)


def _print_worth(worth: Worth, of: str = "") -> None:
    if worth.rows:
        print()
        show(f"{of}Is it better than before? {worth.measure}:")
        print_rows({}, worth.lines(), as_json=False)
    for sentence in worth.remarks():
        show(sentence if worth.rows else f"{of}{sentence}")


@app.command(cls=SettingsCommand, rich_help_panel=TRAIN, context_settings=FREE)
def pretrain(
    context: typer.Context,
    text: Annotated[
        list[str],
        typer.Argument(
            help="Text files, one sentence a line, a blank line between documents; or folders of documents."
        ),
    ],
    output: Annotated[Path, typer.Option(help="A new folder for the run; the encoder is saved in its model/.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="Go on with this masked language model, such as builtin-base, with its vocabulary and shape.",
            autocompletion=complete_model,
        ),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Take the vocabulary of this model; default: learn one from the text.")
    ] = None,
    eval_data: Annotated[
        list[Path] | None, typer.Option(help="Scored pairs (STS-B dev) to measure along the way.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --output.")] = False,
    as_json: Json = False,
) -> None:
    """Pre-train a small encoder from scratch, or go on with one. Any setting can be given as --SETTING VALUE."""
    import isotrope

    sources, settings = split_settings([*text, *context.args])
    check_free(settings, isotrope.pretrain)
    run = isotrope.pretrain(
        sources, output, model=model, tokenizer=tokenizer, eval_data=eval_data, resume=resume, **settings
    )
    print_answer(run, as_json)
    if not as_json:
        left = "out of time; the same command with --resume continues from here"
        show(f"model: {output / 'model'}" if run.finished else left)


@app.command(cls=Command, rich_help_panel=TRAIN, context_settings=FREE)
def compare(
    context: typer.Context,
    data: Annotated[
        list[str],
        typer.Argument(help="Files; each method takes the first it can use. TYPE=FILE names its record type."),
    ],
    methods: Annotated[
        str, typer.Option(help="Names joined by commas; LABEL=NAME for a method that is compared twice.")
    ] = "",
    output: Annotated[
        Path | None, typer.Option(help="A folder for all runs; the same command continues where it was stopped.")
    ] = None,
    model: Annotated[str, typer.Option(help="The encoder that every run starts from.")] = "builtin-base",
    pooling: Pooling = None,
    seeds: Annotated[int, typer.Option(help="How many runs each method has, each with its own random seed.")] = 3,
    eval_data: Annotated[
        list[Path] | None, typer.Option(help="Scored pairs to select checkpoints by; default: a label-free score.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="The tasks to judge by; default: ISOTROPE_DATA, or label-free.")
    ] = None,
    aggregation: Annotated[str, typer.Option(help="all, mean or wmean over the subsets of STS12–16.")] = "all",
    suite: Annotated[
        str | None,
        typer.Option(help="sts, transfer, retrieval, answers, label-free, own (each method's task), or several: a,b."),
    ] = None,
    own: Annotated[
        list[str] | None, typer.Option("--set", help="METHOD.SETTING=VALUE, for one method; may be repeated.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Equal time of training for each run, such as 90s, 10m, 2h; not --max-steps.")
    ] = None,
    vary: Annotated[
        list[str] | None, typer.Option(help="SETTING=A,B,C: a row for each value; may be repeated.")
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(help="SETTING=LOW:HIGH[:log],…: find each method's best settings first; may be repeated."),
    ] = None,
    trials: Annotated[int, typer.Option(help="How many settings a search tries for each method.")] = 20,
    sampler: Annotated[
        str, typer.Option(help="What a search tries next: random, optuna, or auto (optuna where it is installed).")
    ] = "auto",
    parallel: Annotated[int, typer.Option(help="How many runs at once, each in its own process.")] = 1,
    markdown: Annotated[Path | None, typer.Option(help="Write the table to this file, for a docs page.")] = None,
    as_json: Json = False,
) -> None:
    """Compare methods over seeds, on equal footing. Any setting of the loop can be given as --SETTING VALUE.

    The folder of a comparison in place of data shows its table again.
    """
    import isotrope

    sources, settings = split_settings([*data, *context.args])
    check_free(settings, isotrope.compare)
    check_overwrite(markdown, *(source.rpartition("=")[2] for source in sources), *sources, *(eval_data or ()))
    found = isotrope.compare(
        sources,
        methods,
        output,
        model=model,
        pooling=pooling,
        seeds=seeds,
        eval_data=eval_data,
        data_dir=data_dir,
        aggregation=aggregation,
        suite=suite,
        parallel=parallel,
        own=parse_own_settings(own or ()),
        budget=budget,
        vary=parse_values("--vary", vary or ()),
        search=parse_values("--search", [part for word in search for part in word.split(",")]) if search else None,
        trials=trials,
        sampler=sampler,
        **settings,
    )
    if markdown is not None:
        found.write_markdown(markdown)
    if as_json:
        print(json_text(found.to_dict()))
    else:
        print(found.table(), end="")
        show(f"folder: {found.folder}")
    raise typer.Exit(1 if found.failures else 0)
