"""Commands that make or check training data: check, mine, paraphrase, links, leaks."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from isotrope.cli.answer_output import print_answer, print_rows
from isotrope.cli.application import Columns, Command, Json, app
from isotrope.cli.flags import with_flags
from isotrope.cli.help_pages import DATA
from isotrope.cli.options import split_names
from isotrope.terminal import show

FLAGS = {name: f"--{name.replace('_', '-')}" for name in ("max_length", "batch_size", "split")}  # of ``train``


@app.command(cls=Command, rich_help_panel=DATA)
def check(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Files that are read as one text: .txt, .tsv, .csv, .jsonl, .parquet, .md, .rst; or folders."
        ),
    ],
    model: Annotated[
        str, typer.Option(help="The model whose tokenizer counts: builtin-base, a folder or a hub id.")
    ] = "builtin-base",
    max_length: Annotated[int, typer.Option(help="Tokens that training keeps of a text, special tokens counted.")] = 64,
    batch_size: Annotated[int, typer.Option(help="Records of the batch whose false negatives are estimated.")] = 64,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir", "--tests", help="Look for the STS, SICK and transfer sets of this folder; or ISOTROPE_DATA."
        ),
    ] = None,
    columns: Columns = None,
    record_type: Annotated[
        str | None, typer.Option(help="Read the file as this record type; default: the first that fits.")
    ] = None,
    sample: Annotated[
        int, typer.Option(help="Records drawn at random for near-duplicates, tokens and languages.")
    ] = 200_000,
    as_json: Json = False,
) -> None:
    """Look at a text before training: what it holds, what to do.

    Duplicates, lengths, language, false negatives, leaks, and the methods that can use it.
    """
    import isotrope

    found = isotrope.check(
        data,
        model,
        max_length=max_length,
        batch_size=batch_size,
        data_dir=data_dir,
        columns=split_names(columns),
        record_type=record_type,
        sample=sample,
    )
    if not as_json:
        go_on = f"Nothing stands in the way: `isotrope train {shlex.join(map(str, data))} --output runs/first`."
        for sentence in found.advice or [go_on]:
            show(f"- {with_flags(sentence, FLAGS)}")
    print_answer(found, as_json)


@app.command(cls=Command, rich_help_panel=DATA)
def mine(
    pairs: Annotated[Path, typer.Argument(help="Pairs: .tsv, .csv, .jsonl or .parquet, plain or with .gz or .xz.")],
    output: Annotated[Path, typer.Option(help="Where the triples are written (.tsv).")],
    model: Annotated[
        str, typer.Option(help="The encoder that ranks the candidates: builtin, a folder or a hub id.")
    ] = "builtin",
    first: Annotated[
        int | None, typer.Option(help="The nearest rank that may be drawn; default 10, or 1 with --margin.")
    ] = None,
    last: Annotated[int, typer.Option(help="The farthest rank that may be drawn.")] = 50,
    margin: Annotated[float | None, typer.Option(help="Minimum gap between positive and negative cosine.")] = None,
    fill: Annotated[
        bool, typer.Option("--fill", help="Keep pairs without a hard negative too, with a random one.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed for the draw among the ranks.")] = 42,
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Find a hard negative for each pair, and write triples."""
    import isotrope

    found = isotrope.mine(
        pairs, model, output, first=first, last=last, margin=margin, fill=fill, seed=seed, columns=split_names(columns)
    )
    facts = {"output": str(output), **found.counts()}
    rows = [
        {"what": name.replace("_", " "), "found": f"{value:.4f}" if isinstance(value, float) else value}
        for name, value in facts.items()
    ]
    print_rows(facts, rows, as_json)


@app.command(cls=Command, rich_help_panel=DATA)
def paraphrase(
    text: Annotated[Path, typer.Argument(help="A file of sentences.")],
    output: Annotated[Path, typer.Option(help="Where the pairs are written (.tsv).")],
    model: Annotated[
        str, typer.Option(help="A model with a masked-language head: builtin-base, a folder or a hub id.")
    ] = "builtin-base",
    share: Annotated[float, typer.Option(help="The share of the words that is replaced.")] = 0.15,
    seed: Annotated[int, typer.Option(help="Random seed for the words that are replaced and their replacements.")] = 42,
    columns: Columns = None,
    round_trip: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Two translation models, folders or hub ids: the first translates there, the second back."),
    ] = None,
    second_round_trip: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Two more models; a pair is then what came back from the two round trips."),
    ] = None,
    beams: Annotated[int, typer.Option(help="Beams of a translation.")] = 4,
    temperature: Annotated[
        float, typer.Option(help="Above 0: a translation is sampled at this temperature; 0: beam search.")
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Write pairs for `train cert`: sentences and their paraphrases.

    Words are replaced, or the sentence is translated there and back.
    """
    import isotrope

    written = isotrope.paraphrase(
        text,
        output,
        model,
        share,
        seed,
        split_names(columns),
        round_trip=round_trip,
        second_round_trip=second_round_trip,
        beams=beams,
        temperature=temperature,
    )
    print_answer(written, as_json)


@app.command(cls=Command, rich_help_panel=DATA)
def links(
    wiki: Annotated[
        list[Path],
        typer.Argument(help="MediaWiki .xml dumps, or JSON lines of wikiextractor --json --links; .bz2, .gz or .xz."),
    ],
    output: Annotated[Path, typer.Option(help="Where the rows are written (.tsv).")],
    types: Annotated[
        Path | None,
        typer.Option(help="A table with the columns entity and entity_type; default: the infoboxes of the pages."),
    ] = None,
    min_links: Annotated[int, typer.Option(help="Entities with fewer links are left out.")] = 10,
    as_json: Json = False,
) -> None:
    """Write rows for `train ease`: a wiki's sentences and links."""
    import isotrope

    print_answer(isotrope.links(wiki, output, types, min_links), as_json)


@app.command(cls=Command, rich_help_panel=DATA)
def leaks(
    text: Annotated[
        list[Path],
        typer.Argument(
            help="Training text: .txt or .tsv files, plain or with .gz or .xz; or documents: .md, .rst or a folder."
        ),
    ],
    against: Annotated[
        list[Path] | None, typer.Option(help="A file whose sentences must not be trained on; may be repeated.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Protect the STS, SICK and transfer sets of this folder.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write copies without the leaking lines into this folder.")
    ] = None,
    match: Annotated[
        str, typer.Option(help="What makes a line a leak: a sentence in it, or the pair that it is: sentence, pair.")
    ] = "sentence",
    tests_only: Annotated[
        bool, typer.Option("--tests-only", help="Protect the test splits of --data-dir alone.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find sentences of the test sets in a training text.

    With --match pair: their pairs in a development set.
    """
    import isotrope

    found = isotrope.leaks(text, against, data_dir, output, match, tests_only)
    print_answer(found, as_json)
    if not as_json:
        show(f"protected: {sum(found.protected.values()):,} {match}s of {', '.join(found.protected)}")
        for name, count in found.by_set.most_common():
            show(f"leaking from {name}: {count:,} lines")
        for example in found.examples:
            show(f"{example['file']}:{example['line']}: {example['text']} ({', '.join(example['sets'])})")
