"""reStructuredText → headings and paragraphs.

Roles, links and emphasis keep their words, images their alternative text, tables their cells, notes and warnings their
text; code, comments, targets and other directives are left out with what is indented below them. It is no parser of
the whole language: what only docutils knows (substitutions, included files) stays as it is written.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Generator, Iterator, Sequence
from itertools import pairwise

from isotrope.data.prose_blocks import Block, row_text

# Directives whose argument and body are text.
KEPT = frozenset(
    """admonition attention caution danger deprecated error figure hint image important note rubric seealso sidebar
    table tip topic versionadded versionchanged warning""".split()
)
TABLES = frozenset(("csv-table", "list-table"))
SHORTEST = 4  # marks below a longer heading; ... below a prompt is code
_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*")
_DIRECTIVE = re.compile(r"\.\.\s+(?:\|[^|]*\|\s*)?([\w:+.-]+?)::\s*(.*)")
_OPTION = re.compile(r":([\w -]+):\s*(.*)")
_SIMPLE_RULE = re.compile(r"\s*=+(?:\s+=+)+\s*")
_GRID_RULE = re.compile(r"\s*\+[-=+]+\+\s*")
_ITEM = re.compile(r"^(?:[-*+•]|\(?(?:\d+|[a-zA-Z#])[.)])\s+")
_CELL = re.compile(r"(\s*)([*+-]\s+)?[*+-](?:\s+(.*)|\s*)")  # of a list of lists: a row begins with two marks
_FIELD = re.compile(r"^:[^:`]+:\s+")
# Code, a role, a link or a word of the default role: there are no marks in it.
_QUOTED = re.compile(r"``(.+?)``|:[\w:+.-]+:`[~!]?([^`<]*?)(?:\s*<[^`>]*>)?`|`([^`<]+?)\s*(?:<[^`>]*>)?`_{0,2}")
_INLINE = (
    (re.compile(r"\*\*(\S(?:.*?\S)?)\*\*"), r"\1"),
    (re.compile(r"(?<![\w*])\*(\S(?:[^*]*\S)?)\*(?!\w)"), r"\1"),
    (re.compile(r"\s?\[[#*\w-]*\]_(?!\w)"), ""),  # a note
    (re.compile(r"(?<=\w)__?(?=[\s.,;:)]|$)"), ""),  # a link of one word
    (re.compile(r"\|([^|\s][^|]*)\|_{0,2}"), r"\1"),
    (re.compile(r"\\(?:\s|(.))"), r"\1"),  # a blank joins what stands around it
)


def rst_blocks(lines: Sequence[str]) -> Iterator[Block]:
    styles: list[tuple[str, bool]] = []  # of headings, in the order of their levels
    number = 0
    while number < len(lines):
        line = lines[number]
        heading = _heading(lines, number)
        directive = _DIRECTIVE.fullmatch(line.strip())
        if heading is not None:
            text, style, used = heading
            styles += [] if style in styles else [style]
            yield Block(number + 1 + style[1], styles.index(style) + 1, _plain(text))
            number += used
        elif directive is not None and directive[1] in KEPT:
            number = yield from _kept(lines, number, directive[1], directive[2])
        elif directive is not None and directive[1] in TABLES:
            number = yield from _directive_table(lines, number, directive[1], directive[2])
        elif line.strip() == ".." or line.lstrip().startswith(".. "):
            number = _behind(lines, number + 1, _depth(line))
        elif _SIMPLE_RULE.fullmatch(line):
            number = yield from _simple_table(lines, number)
        elif _GRID_RULE.fullmatch(line):
            number = yield from _grid_table(lines, number)
        elif not line.strip() or _RULE.fullmatch(line):
            number += 1
        else:
            number = yield from _paragraph(lines, number)


def _heading(lines: Sequence[str], number: int) -> tuple[str, tuple[str, bool], int] | None:
    """Text, style (its mark, and whether there is one above as well), and how many lines it takes."""
    first, second, third = (*lines[number : number + 3], "", "")[:3]
    if _RULE.fullmatch(first) and second.strip() and _RULE.fullmatch(third) and first[0] == third[0]:
        return second.strip(), (first[0], True), 3
    drawn = _RULE.fullmatch(second) and len(second.rstrip()) >= min(SHORTEST, len(first.rstrip()))
    if first[:1].strip() and not _RULE.fullmatch(first) and drawn:
        return first.strip(), (second[0], False), 2
    return None


def _kept(lines: Sequence[str], number: int, name: str, argument: str) -> Generator[Block, None, int]:
    """A directive whose text counts; what is below it comes as if it were not indented. Returns the next line."""
    begin = number + 1
    text = "" if name in ("image", "figure") else argument
    while begin < len(lines) and (option := _OPTION.fullmatch(lines[begin].strip())):
        text = option[2] if option[1] == "alt" else text
        begin += 1
    while text and begin < len(lines) and lines[begin].strip() and _depth(lines[begin]) > _depth(lines[number]):
        text, begin = f"{text} {lines[begin].strip()}", begin + 1
    yield Block(number + 1, 0, _plain(text))
    return begin


def _behind(lines: Sequence[str], number: int, depth: int) -> int:
    """The first line from ``number`` on that is neither blank nor indented deeper than ``depth``."""
    while number < len(lines) and (not lines[number].strip() or _depth(lines[number]) > depth):
        number += 1
    return number


def _grid_table(lines: Sequence[str], number: int) -> Generator[Block, None, int]:
    """The rows between its rules; a cell may go on over several lines. Returns the next line."""
    rows: list[list[str]] = []
    while number < len(lines) and lines[number].strip():
        if _GRID_RULE.fullmatch(lines[number]):
            yield from _row(number - len(rows), rows)
            rows = []
        else:
            rows.append(lines[number].strip().strip("|").split("|"))
        number += 1
    yield from _row(number - len(rows), rows)
    return number


def _simple_table(lines: Sequence[str], number: int) -> Generator[Block, None, int]:
    """The rows under its rule, which says where the columns are; a row goes on where its first column is empty, and the
    table ends at a blank line that no row follows. Returns the next line."""
    places = [found.span() for found in re.finditer("=+", lines[number])]
    gaps = [slice(end, begin) for (_, end), (begin, _) in pairwise(places)]
    begins = [begin for begin, _ in places]
    columns = [slice(begin, end) for begin, end in zip(begins, [*begins[1:], None], strict=True)]
    number, rows, ended = number + 1, list[list[str]](), False
    while number < len(lines):
        line = lines[number]
        ends = _SIMPLE_RULE.fullmatch(line) is not None
        after = lines[number + 1] if number + 1 < len(lines) else ""
        if not line.strip() and (ended or not after[begins[1] :].strip() or any(after[gap].strip() for gap in gaps)):
            break
        if ends or line[: begins[1]].strip() or not line.strip():
            yield from _row(number - len(rows), rows)
            rows = []
        if line.strip() and not ends:
            spans = any(line[gap].strip() for gap in gaps)
            rows.append([line] if spans else [line[column] for column in columns])
        number, ended = number + 1, ends
    yield from _row(number - len(rows), rows)
    return number


def _directive_table(lines: Sequence[str], number: int, name: str, title: str) -> Generator[Block, None, int]:
    """Its title and its rows, written as a list of lists or as CSV. Returns the next line."""
    begin, end, header = number + 1, _behind(lines, number + 1, _depth(lines[number])), ""
    yield Block(number + 1, 0, _plain(title))
    while begin < end and (option := _OPTION.fullmatch(lines[begin].strip())):
        header = option[2] if option[1] == "header" else header
        begin += 1
    if header:
        yield Block(number + 1, 0, _plain(row_text(next(csv.reader([header], skipinitialspace=True)))))
    rows = _csv_rows if name == "csv-table" else _list_rows
    for place, cells in rows(lines[begin:end]):
        yield Block(begin + place + 1, 0, _plain(row_text(cells)))
    return end


def _csv_rows(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """A row and its first line, from 0; a quoted cell may go on over several lines."""
    reader, place = csv.reader((f"{line.strip()}\n" for line in lines), skipinitialspace=True), 0
    try:
        for cells in reader:
            if cells:
                yield place, cells
            place = reader.line_num
    except csv.Error:  # a quote without an end, and 128 kB behind it
        yield from ((number, [lines[number]]) for number in range(place, len(lines)))


def _list_rows(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Lists below a cell stand deeper; their words are a part of it."""
    first, depth, cells = 0, 0, list[str]()
    for place, line in enumerate(lines):
        found = _CELL.fullmatch(line)
        if found is not None and found[2] and (not cells or len(found[1]) < depth):
            if cells:
                yield first, cells
            first, depth, cells = place, len(found[1] + found[2]), [found[3] or ""]
        elif found is not None and not found[2] and len(found[1]) == depth:
            cells.append(found[3] or "")
        elif cells:
            cells[-1] = f"{cells[-1]} {line.strip() if found is None else found[3] or ''}"
    if cells:
        yield first, cells


