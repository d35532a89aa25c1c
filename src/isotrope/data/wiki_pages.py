"""The pages of a wiki: a MediaWiki XML dump, or the JSON lines that wikiextractor writes with --json --links.

A dump is read as a stream, plain or packed (.bz2, .gz, .xz): one page is in memory at a time. Only articles are given;
a redirect is a page that names another one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from xml.etree import ElementTree

from isotrope.data.json_rows import parse_row
from isotrope.data.packed_streams import opened, unpacking
from isotrope.data.tables import check_readable
from isotrope.data.text_lines import lines_of
from isotrope.data.wikitext import Marked, mark_html, mark_wikitext
from isotrope.errors import InputError

KINDS = "a MediaWiki .xml dump or wikiextractor's JSON lines, plain or packed"
HALF = re.compile("[\ud800-\udfff]")  # JSON can spell it, and no file can hold it
INFOBOX = re.compile(r"\{\{\s*infobox[ _]+([^|{}<\n]+)", re.IGNORECASE)
# Prefixes of pages that are no articles; a dump names those of its language itself.
NAMESPACES = frozenset(
    """media special talk user wikipedia project wp file image mediawiki template help category portal draft book
    timedtext module""".split()
)


class Page(NamedTuple):
    """An article: its title, its text with the links marked, and where it leads if it is a redirect.

    ``type`` is the name of its infobox, which says what the thing is; empty where it has none.
    """

    title: str
    marked: Marked
    redirect: str = ""
    type: str = ""


def read_pages(path: str | os.PathLike[str]) -> Iterator[Page]:
    """The articles of one file, in order; the first letter of the file tells the format."""
    source = check_readable(path, KINDS)
    with unpacking(source):
        with opened(source) as file:
            begin = file.read(1 << 12).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if begin == b"{":
            yield from _from_json(source)
            return
        if begin != b"<":
            raise InputError(f"{source}: neither XML nor JSON lines; give {KINDS}.")
        with opened(source) as file:
            yield from _from_xml(file, source)


def title_of(link: str) -> str:
    """The title that the target of a link stands for: no section, blanks for _, a capital first."""
    title = " ".join(link.partition("#")[0].replace("_", " ").split()).lstrip(": ")
    return title[:1].upper() + title[1:]


def _from_xml(file: BinaryIO, source: Path) -> Iterator[Page]:
    namespaces = set(NAMESPACES)
    root: Any = None
    try:
        for event, element in ElementTree.iterparse(file, events=("start", "end")):
            name = _local(element)
            if root is None:
                root = _checked(element, name, source)
            if event == "start":
                continue
            if name == "namespace" and element.text:
                namespaces.add(element.text.strip().lower())
            if name == "page":
                page = _page(element, frozenset(namespaces))
                root.clear()
                if page is not None:
                    yield page
    except ElementTree.ParseError as error:
        line, column = error.position
        raise InputError(
            f"{source}:{line}: the XML breaks off or is damaged here (column {column}); fetch the dump again."
        ) from error


def _checked(root: Any, name: str, source: Path) -> Any:
    if name != "mediawiki":
        raise InputError(f"{source}: the XML is a <{name}>, not a MediaWiki dump (<mediawiki>); give {KINDS}.")
    return root


def _page(element: Any, namespaces: frozenset[str]) -> Page | None:
    """None for talk pages, templates and their like."""
    found = {_local(part): part for part in element.iter()}
    title = " ".join((found["title"].text or "").split()) if "title" in found else ""
    space = (found["ns"].text or "0").strip() if "ns" in found else "0"
    if not title or space != "0":
        return None
    if "redirect" in found:
        return Page(title, Marked("", []), redirect=title_of(found["redirect"].get("title") or ""))
    text = (found["text"].text or "") if "text" in found else ""
    box = INFOBOX.search(text)
    return Page(title, mark_wikitext(text, namespaces), type=" ".join(box[1].split()).lower() if box else "")


def _local(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _from_json(source: Path) -> Iterator[Page]:
    for number, line in lines_of(source):
        if not line.strip():
            continue
        row = parse_row(line, f"{source}:{number}")
        if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in ("title", "text")):
            raise InputError(f"{source}:{number}: an object with a title and a text was expected.")
        if HALF.search(row["title"]) or HALF.search(row["text"]):
            raise InputError(f"{source}:{number}: the text holds half a character; write the file anew.")
        if row["title"].strip():
            yield Page(" ".join(row["title"].split()), mark_html(row["text"], NAMESPACES))
