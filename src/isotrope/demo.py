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
