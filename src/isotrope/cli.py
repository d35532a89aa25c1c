"""The command line: parses, calls the public functions, prints a table for people or JSON for programs."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from isotrope.command_words import apart, own_settings, read_recipe, settings_of, show
from isotrope.errors import InputError


class Stopped(Exception):
    """Ctrl-C, with what was told of it: some versions of typer end with 130 and not a word."""


class Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Stopped(str(stop) or "stopped") from stop


app = typer.Typer(
    name="isotrope",
    cls=Commands,
    help="Text in, a sentence encoder out: every contrastive method behind one command.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Columns = Annotated[str | None, typer.Option(help="Columns to use, by name, joined by commas.")]
# typer carries its own copy of click or imports it, depending on its version; this is the base of its usage errors in
# both.
UsageProblem: type[Exception] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
FREE = {"allow_extra_args": True, "ignore_unknown_options": True}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; bad input is one sentence and exit code 2, never a traceback."""
    warnings.showwarning = lambda message, *rest, **named: print(f"warning: {message}", file=sys.stderr)
    warnings.filterwarnings("ignore", module=r"(torch|transformers|accelerate|huggingface_hub)\b")
    try:
        status = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
    except InputError as error:
        _fail(str(error))
    except UsageProblem as error:
        _fail(error.format_message())  # type: ignore[attr-defined]
    except (Stopped, typer.Abort, KeyboardInterrupt) as stop:
        told = str(stop) or "stopped"
        hint = (
            "; the same command with --resume (and the run's folder as --output) goes on from here"
            if "at step" in told
            else ""
        )
        print(f"isotrope: {told}{hint}.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(sentence: str) -> None:
    print(f"isotrope: {' '.join(sentence.split())}", file=sys.stderr)
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        import isotrope

        print(isotrope.__version__)
        raise typer.Exit


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(help="Show this method's settings.")] = None, as_json: Json = False
) -> None:
    """List the methods, or the settings of one."""
    from dataclasses import asdict, fields

    from isotrope.methods.frame.method_registry import cards, find
    from isotrope.spaces.space_registry import registry as spaces
    from isotrope.training.loop_settings import LoopSettings
    from isotrope.training.tactics.child_tuning import CARD as CHILD

    if name is None:
        listed = [asdict(card) for card in cards()]
        show(listed, ("name", "title", "year", "needs", "kind"), listed, as_json)
        return
    if name == CHILD.name:
        card, owned = CHILD, [("the loop", field) for field in fields(LoopSettings) if field.name.startswith("child_")]
    else:
        kind: Any = spaces().get(name) or find(name)
        loop = [] if name in spaces() else [("the loop", field) for field in fields(LoopSettings)]
        card, owned = kind.card(), [*((name, field) for field in fields(kind.Settings)), *loop]
    suited = {} if name == CHILD.name else getattr(kind, "loop", {})  # a method may have other defaults of the loop
    rows = [
        {"setting": field.name.replace("_", "-"), "default": suited.get(field.name, field.default), "of": owner}
        for owner, field in owned
    ]
    show({"card": asdict(card), "settings": rows}, ("setting", "default", "of"), rows, as_json)


