"""Commands that find texts: index, search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isotrope.cli.answer_output import print_rows
from isotrope.cli.application import Columns, Command, Json, Model, TruncateDim, app
from isotrope.cli.help_pages import USE
from isotrope.cli.options import split_names
from isotrope.errors import InputError
from isotrope.terminal import console, show, visible

if TYPE_CHECKING:
    from isotrope.search.hits import Hit
    from isotrope.search.passages import Passage

SHOWN = 240  # characters of a long text that are shown: those with the most words of the query


@app.command(cls=Command, rich_help_panel=USE)
def index(
    model: Model,
    output: Annotated[
        str, typer.Option(help="A folder, milvus:FILE (Milvus Lite) or http://HOST:PORT (a Milvus server).")
    ],
    text: Annotated[
        list[Path] | None,
        typer.Argument(help="Files of text: .txt, .tsv, .csv, .jsonl, .parquet, .md, .rst; or folders."),
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Columns of the text, joined by commas.")] = None,
    keep: Annotated[
        str | None, typer.Option(help="Columns to keep for filters and hits, joined by commas; default: all others.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="The column that names a row; a row that is added replaces it.")
    ] = None,
    precision: Annotated[str, typer.Option(help="float32, int8 or binary; the latter two are re-scored.")] = "float32",
    dimensions: Annotated[int | None, typer.Option(help="Leading dimensions to keep; default: all of them.")] = None,
    passages: Annotated[
        int | None,
        typer.Option(help="Split texts into passages of at most so many words, such as 80; default: whole texts."),
    ] = None,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Keep token states for search --rerank: fast, and a large index.")
    ] = False,
    stemmer: Annotated[
        str,
        typer.Option(help="Compare words by english stems or as they are (none); auto: stems where text is English."),
    ] = "auto",
    update: Annotated[
        bool, typer.Option("--update", help="Make the index one of exactly this text; only new texts are encoded.")
    ] = False,
    add: Annotated[bool, typer.Option("--add", help="Add these rows to those that are there.")] = False,
    delete: Annotated[str | None, typer.Option(help='Take out rows by a filter, such as "year < 2000".')] = None,
    as_json: Json = False,
) -> None:
    """Build an index of text files, or change one. A build that was stopped goes on by the same command."""
    import isotrope

    made = isotrope.index(
        model,
        list(text or ()),
        output,
        columns=split_names(columns),
        keep=split_names(keep),
        id_column=id_column,
        precision=precision,
        dimensions=dimensions,
        passages=passages,
        tokens=tokens,
        stemmer=stemmer,
        update=update,
        add=add,
        delete=delete,
    )
    print_rows(made.to_dict(), made.rows_of_table(), as_json)
    if made.costs and not as_json:
        costs = [cost.to_dict() for cost in made.costs]
        print_rows(costs, costs, as_json)


@app.command(cls=Command, rich_help_panel=USE)
def search(
    encoder: Annotated[str, typer.Argument(metavar="PLACE", help="An index; or a model, and then a file of text.")],
    words: Annotated[list[str] | None, typer.Argument(metavar="QUERY...", help="What to look for.")] = None,
    queries: Annotated[Path | None, typer.Option(help="A file of queries, one a line, in place of QUERY.")] = None,
    top: Annotated[int, typer.Option(help="How many are shown.")] = 10,
    mode: Annotated[
        str, typer.Option(help="hybrid (vectors and words), dense (vectors) or lexical (words).")
    ] = "hybrid",
    where: Annotated[str | None, typer.Option(help='A filter on kept columns, such as "year > 2020".')] = None,
    rerank: Annotated[
        int, typer.Option(help="Order so many of the first texts anew by their tokens, such as 30; 0: none.")
    ] = 0,
    passages: Annotated[
        int | None,
        typer.Option(help="Split a file of text into passages of at most so many words, such as 80."),
    ] = None,
    columns: Columns = None,
    truncate_dim: TruncateDim = None,
    stale: Annotated[bool, typer.Option("--stale", help="Search an index although its text has changed.")] = False,
    as_json: Json = False,
) -> None:
    """Find the texts that answer a query.

    Forms: search PLACE QUERY…, or search MODEL TEXT QUERY.
    """
    import isotrope
    from isotrope.search.index_place import is_index
    from isotrope.search.querying import read_queries

    before = list(words or ())[: 0 if is_index(encoder) else 1]
    asked = list(words or ())[len(before) :]
    if queries is not None and asked:
        raise InputError(f"queries names a file, and '{asked[0]}' is a query too; give one of them.", "queries")
    listed = None if queries is None else read_queries(queries)
    found: Any = isotrope.search(
        encoder,
        *before,
        *(asked if listed is None else [listed]),
        top=top,
        mode=mode,
        where=where,
        columns=split_names(columns),
        truncate_dim=truncate_dim,
        stale=stale,
        rerank=rerank,
        passages=passages,
    )
    alone = listed is None and len(asked) == 1
    groups: list[list[Hit]] = [found] if alone else found
    if as_json:
        shown = [[hit.to_dict() for hit in hits] for hits in groups]
        pairs = [{"query": query, "hits": hits} for query, hits in zip(listed or asked, shown, strict=True)]
        print_rows(shown[0] if alone else pairs, [], as_json)
        return
    for query, hits in zip(listed or asked, groups, strict=True):
        if not alone:
            show(query)
        _print_hits(hits)


def _print_hits(hits: list[Hit]) -> None:
    """A table with the words of the query marked: bold at a terminal, **so** in a file."""
    from rich.table import Table

    from isotrope.search.section_rows import HEADING

    if not hits:
        show("Nothing was found.")
        return
    here = console()
    names = list(hits[0].columns)
    several, named = len({hit.file for hit in hits}) > 1, any(hit.id is not None for hit in hits)
    names = [name for name in names if not named or any(str(hit.columns[name]) != hit.id for hit in hits)]  # the id
    several |= HEADING in names
    if HEADING in names and all(hit.text.startswith(str(hit.columns[HEADING])) for hit in hits):
        names.remove(HEADING)
    split = any(hit.passage is not None and hit.passage.of > 1 for hit in hits)
    shown = {"place": several, "line": not several, "passage": split, "id": named}
    head = ["score", *(name for name, is_shown in shown.items() if is_shown), "text", *names]
    table = Table(*map(visible, head))
    for hit in hits:
        facts = {
            "place": f"{hit.file}:{hit.line}",
            "line": str(hit.line),
            "passage": _which(hit.passage),
            "id": hit.id or "",
        }
        cells = [f"{hit.score:.4f}", *(visible(facts[name]) for name, is_shown in shown.items() if is_shown)]
        after = ["" if hit.columns[name] is None else hit.columns[name] for name in names]
        table.add_row(*cells, _marked(hit, here.is_terminal), *(visible(_short(str(cell))) for cell in after))
    console(width=here.width if here.is_terminal else 200).print(table)


def _marked(hit: Hit, styled: bool) -> Any:
    from rich.text import Text

    from isotrope.search.query_words import cutting

    first, last = cutting(hit.text, hit.marks, SHOWN)
    shown, place = Text("…" if first else ""), first
    for start, end in hit.marks:
        if first <= start and end <= last:
            shown.append(visible(hit.text[place:start]))
            word = visible(hit.text[start:end])
            shown.append(word if styled else f"**{word}**", style="bold" if styled else "")
            place = end
    shown.append(visible(hit.text[place:last]))
    return shown.append("…" if last < len(hit.text) else "")


def _which(passage: Passage | None) -> str:
    return "" if passage is None else f"{passage.number} of {passage.of}"


def _short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
