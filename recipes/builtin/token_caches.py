"""Tokenize what later stages read, while a GPU is busy with an earlier one: they find the tokens in the cache.

    python recipes/builtin/token_caches.py MODEL RECIPE.yaml METHOD=FILE…     the sources of a recipe, and further files

The vocabulary is MODEL's; whatever is trained from it keeps that, so the caches serve all later stages.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

import isotrope
from isotrope.data.corpus import open_corpus
from isotrope.methods.frame.method_registry import find


def main(model: str, recipe: str, *more: str) -> None:
    tokenizer = isotrope.load(model, device="cpu").text_tokenizer
    for method, file in sources(Path(recipe), *more):
        began, found = time.perf_counter(), find(method)
        corpus = open_corpus(file, found.record_types(found.Settings()), tokenizer)
        print(f"{file}: {corpus.counts.records:,} records, {time.perf_counter() - began:.0f} s", flush=True)


def sources(recipe: Path, *more: str) -> Iterator[tuple[str, str]]:
    """(method, file): what is named first, then the recipe's."""
    for each in more:
        method, _, file = each.partition("=")
        yield method, file
    for source in yaml.safe_load(recipe.read_text(encoding="utf-8"))["sources"]:
        yield source["method"], source["data"]


if __name__ == "__main__":
    main(*sys.argv[1:])
