"""Markdown → headings and paragraphs. CommonMark and tables are parsed by markdown-it; what sites add to them is not
Markdown: front matter, admonitions, formulas between dollars, notes and links of a wiki.

Links keep their words, images their alternative text, tables their cells; code blocks, formulas, comments and marks
are left out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from isotrope.data.prose_blocks import Block, row_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_TITLE = re.compile(r"title\s*[:=]\s*(.+)")
_SETTING = re.compile(r"[\w.\"'-]+\s*(?:=|:(?:\s|$))|\[")  # name: value, name = value, [part]
# !!! note "Title", ??? note, === "Tab": what follows is indented, and is text.
_INDENTING = re.compile(r'( *)(?:(?:!!!|\?\?\?\+?) +[\w -]+?(?: +"(.*)")?|===[+!]? +"(.+)") *')
_FORMULA = re.compile(r"^ *\$\$(?:(?!\n\s*\n|\$\$).)*\$\$ *$", re.MULTILINE | re.DOTALL)
_HTML = re.compile(r"<(script|style|pre|svg)\b.*?</\1>|<!--.*?-->|<[^>]*>", re.DOTALL | re.IGNORECASE)
_WIKI_LINK = re.compile(r"!?\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_NOTE = re.compile(r"\[\^[^\]]+\]:?")
_ENDS = re.compile(r"^\[[ xX]\]\s+|\{[:.#][^}]*\}\s*$")  # boxes of a to-do list, attributes


def markdown_blocks(lines: Sequence[str]) -> Iterator[Block]:
    line, level, row = 1, 0, None  # type: int, int, list[str] | None
    for token in _parser().parse(_prepared(lines)):
        line = line if token.map is None else token.map[0] + 1
        if token.type == "heading_open":
            level = int(token.tag[1:])
        elif token.type == "heading_close":
            level = 0
        elif token.type == "tr_open":
            row = []
        elif token.type == "tr_close":
            yield Block(line, 0, row_text(row or []))
            row = None
        elif token.type == "html_block":
            yield Block(line, 0, html.unescape(_HTML.sub(" ", token.content)))
        elif token.type == "inline" and row is not None:
            row.append(_words_of(token))
        elif token.type == "inline":
            yield Block(line, level, _words_of(token))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _words_of(token: Token) -> str:
    """The text of a paragraph, without its marks; brackets in code are a part of it."""
    words = []
    for is_code, children in groupby(token.children or (), lambda child: child.type == "code_inline"):
        text = "".join(map(_word, children))
        words.append(text if is_code else _NOTE.sub("", _WIKI_LINK.sub(r"\1", text)))
    return _ENDS.sub("", "".join(words).strip())


def _word(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    if token.type == "html_inline":
        return " " if token.content.lower().startswith("<br") else ""
    if token.type == "image":
        return "".join(_word(child) for child in token.children or ())
    return token.content


def _prepared(lines: Sequence[str]) -> str:
    """The same lines under the same numbers; what is not Markdown is blank, or is Markdown now."""
    text = "\n".join(_dedented(_without_front_matter(lines)))
    return _FORMULA.sub(lambda found: "\n" * found.group().count("\n"), text)


def _without_front_matter(lines: Sequence[str]) -> list[str]:
    """Blank lines in its place, but for the title, which is a heading."""
    fence = lines[0].rstrip() if lines else ""
    last = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in (fence, "...")), 0)
    first = next((line for line in lines[1:last] if not line.startswith("#")), "")
    if fence not in ("---", "+++") or not _SETTING.match(first):  # a rule, and no front matter
        return list(lines)
    title = (_TITLE.fullmatch(line.rstrip()) for line in lines[: last + 1])  # of the page: others are indented
    return [*(f"# {one[1].strip(chr(34) + chr(39))}" if one else "" for one in title), *lines[last + 1 :]]


def _dedented(lines: Sequence[str]) -> Iterator[str]:
    """The text of an admonition stands as deep as its title, which is a paragraph."""
    depths: list[int] = []  # of the admonitions that are open
    for line in (line.expandtabs(4) for line in lines):
        indent = len(line) - len(line.lstrip(" "))
        while depths and line.strip() and indent < depths[-1] + 4:
            depths.pop()
        found = _INDENTING.fullmatch(line)
        own = line[4 * len(depths) :] if line.strip() else line
        if found is not None:
            title = found[2] or found[3]
            own = f"{' ' * (indent - 4 * len(depths))}{title}:" if title else ""  # in an item of a list it stays there
            depths.append(indent)
        yield "" if own.lstrip().startswith((":::", "--8<--")) else own
