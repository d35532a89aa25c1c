"""Hyperlinks of a wiki → rows for EASE: a sentence, the entity that it links to, and the page that it stands on.

Links through a redirect lead to the page that it names. Links of a page to itself, and entities with few links, are
left out. The type of an entity is the infobox of its page, or what a file of types says (Wikidata's instance-of).
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from isotrope.data.packed_streams import unpacking
from isotrope.data.tables import check_file, table_of
from isotrope.data.wiki_pages import read_pages, title_of
from isotrope.data.wikitext import linked_sentences
from isotrope.errors import InputError
from isotrope.files import written_file
from isotrope.progress import bar

HOPS = 4  # from redirect to redirect, at most


@dataclass(frozen=True)
class ExtractedLinks:
    """What was written, and what was left out: links of a page to itself, links to entities that have too few."""

    output: Path
    pages: int
    redirects: int
    rows_written: int
    sentences: int
    entities: int
    with_type: int
    self_links: int
    rare_links: int

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "output": str(self.output)}

    def rows(self) -> list[dict[str, Any]]:
        return [{"what": name.replace("_", " "), "found": value} for name, value in self.to_dict().items()]


@dataclass
class Wiki:
    """What is known once all pages have been read."""

    redirects: dict[str, str]
    types: Mapping[str, Sequence[str]]
    pages: int = 0

    def entity(self, link: str) -> str:
        """The page that a link leads to."""
        title = title_of(link)
        for _ in range(HOPS):
            if title not in self.redirects:
                break
            title = self.redirects[title]
        return title


def extract_links(
    sources: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    types: str | os.PathLike[str] | None = None,
    min_links: int = 10,
) -> ExtractedLinks:
    """Write ``output`` (.tsv: sentence, entity, page and, where types are known, entity_type).

    An entity needs ``min_links`` links, 10 in the paper. ``types`` is a table with the columns entity and entity_type;
    an entity with several types has several rows there, and its links take them in turn. Titles of redirects, and one
    page, are held in memory; the links wait on disk.
    """
    target = Path(output)
    given = None if types is None else read_types(types)
    with (
        written_file(target) as temporary,
        tempfile.TemporaryFile("w+", dir=temporary.parent, encoding="utf-8") as waiting,
    ):
        wiki = _collect(sources, waiting, given)
        counts = Counter(entity for _, page, entity in _links(waiting, wiki) if entity != page)
        with open(temporary, "w", encoding="utf-8") as lines:
            return _write(lines, waiting, wiki, counts, min_links, target)


def read_types(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """The types of each entity, in the order of the file."""
    source = check_file(path)
    found: dict[str, list[str]] = {}
    with unpacking(source):
        header, rows = table_of(source)
        if not {"entity", "entity_type"} <= set(header):
            raise InputError(
                f"{source}: columns found: {', '.join(map(repr, header))}; types need entity and entity_type."
            )
        for _, row in rows:
            entity, sort = (" ".join(str(row.get(name) or "").split()) for name in ("entity", "entity_type"))
            if entity and sort:
                found.setdefault(title_of(entity), []).append(sort)
    return found


def _collect(sources: Sequence[str | os.PathLike[str]], waiting: TextIO, given: dict[str, list[str]] | None) -> Wiki:
    """Read all pages once; a line of ``waiting`` is a page, a sentence and its links, with tabs between them."""
    boxes: dict[str, Sequence[str]] = {}
    wiki = Wiki({}, boxes if given is None else given)
    with bar("reading pages", None) as advance:
        for source in sources:
            for page in read_pages(source):
                advance(1)
                if page.redirect:
                    wiki.redirects[page.title] = page.redirect
                    continue
                wiki.pages += 1
                if page.type:
                    boxes[page.title] = (page.type,)
                for sentence, links in linked_sentences(page.marked):
                    waiting.write("\t".join([page.title, sentence, *(" ".join(link.split()) for link in links)]) + "\n")
    return wiki


def _links(waiting: TextIO, wiki: Wiki) -> Iterator[tuple[str, str, str]]:
    """Sentence, page and entity of each link; an entity once a sentence."""
    waiting.seek(0)
    for line in waiting:
        page, sentence, *links = line.rstrip("\n").split("\t")
        for entity in dict.fromkeys(map(wiki.entity, links)):
            yield sentence, page, entity


def _write(
    lines: TextIO, waiting: TextIO, wiki: Wiki, counts: Counter[str], min_links: int, target: Path
) -> ExtractedLinks:
    typed = bool(wiki.types)
    lines.write("\t".join(["sentence", "entity", "page", *["entity_type"] * typed]) + "\n")
    found: Counter[str] = Counter()
    last, turns = "", Counter[str]()
    for sentence, page, entity in _links(waiting, wiki):
        if entity == page or counts[entity] < min_links:
            found["self" if entity == page else "rare"] += 1
            continue
        sorts = wiki.types.get(entity, ())
        sort = sorts[turns[entity] % len(sorts)] if sorts else ""
        turns[entity] += 1
        lines.write("\t".join([sentence, entity, page, *[sort] * typed]) + "\n")
        found.update(rows=1, sentences=sentence != last, typed=bool(sort))
        last = sentence
    if not found["rows"]:
        raise InputError(
            f"No entity has {min_links} links in {wiki.pages:,} pages ({found['rare']:,} links read); lower min_links "
            "or give more pages.",
            setting="min_links",
        )
    return ExtractedLinks(
        target,
        wiki.pages,
        len(wiki.redirects),
        found["rows"],
        found["sentences"],
        len(turns),
        found["typed"],
        found["self"],
        found["rare"],
    )