@app.command(context_settings=FREE)
def train(
    context: typer.Context,
    method: Annotated[str, typer.Argument(help="A name that `isotrope methods` lists.")],
    data: Annotated[
        str, typer.Argument(help="A .txt, .tsv, .csv, .jsonl or .parquet file, or one of these with .gz or .xz.")
    ],
    model: Annotated[
        str | None, typer.Option(help="The encoder to start from: builtin-base, a folder or a hub id.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="A new folder for the run.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="A recipe: settings in YAML; the command line wins over it.")
    ] = None,
    pooling: Annotated[
        str | None, typer.Option(help="cls, mean, max, first_last, embed_last or last2; default: the model's own.")
    ] = None,
    eval_data: Annotated[
        list[Path] | None,
        typer.Option(
            help="Scored pairs to choose the checkpoint by, the mean of several; default: a label-free score."
        ),
    ] = None,
    columns: Columns = None,
    split: Annotated[bool, typer.Option("--split", help="Cut the texts into sentences first.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --output.")] = False,
    as_json: Json = False,
) -> None:
    """Train an encoder. Any setting of the method or the loop can be given as --SETTING VALUE."""
    import isotrope

    recipe = read_recipe(config, method) if config else {}
    settings = {**recipe.pop("settings", {}), **settings_of(context.args)}
    run = isotrope.train(
        method,
        data,
        model=model or recipe.get("model", "builtin-base"),
        output=output,
        pooling=pooling or recipe.get("pooling"),
        columns=columns.split(",") if columns else None,
        split=split,
        eval_data=eval_data,
        resume=resume,
        **settings,
    )
    if os.environ.get("RANK", "0") != "0":
        return  # one process of a torchrun speaks for all
    evaluations = [line for line in run.history if "evaluation" in line]
    summary = {
        "folder": str(run.folder),
        "model": str(run.folder / "model"),
        "selected_step": run.selected_step,
        "selected_by": run.selected_by,
        "data": str(run.corpus.counts),
        "evaluations": evaluations,
    }
    rows = [{"step": line["step"], **{k: f"{v:.4f}" for k, v in line["evaluation"].items()}} for line in evaluations]
    show(summary, tuple(rows[0]) if rows else (), rows, as_json)
    if not as_json:
        print(f"data: {run.corpus.counts}")
        print(f"kept: step {run.selected_step}, {run.selected_by}")
        print(f"model: {run.folder / 'model'}")


@app.command(context_settings=FREE)
def pretrain(
    context: typer.Context,
    text: Annotated[list[str], typer.Argument(help="Text files: one sentence a line, a blank line between documents.")],
    output: Annotated[Path, typer.Option(help="A new folder for the run; the encoder goes to its model/.")],
    tokenizer: Annotated[
        str | None, typer.Option(help="Take the vocabulary of this model; default: learn one from the text.")
    ] = None,
    eval_data: Annotated[
        list[Path] | None, typer.Option(help="Scored pairs (STS-B dev) to measure along the way.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --output.")] = False,
    as_json: Json = False,
) -> None:
    """Pre-train a small encoder from nothing. Any setting can be given as --SETTING VALUE."""
    from isotrope.api import pretrain as pretrain_encoder
    from isotrope.training.checkpoints import RunFolder

    sources, settings = apart([*text, *context.args])
    finished = (
        pretrain_encoder(sources, output, tokenizer=tokenizer, eval_data=eval_data, resume=resume, **settings)
        is not None
    )
    history = RunFolder(output).history()
    lines = [line for line in history if "held_out_loss" in line]
    show({"folder": str(output), "finished": finished, "measures": lines}, tuple(lines[-1]), lines, as_json)
    if not as_json:
        print(
            f"model: {output / 'model'}"
            if finished
            else "out of time; the same command with --resume goes on from here"
        )


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="A folder, a hub id, or builtin.")],
    suite: Annotated[str, typer.Option(help="sts, transfer, geometry or counterfactual")] = "sts",
    data_dir: Annotated[
        Path | None, typer.Option(help="The evaluation data; default: the variable ISOTROPE_DATA.")
    ] = None,
    text: Annotated[
        Path | None, typer.Option(help="For geometry and counterfactual: a file of sentences; default: STS-B, MR.")
    ] = None,
    columns: Columns = None,
    aggregation: Annotated[str, typer.Option(help="all, mean or wmean over the subsets of STS12–16.")] = "all",
    pooling: Annotated[str | None, typer.Option(help="For a plain Hugging Face folder, which stores none.")] = None,
    seed: Annotated[
        int, typer.Option(help="Of the bootstrap, of the folds of transfer, or of the samples of geometry.")
    ] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the results to this file as well.")] = None,
) -> None:
    """Judge an encoder."""
    import isotrope

    encoder = model if pooling is None else isotrope.load(model, pooling=pooling)
    asked = columns.split(",") if columns else None
    results = isotrope.evaluate(
        encoder, suite=suite, data_dir=data_dir, seeds=seed, aggregation=aggregation, texts=text, columns=asked
    )
    if json_file is not None:
        results.to_json(json_file)
    print(results.table())


