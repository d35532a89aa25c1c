"""The main job on text that every machine with Python has: the documentation strings of the standard library.

    python -m isotrope.demo [--output demo]

Trains an encoder with unsupervised SimCSE, shows label-free measures before and after, and answers three queries.
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

QUERIES = ("remove a file from disk", "wait until another thread has finished", "turn a number into text")


def docstrings(root: Path) -> Iterator[str]:
    """Every documentation string below ``root``, tests left out."""
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
    """The prose of a documentation string: sentences with a few words, no examples, no tables of arguments."""
    from isotrope.data.sentences import split_sentences

    prose = [part for part in re.split(r"\n\s*\n", text) if not re.search(r"^\s*(>>>|\.\.|[-=+*#|]{3,})", part, re.M)]
    found = (" ".join(sentence.split()) for part in prose for sentence in split_sentences(part))
    return [s for s in found if 5 <= len(s.split()) <= 60 and s[0].isalpha() and sum(c.isalpha() or c == " " for c in s) > 0.85 * len(s)]


def write_corpus(path: Path) -> tuple[int, int]:
    """One sentence a line, a blank line between documents; returns their numbers."""
    from isotrope.files import written_file

    documents = [found for text in docstrings(Path(sysconfig.get_paths()["stdlib"])) if (found := sentences(text))]
    with written_file(path) as temporary:
        temporary.write_text("\n\n".join("\n".join(document) for document in documents) + "\n", encoding="utf-8")
    return len(documents), sum(len(document) for document in documents)


def starting_point(corpus: Path, folder: Path) -> str:
    """The built-in encoder, or, where this version ships none, a small one pre-trained on the spot."""
    import isotrope
    from isotrope.encoders.fresh import fresh_encoder
    from isotrope.encoders.loading import find_folder
    from isotrope.errors import InputError

    try:
        find_folder("builtin-base")
        return "builtin-base"
    except InputError:
        print("This version ships no built-in encoder; pre-training a small one on the same text first.")
    lines = [line for line in corpus.read_text(encoding="utf-8").splitlines() if line]
    fresh = fresh_encoder(lines, vocabulary=8192, layers=2, width=128, heads=4, max_length=64)
    run = isotrope.train("mlm", corpus, model=fresh, output=folder, max_steps=150, learning_rate=5e-4, eval_steps=150, max_length=48)
    return str(run.folder / "model")


def main(output: Annotated[Path, typer.Option(help="Where the demo works; each run gets a folder of its own.")] = Path("demo")) -> None:
    """Gather text, train, compare, search."""
    from rich.console import Console
    from rich.table import Table

    import isotrope
    from isotrope.search.exact import index_file

    warnings.filterwarnings("ignore", module=r"(torch|transformers|accelerate)\b")
    console = Console()
    begun = time.perf_counter()
    place = output / time.strftime("%Y%m%d-%H%M%S")
    corpus = place / "standard-library.txt"
    documents, count = write_corpus(corpus)
    console.print(f"Text: {count:,} sentences of {documents:,} documentation strings of the standard library → {corpus}")

    start = starting_point(corpus, place / "start")
    run = isotrope.train(
        "simcse",
        corpus,
        model=start,
        output=place / "simcse",
        max_steps=100,
        batch_size=64,
        learning_rate=1e-4,
        eval_steps=20,
        max_length=48,
    )
    evaluations = {line["step"]: line["evaluation"] for line in run.history if "evaluation" in line}
    table = Table("held-out text, no labels", "before", "after", "better", title=f"SimCSE, step {run.selected_step} of 100")
    rows = {
        "finds its neighbour in the document (MRR)": ("retrieval_mrr", "higher"),
        "neighbour ranked first": ("retrieval_first", "higher"),
        "alignment of neighbours": ("alignment", "lower"),
        "uniformity": ("uniformity", "lower"),
        "effective rank": ("effective_rank", "higher"),
        "mean cosine of random sentences": ("mean_cosine", "near 0"),
    }
    for label, (name, better) in rows.items():
        table.add_row(label, f"{evaluations[0][name]:.3f}", f"{evaluations[run.selected_step][name]:.3f}", better)
    console.print(table)

    index = index_file(run.encoder, corpus)
    for query, hits in zip(QUERIES, index.search(list(QUERIES), top=3), strict=True):
        console.print(f"\n[bold]{query}[/bold]")
        for hit in hits:
            console.print(f"  {hit.score:.3f}  {hit.text}", highlight=False, markup=False)
    console.print(f'\nThe encoder is in {run.folder / "model"}; try: isotrope search {run.folder / "model"} {corpus} "your query"')
    console.print(f"{time.perf_counter() - begun:.0f} seconds")


if __name__ == "__main__":
    typer.run(main)
