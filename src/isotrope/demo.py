"""The main job on text that every machine with Python has: the docstrings of the standard library.

    python -m isotrope.demo [--output demo]

Adapts the built-in encoder to them, shows held-out measures before and after, and answers three queries.
"""

from __future__ import annotations

import ast
import inspect
import re
import sysconfig
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

STEPS = 40
QUERIES = ("delete a file", "wait until another thread has finished", "pick a random element of a list")


def docstrings(root: Path) -> Iterator[str]:
    """Every docstring below ``root``, tests left out."""
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).parts
        if {"test", "tests", "idle_test", "site-packages", "lib2to3"} & set(parts):
            continue
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, OSError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    yield inspect.cleandoc(text)


def sentences(text: str) -> list[str]:
    """The prose of a docstring: sentences of 5 to 60 words, no examples, no tables of arguments."""
    from isotrope.data.sentences import split_sentences

    prose = [part for part in re.split(r"\n\s*\n", text) if not re.search(r"^\s*(>>>|\.\.|[-=+*#|]{3,})", part, re.M)]
    found = (" ".join(sentence.split()) for part in prose for sentence in split_sentences(part))
    return [
        s
        for s in found
        if 5 <= len(s.split()) <= 60 and s[0].isalpha() and sum(c.isalpha() or c == " " for c in s) > 0.85 * len(s)
    ]


def standard_library() -> list[list[str]]:
    """The sentences of each docstring that has some."""
    return [found for text in docstrings(Path(sysconfig.get_paths()["stdlib"])) if (found := sentences(text))]


def write_corpus(path: Path, summaries: Path) -> tuple[int, int]:
    """Write one sentence a line with a blank line between documents, and the first sentences alone, to search in.

    Returns how many documents and sentences there are.
    """
    from isotrope.files import written_file

    documents = standard_library()
    with written_file(path) as temporary:
        temporary.write_text("\n\n".join("\n".join(document) for document in documents) + "\n", encoding="utf-8")
    with written_file(summaries) as temporary:
        temporary.write_text("\n".join(dict.fromkeys(document[0] for document in documents)) + "\n", encoding="utf-8")
    return len(documents), sum(len(document) for document in documents)


def write_pairs(path: Path) -> int:
    """Write the first sentence of each docstring with the rest of it; returns how many pairs there are."""
    from isotrope.files import written_file

    pairs = dict.fromkeys((document[0], " ".join(document[1:])) for document in standard_library() if document[1:])
    with written_file(path) as temporary:
        temporary.write_text("\n".join(["query\tpassage", *map("\t".join, pairs)]) + "\n", encoding="utf-8")
    return len(pairs)


def main(
    output: Annotated[Path, typer.Option(help="Where the demo works; each run gets a folder of its own.")] = Path(
        "demo"
    ),
) -> None:
    """Gather text, adapt, compare, search."""
    from rich.table import Table

    import isotrope
    from isotrope.search.kept_index import kept_index
    from isotrope.terminal import console as plain_console
    from isotrope.terminal import visible

    warnings.filterwarnings("ignore", module=r"(torch|transformers|accelerate)\b")
    console = plain_console()
    begun = time.perf_counter()
    place = output / time.strftime("%Y%m%d-%H%M%S")
    pairs = place / "docstrings.tsv"
    summaries = place / "summaries.txt"
    documents, _ = write_corpus(place / "standard-library.txt", summaries)
    count = write_pairs(pairs)
    console.print(f"Text: {documents:,} docstrings of the standard library, {count:,} pairs (first sentence, rest)")

    run = isotrope.train(data=pairs, output=place / "adapted", max_steps=STEPS, final_table=False)
    evaluations = {line["step"]: line["evaluation"] for line in run.history if "evaluation" in line}
    title = f"builtin, adapted to these docstrings: step {run.selected_step} of {STEPS}"
    table = Table("held-out docstrings", "before", "after", "better", title=title)
    rows = {
        "the first sentence finds its docstring (MRR)": ("retrieval_mrr", "higher"),
        "its docstring ranked first": ("retrieval_first", "higher"),
        "alignment of the two": ("alignment", "lower"),
        "uniformity": ("uniformity", "lower"),
        "mean cosine of random texts": ("mean_cosine", "near 0"),
    }
    for label, (name, better) in rows.items():
        table.add_row(label, f"{evaluations[0][name]:.3f}", f"{evaluations[run.selected_step][name]:.3f}", better)
    console.print(table)

    index = kept_index(run.encoder, summaries)
    for query, hits in zip(QUERIES, index.search(list(QUERIES), top=3), strict=True):
        console.print(f"\n{query}", style="bold")
        for hit in hits:
            console.print(visible(f"  {hit.text}"))
    folder = run.folder / "model"
    console.print(
        f'\nThe encoder is in {folder}; try:\n  isotrope search {folder} {summaries} "your query"', soft_wrap=True
    )
    console.print(f"{time.perf_counter() - begun:.0f} seconds")


if __name__ == "__main__":
    typer.run(main)
