"""Tokenize what later stages read, at home or while a GPU is busy: they find the tokens in the cache.

    token_caches.py MODEL METHOD=FILE…           files, as these methods read them
    token_caches.py MODEL --recipe RECIPE.yaml   the sources of a recipe
    token_caches.py MODEL --pack OUTPUT TEXT…    the rows of `isotrope pretrain`, as a folder that it takes

The vocabulary is MODEL's; whatever is trained from it keeps that, so the caches serve all later stages.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

import isotrope
from isotrope.data.corpus import open_corpus
from isotrope.data.packing import pack
from isotrope.files import cache_folder
from isotrope.methods.frame.method_registry import find

LENGTH = 128  # tokens of a row


def main(model: str, first: str, *more: str) -> None:
    tokenizer = isotrope.load(model, device="cpu").text_tokenizer
    if first == "--pack":
        packed(tokenizer, *more)
    elif first == "--recipe":
        read = yaml.safe_load(Path(*more).read_text(encoding="utf-8"))["sources"]
        tokenized(tokenizer, ((source["method"], source["data"]) for source in read))
    else:
        tokenized(tokenizer, (tuple(word.split("=", 1)) for word in (first, *more)))


def tokenized(tokenizer: Any, sources: Iterable[tuple[str, ...]]) -> None:
    for method, file in sources:
        began, found = time.perf_counter(), find(method)
        corpus = open_corpus(file, found.record_types(found.Settings()), tokenizer)
        print(f"{file}: {corpus.counts.records:,} records, {time.perf_counter() - began:.0f} s", flush=True)


def packed(tokenizer: Any, output: str, *texts: str) -> None:
    made = pack(texts, tokenizer, tokenizer.prefix[0], tokenizer.suffix[0], LENGTH)
    shutil.copytree(cache_folder() / "packed" / made.fingerprint, output)
    print(f"{output}: {len(made.train):,} rows, {len(made.held):,} held out")


if __name__ == "__main__":
    main(*sys.argv[1:])