def _row(number: int, rows: list[list[str]]) -> Iterator[Block]:
    """Lines of cells as one row; ``number`` is the first line's, from 0."""
    if rows:
        columns = ([row[place] for row in rows if place < len(row)] for place in range(max(map(len, rows))))
        yield Block(number + 1, 0, _plain(row_text([" ".join(" ".join(column).split()) for column in columns])))


def _paragraph(lines: Sequence[str], number: int) -> Generator[Block, None, int]:
    """Up to a blank line, or the next item of a list, or a definition. Returns the next line."""
    end = number + 1
    while end < len(lines) and not _begins(lines, number, end):
        end += 1
    first = _FIELD.sub("", _ITEM.sub("", lines[number].strip(), count=1), count=1)
    text = " ".join([first, *map(str.strip, lines[number + 1 : end])])
    literal = text.endswith("::")  # what is indented below is code
    if not text.startswith(">>>"):
        yield Block(number + 1, 0, _plain(text.removesuffix("::") + ":" * literal))
    if not literal:
        return end
    marker = _ITEM.match(lines[number].lstrip())  # the text of an item stands behind it, and so do its other paragraphs
    return _behind(lines, end, _depth(lines[number]) + (marker.end() if marker else 0))


def _begins(lines: Sequence[str], first: int, number: int) -> bool:
    """Whether another paragraph than that of line ``first`` begins here, or a blank line is."""
    line, above = lines[number].strip(), lines[first].strip()
    if not line or _ITEM.match(line) or _FIELD.match(line):
        return True
    term = number == first + 1 and not _ITEM.match(above) and not _FIELD.match(above)
    return term and _depth(lines[number]) > _depth(lines[first])  # the definition of a term


def _plain(text: str) -> str:
    """Without marks; what looks like one inside of code is a part of it, as in ``coef_``."""
    words, end = [], 0
    for quoted in _QUOTED.finditer(text):
        words += [_without_marks(text[end : quoted.start()]), *filter(None, quoted.groups())]
        end = quoted.end()
    return "".join([*words, _without_marks(text[end:])])


def _without_marks(text: str) -> str:
    for pattern, words in _INLINE:
        text = pattern.sub(words, text)
    return text


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
