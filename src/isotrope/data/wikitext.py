"""Wiki markup → sentences with the links in them.

Templates, tables, references, files, headings and lists go; what is left is prose. A link is kept as its words, and
remembered by where they stand. This is no full parser: what a template would have written is missing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from isotrope.data.sentences import split_sentences

# Around the number and the words of a link; control characters stand in no text.
OPEN, WORDS, CLOSE = "\x02", "\x03", "\x04"
LINK = re.compile(r"\[\[([^\[\]|]*)(?:\|([^\[\]]*))?\]\]")  # without a link inside
ANCHOR = re.compile(r'<a href="([^"]*)">(.*?)</a>', re.DOTALL)
MARKED = re.compile(f"{OPEN}(\\d+){WORDS}(.*?){CLOSE}", re.DOTALL)
GONE = re.compile(
    r"<!--.*?-->|<(ref|math|gallery|timeline|syntaxhighlight|source|code|pre|chem|score)\b[^<>]*?/>"
    r"|<(ref|math|gallery|timeline|syntaxhighlight|source|code|pre|chem|score)\b[^<>]*>.*?</\2\s*>",
    re.DOTALL | re.IGNORECASE,
)
BRACES = re.compile(r"\{\{[^{}]*\}\}|\{\|[^{}]*\|\}")
OUTER = re.compile(r"\[(?:https?:|ftp:|//)[^\s\]]*\s*([^\]]*)\]")
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
QUOTES = re.compile(r"''+")
MAGIC = re.compile(r"__[A-Z]+__")
EMPTY_BRACKETS = re.compile(r"\(\s*[,;]?\s*\)")
NO_PROSE = tuple("=*#:;|!{}")
INTERWIKI = re.compile(r"[a-z][a-z-]{1,11}:(?! )")  # fr:Paris, wikt:cat


class Marked(NamedTuple):
    """A text in which each link has a number, and the targets by these numbers."""

    text: str
    targets: list[str]


def mark_wikitext(markup: str, namespaces: frozenset[str]) -> Marked:
    """Prose of a page, a paragraph a line. Links to pages of ``namespaces`` go with their words, inner links too."""
    text = _until_still(BRACES, GONE.sub("", markup.translate({2: None, 3: None, 4: None})))
    targets: list[str] = []

    def mark(link: re.Match[str]) -> str:
        target = link[1].strip()
        words = (link[2] or "").strip() or target
        if _is_outside(target, namespaces):
            return ""
        targets.append(target)
        return f"{OPEN}{len(targets) - 1}{WORDS}{words}{CLOSE}"

    while True:
        text, changed = LINK.subn(mark, text)
        if not changed:
            break
    text = OUTER.sub(r"\1", MAGIC.sub("", QUOTES.sub("", text)))
    return Marked(EMPTY_BRACKETS.sub("", html.unescape(TAG.sub("", text))), targets)


def mark_html(text: str, namespaces: frozenset[str]) -> Marked:
    """The same for text with <a href="…"> in it, escaped or not."""
    targets: list[str] = []

    def mark(anchor: re.Match[str]) -> str:
        target = unquote(html.unescape(anchor[1]))
        if _is_outside(target, namespaces):
            return anchor[2]
        targets.append(target)
        return f"{OPEN}{len(targets) - 1}{WORDS}{anchor[2].strip()}{CLOSE}"

    plain = html.unescape(text) if "&lt;a href" in text else text
    plain = ANCHOR.sub(mark, plain.translate({2: None, 3: None, 4: None}))
    return Marked(html.unescape(TAG.sub("", plain)), targets)


def linked_sentences(marked: Marked) -> Iterator[tuple[str, list[str]]]:
    """The sentences that hold a link, each with the targets of its links."""
    for line in marked.text.split("\n"):
        line = line.strip()
        if OPEN not in line or line.startswith(NO_PROSE):
            continue
        text, links = _unmarked(" ".join(line.split()), marked.targets)
        end = 0
        for sentence in split_sentences(text):
            start = text.find(sentence, end)
            end = start + len(sentence)
            inside = [target for place, target in links if start <= place < end]
            if inside:
                yield sentence, list(dict.fromkeys(inside))


def _unmarked(line: str, targets: list[str]) -> tuple[str, list[tuple[int, str]]]:
    """The text with single blanks, and where in it each link begins."""
    text, links, done = "", [], 0
    for mark in MARKED.finditer(line):
        text = _appended(text, line[done : mark.start()])
        links.append((len(text), targets[int(mark[1])]))
        text = _appended(text, MARKED.sub(r"\2", mark[2]))
        done = mark.end()
    return _appended(text, line[done:]).rstrip(), links


def _appended(text: str, more: str) -> str:
    return text + (more.lstrip() if text.endswith(" ") or not text else more)


def _is_outside(target: str, namespaces: frozenset[str]) -> bool:
    """Whether a link leads to no article of this wiki: files, categories, other wikis, a place on the page."""
    name = target.lstrip(": ")
    prefix, colon, _ = name.partition(":")
    known = prefix.strip().replace("_", " ").lower()
    return (
        not name.partition("#")[0].strip()
        or "://" in name
        or bool(INTERWIKI.match(name))
        or (bool(colon) and (known in namespaces or known.removesuffix(" talk") in namespaces))
    )


def _until_still(pattern: re.Pattern[str], text: str) -> str:
    """Take out what stands innermost until nothing is left to take."""
    while True:
        text, changed = pattern.subn("", text)
        if not changed:
            return text
