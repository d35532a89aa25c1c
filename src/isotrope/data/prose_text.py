"""Documents as people keep them → one text of sentences in the cache, which every reader of a .txt takes.

    docs/guide.md, docs/api/…     →     docs.txt       a sentence a line; a blank line behind each document
                                        origins.txt    line by line, the file and the line that a sentence comes from

A file is a document. Of a file that is given alone, so is each part under a heading of the first or second level.
The text has its place by the content of all files: one that is changed, added, removed or renamed makes another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from isotrope.data.cache_folders import is_whole, write_facts
from isotrope.data.prose_blocks import blocks_of
from isotrope.data.prose_files import LeftOut, ProseFiles, check_document, content_of_document, is_prose, prose_files
from isotrope.data.sentences import split_sentences
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, written_folder
from isotrope.progress import bar, say

FORMAT = "prose-3"
FACTS, ORIGINS = "prose.json", "origins.txt"
DOCUMENT_LEVEL = 2  # headings that begin a document, in a file alone
_made: dict[tuple[object, ...], Path] = {}  # by this process, of files in a state


def prose_text(place: Path) -> Path:
    """The text of a folder or a file of documents, made where it is not there yet."""
    files = prose_files(place)
    state = (cache_folder(), place.resolve(), files.state())
    if state not in _made or not _made[state].is_file():
        _made[state] = _found_or_made(files)
    return _made[state]


def origin(place: Path, line: int) -> tuple[str, int] | None:
    """The document, and its line, that a line of a text comes from; None for a text that no documents are in."""
    text = prose_text(place) if is_prose(place) else place
    if not (text.parent / FACTS).is_file():
        return None
    with open(text.parent / ORIGINS, encoding="utf-8") as origins:
        document, _, number = next(islice(origins, line - 1, None)).rpartition(":")
    return document, int(number)


def _found_or_made(files: ProseFiles) -> Path:
    with bar(f"looking at {files.title}", len(files.paths)) as advance:
        contents = []
        for path in files.paths:
            contents.append(content_of_document(path))
            advance()
    names = [files.name(path) for path in files.paths]
    folder = cache_folder() / "prose" / digest(FORMAT, files.title, *names, *contents, str(files.left_out))
    if not is_whole(folder / FACTS, str(files.place), "text"):
        with written_folder(folder, whole=FACTS) as temporary:
            _write(temporary, files, contents)
    facts, text = json.loads((folder / FACTS).read_text(encoding="utf-8")), folder / f"{files.title}.txt"
    left_out = f"; {facts['left_out']}" if facts["left_out"] else ""
    counts = (f"{count:,} {name[: -1 if count == 1 else None]}" for name, count in facts["counts"].items())
    say(f"{files.place}: {', '.join(counts)} ({text}){left_out}")
    return text


def _write(folder: Path, files: ProseFiles, contents: list[str]) -> None:
    documents, sentences, left_out = 0, 0, files.left_out
    with (
        open(folder / f"{files.title}.txt", "w", encoding="utf-8") as text,
        open(folder / ORIGINS, "w", encoding="utf-8") as origins,
        bar(f"reading {files.title}", len(files.paths)) as advance,
    ):
        for path, content in zip(files.paths, contents, strict=True):
            shown = files.name(path)
            for sentence in _sentences(path, shown, left_out, cut=path == files.place):
                if sentence.begins:
                    text.write("\n" * bool(documents))
                    origins.write("\n" * bool(documents))
                text.write(f"{sentence.text}\n")
                origins.write(f"{shown}:{sentence.line}\n")
                documents, sentences = documents + sentence.begins, sentences + 1
            if content_of_document(path) != content:
                raise InputError(
                    f"{path}: the file changed while it was read; wait until it is written, and try again."
                )
            advance()
    if not sentences:
        ending = f"; {left_out}" if left_out.count else ""
        raise InputError(f"{files.place}: no sentences found in {len(files.paths):,} files{ending}.")
    counts = {"documents": documents, "sentences": sentences}
    write_facts(folder / FACTS, {"counts": counts, "left_out": str(left_out)})


class Sentence(NamedTuple):
    """``line`` is that of its paragraph; ``begins``: it is the first one of a document."""

    text: str
    line: int
    begins: bool


def _sentences(path: Path, shown: str, left_out: LeftOut, cut: bool) -> Iterator[Sentence]:
    """Of one file; none of what is no text. ``cut``: headings begin documents, but for those that nothing precedes."""
    try:
        check_document(path)
        begins, written = True, False
        for block in blocks_of(path):
            begins |= cut and written and 0 < block.level <= DOCUMENT_LEVEL
            for sentence in [block.text] if block.level else split_sentences(block.text):
                yield Sentence(sentence, block.line, begins)
                begins = False
            written = not block.level
    except (InputError, OSError) as error:
        left_out.add(shown, path, error)