@app.command()
def report(
    subjects: Annotated[
        list[str],
        typer.Argument(help="Run folders and models: a folder, a hub id, or builtin.", metavar="RUN_OR_MODEL…"),
    ],
    output: Annotated[Path, typer.Option(help="Where the page goes, such as report.html.")],
    text: Annotated[
        Path | None, typer.Option(help="The sentences to look at; default: those of the first run.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="The evaluation data; default: ISOTROPE_DATA, or a label-free score.")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="html, png, svg or json; default: by the name of the output.")
    ] = None,
    figure: Annotated[
        str | None, typer.Option(help="A single figure, such as plane or map; png and svg need it.")
    ] = None,
    sentences: Annotated[int, typer.Option(help="How many sentences are drawn for the map.")] = 1000,
    query: Annotated[
        list[str] | None, typer.Option(help="A sentence whose neighbours are shown; may be given again.")
    ] = None,
    columns: Columns = None,
    seed: Annotated[int, typer.Option(help="Of the sample, the map and the intervals.")] = 42,
    as_json: Json = False,
) -> None:
    """Show runs and models on one page that opens anywhere, or draw a single figure of it."""
    from isotrope.report.build import make_report, summary

    found = make_report(
        *subjects,
        output=output,
        text=text,
        data_dir=data_dir,
        format=form,
        figure=figure,
        sentences=sentences,
        queries=query or (),
        columns=columns.split(",") if columns else None,
        seed=seed,
    )
    rows = summary(found)
    show({"output": str(output), "rows": rows, "warnings": found.findings["warnings"]}, tuple(rows[0]), rows, as_json)
    if not as_json:
        for warning in found.findings["warnings"]:
            print(f"{warning['kind']}: {warning['subject']}: {warning['sentence']}")
        print(f"report: {output}")


@app.command(context_settings=FREE)
def compare(
    context: typer.Context,
    data: Annotated[
        list[str], typer.Argument(help="Files, each method takes the first it can use; KIND=FILE says what a file is.")
    ],
    methods: Annotated[
        str, typer.Option(help="Names joined by commas; LABEL=NAME for a method that stands twice.")
    ] = "",
    seeds: Annotated[int, typer.Option(help="How many runs a method has, each with a seed of its own.")] = 3,
    output: Annotated[
        Path | None, typer.Option(help="A folder for all runs; the same command goes on where it was stopped.")
    ] = None,
    model: Annotated[str, typer.Option(help="The encoder that every run starts from.")] = "builtin-base",
    pooling: Annotated[
        str | None, typer.Option(help="cls, mean, max, first_last, embed_last or last2; default: the model's own.")
    ] = None,
    eval_data: Annotated[
        list[Path] | None, typer.Option(help="Scored pairs to choose checkpoints by; default: label-free.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="The STS tasks to judge by; default: ISOTROPE_DATA, or label-free.")
    ] = None,
    aggregation: Annotated[str, typer.Option(help="all, mean or wmean over the subsets of STS12–16.")] = "all",
    suite: Annotated[
        str | None, typer.Option(help="Judge by sts, transfer, label-free, own (each method's own task), or a,b.")
    ] = None,
    own: Annotated[
        list[str] | None, typer.Option("--set", help="METHOD.SETTING=VALUE, for one method; may be given again.")
    ] = None,
    parallel: Annotated[int, typer.Option(help="How many runs at once, each in its own process.")] = 1,
    markdown: Annotated[Path | None, typer.Option(help="Write the table to this file, for a docs page.")] = None,
    as_json: Json = False,
) -> None:
    """Compare methods: equal start, text, steps and selection. Any setting of the loop can be given as --SETTING VALUE.

    A comparison.json in place of data is shown once more.
    """
    import isotrope
    from isotrope.comparison.comparison_table import FILE, Comparison

    sources, settings = apart([*data, *context.args])
    if len(sources) == 1 and Path(sources[0]).name == FILE and not methods:
        found = Comparison.read(sources[0])
    else:
        found = isotrope.compare(
            sources,
            [name for name in methods.split(",") if name],
            output,
            model=model,
            pooling=pooling,
            seeds=seeds,
            eval_data=eval_data,
            data_dir=data_dir,
            aggregation=aggregation,
            suite=suite,
            parallel=parallel,
            own=own_settings(own or ()),
            **settings,
        )
    if markdown is not None:
        found.write_markdown(markdown)
    print(
        json.dumps(found.to_dict(), ensure_ascii=False, indent=2)
        if as_json
        else f"{found.table()}folder: {found.folder}"
    )
    raise typer.Exit(1 if found.failures else 0)


@app.command()
def mine(
    pairs: Annotated[Path, typer.Argument(help="Pairs: .tsv, .csv, .jsonl or .parquet, plain or with .gz or .xz.")],
    output: Annotated[Path, typer.Option(help="Where the triples go (.tsv).")],
    model: Annotated[
        str, typer.Option(help="The encoder that says what is near: builtin, a folder or a hub id.")
    ] = "builtin",
    first: Annotated[
        int | None, typer.Option(help="The nearest rank that may be drawn; default 10, or 1 with --margin.")
    ] = None,
    last: Annotated[int, typer.Option(help="The farthest rank that may be drawn.")] = 50,
    margin: Annotated[
        float | None, typer.Option(help="A negative's cosine is at least so far below the positive's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draw among the ranks.")] = 42,
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Find a hard negative for each pair, and write triples."""
    import isotrope

    asked = columns.split(",") if columns else None
    found = isotrope.mine(pairs, model, output, first=first, last=last, margin=margin, seed=seed, columns=asked)
    facts = {"output": str(output), **found.counts()}
    rows = [
        {"what": name.replace("_", " "), "found": f"{value:.4f}" if isinstance(value, float) else value}
        for name, value in facts.items()
    ]
    show(facts, ("what", "found"), rows, as_json)


@app.command()
def encode(
    model: Annotated[str, typer.Argument(help="A folder, a hub id, or builtin.")],
    text: Annotated[Path, typer.Argument(help="A file of sentences.")],
    output: Annotated[Path, typer.Option(help="Where the vectors go (.npy).")],
    columns: Columns = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Unit length.")] = False,
    as_json: Json = False,
) -> None:
    """Write the vectors of a file's sentences, one row each, float32."""
    from isotrope import api

    facts = api.encode_file(model, text, output, columns.split(",") if columns else None, normalize)
    show(facts, tuple(facts), [facts], as_json)


@app.command("fit-space", context_settings=FREE)
def fit_space(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A space that `isotrope methods` lists: whitening, flow, …")],
    model: Annotated[str, typer.Argument(help="A folder, a hub id, builtin or builtin-base.")],
    text: Annotated[Path, typer.Argument(help="A file of sentences; no labels are used.")],
    output: Annotated[
        Path, typer.Option(help="A new folder for the mapped model; for sne and t-sne a .tsv for the points.")
    ],
    pooling: Annotated[
        str | None, typer.Option(help="cls, mean, max, first_last, embed_last or last2; default: the model's own.")
    ] = None,
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Fit a map behind an encoder. Any setting of the space can be given as --SETTING VALUE."""
    from isotrope import api

    asked = columns.split(",") if columns else None
    facts = api.write_space(name, model, text, output, pooling, asked, **settings_of(context.args))
    show(facts, tuple(facts), [facts], as_json)


@app.command()
def paraphrase(
    text: Annotated[Path, typer.Argument(help="A file of sentences.")],
    output: Annotated[Path, typer.Option(help="Where the pairs go (.tsv).")],
    model: Annotated[
        str, typer.Option(help="A model with a masked-language head: builtin-base, a folder or a hub id.")
    ] = "builtin-base",
    share: Annotated[float, typer.Option(help="How many of the words are replaced.")] = 0.15,
    seed: Annotated[int, typer.Option(help="Of the words that are replaced and of what replaces them.")] = 42,
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Write pairs for `train cert` where there are no paraphrases:

    each sentence, and itself with some words replaced by the model.
    """
    from isotrope import api

    facts = {
        "output": str(output),
        **api.paraphrase(text, output, model, share, seed, columns.split(",") if columns else None),
    }
    show(facts, tuple(facts), [facts], as_json)


@app.command()
def search(
    model: Annotated[str, typer.Argument(help="A folder, a hub id, or builtin.")],
    text: Annotated[Path, typer.Argument(help="A file of sentences; its vectors are kept beside it.")],
    query: Annotated[str, typer.Argument(help="What to look for.")],
    top: Annotated[int, typer.Option(help="How many.")] = 5,
    columns: Columns = None,
    as_json: Json = False,
) -> None:
    """Find the sentences nearest to a query."""
    from isotrope import api

    hits = api.search(model, text, query, top, columns.split(",") if columns else None)
    rows = [{"score": round(hit.score, 4), "line": hit.line, "text": hit.text} for hit in hits]
    show(rows, ("score", "line", "text"), rows, as_json)


@app.command()
def complete(
    model: Annotated[str, typer.Argument(help="A folder that `isotrope train lre` wrote.")],
    concept: Annotated[str, typer.Argument(help="A name, as it stands in the relations.")],
    relation: Annotated[str, typer.Argument(help="A relation, as it stands there.")],
    top: Annotated[int, typer.Option(help="How many.")] = 5,
    as_json: Json = False,
) -> None:
    """Name the concepts that stand in a relation to another."""
    from isotrope import api

    rows = [
        {"concept": one.concept, "distance": round(one.distance, 4)}
        for one in api.complete(model, concept, relation, top)
    ]
    show(rows, ("concept", "distance"), rows, as_json)


@app.command()
def leaks(
    text: Annotated[list[Path], typer.Argument(help="Training text: .txt or .tsv files, plain or with .gz or .xz.")],
    against: Annotated[
        list[Path] | None, typer.Option(help="A file whose sentences must not be trained on; may be given again.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Protect the STS, SICK and transfer sets of this folder.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write copies without the leaking lines into this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Look for sentences of the test sets in a training text."""
    from isotrope import api

    report = api.leaks(text, against, data_dir, output)
    show(report.to_dict(), ("text", "lines", "leaks"), report.rows(), as_json)
    if not as_json:
        print(f"protected: {sum(report.protected.values()):,} sentences of {', '.join(report.protected)}")
        for name, count in report.by_set.most_common():
            print(f"leaking from {name}: {count:,} lines")
        for example in report.examples:
            print(f"{example['file']}:{example['line']}: {example['text']} ({', '.join(example['sets'])})")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Say what this machine can do: threads, torch, bfloat16 (tried in a subprocess), offline."""
    from isotrope.doctor import examine

    facts = examine()
    rows = [
        {"what": name, "found": ", ".join(value) if isinstance(value, list) else value}
        for name, value in facts.items()
        if name != "advice"
    ]
    show(facts, ("what", "found"), rows, as_json)
    if not as_json:
        for sentence in facts["advice"]:
            print(f"advice: {sentence}")


if __name__ == "__main__":
    main()
