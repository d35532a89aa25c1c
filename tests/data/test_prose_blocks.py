"""Documents as people write them: what is said stays, marks and code go, and every block knows its line."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotrope.data.markdown_blocks import markdown_blocks
from isotrope.data.prose_blocks import blocks_of, row_text
from isotrope.data.rst_blocks import rst_blocks

Write = Callable[[str, str], Path]

MARKDOWN = """---
title: "The page"
tags: [a]
---

# Guide {#guide .big}

Some *wrapped* text with a [link](http://x.y "t") and
`code` goes on. ![A cat](cat.png) <!-- hidden --> End<br>here.[^1]

<!-- a comment
over lines -->

```python
x = "not this"
```

    indented code

Setext
------

* item one
  goes on
* [x] item two

!!! note "Mind this"
    The body of the note.

    ```
    code
    ```

=== "Tab one"

    In the tab.

$$
E = mc^2
$$

| name | value |
|---|---|
| `alpha` | one. Two |

See [[Other page|the other]] page.

<details><summary>More</summary>

Inside.

</details>

::: pkg.module
    options:
      a: b

[^1]: The foot note text.

[ref]: http://x
"""

RST = """=========
The title
=========

.. _target:

A paragraph that is
*wrapped* with ``code``, :func:`~pkg.name` and `a link <https://x.y>`_ [1]_.

Section one
===========

.. note:: Look out
   for this.

   And this.

.. code-block:: python
   :linenos:

   x = 1

   y = 2

- first item
  goes on
- second item

Run it::

    $ do this

    $ and that

Then this.

term
   Its definition.

.. image:: a.png
   :alt: A picture of a cat

:param x: what x is

====== =====
name   value
====== =====
alpha  one
====== =====

+-------+---------+
| cell  | long    |
|       | cell    |
+-------+---------+

Section two
-----------

.. A comment
   that goes on.

>>> 1 + 1
2

.. [1] A note.
"""


def test_markdown(tmp_path: Path, written: Write) -> None:
    found = [(block.line, block.level, block.text) for block in blocks_of(written("a.md", MARKDOWN))]
    assert found == [
        (2, 1, "The page"),
        (6, 1, "Guide"),
        (8, 0, "Some wrapped text with a link and code goes on. A cat End here."),
        (20, 2, "Setext"),
        (23, 0, "item one goes on"),
        (25, 0, "item two"),
        (27, 0, "Mind this: The body of the note."),
        (34, 0, "Tab one:"),
        (36, 0, "In the tab."),
        (42, 0, "name: value"),
        (44, 0, "alpha: one. Two"),
        (46, 0, "See the other page."),
        (48, 0, "More"),
        (50, 0, "Inside."),
        (58, 0, "The foot note text."),
    ]


def test_restructured_text(written: Write) -> None:
    found = [(block.line, block.level, block.text) for block in blocks_of(written("a.rst", RST))]
    assert found == [
        (2, 1, "The title"),
        (7, 0, "A paragraph that is wrapped with code, pkg.name and a link."),
        (10, 2, "Section one"),
        (13, 0, "Look out for this."),
        (16, 0, "And this."),
        (25, 0, "first item goes on"),
        (27, 0, "second item"),
        (29, 0, "Run it:"),
        (35, 0, "Then this."),
        (37, 0, "term"),
        (38, 0, "Its definition."),
        (40, 0, "A picture of a cat"),
        (43, 0, "what x is"),
        (46, 0, "name: value"),
        (48, 0, "alpha: one"),
        (52, 0, "cell: long cell"),
        (56, 3, "Section two"),
    ]


@pytest.mark.parametrize("mark", ["", "- ", "12. "])
def test_wrapped_lines_before_code_come_once_and_the_rest_of_an_item_stays(mark: str) -> None:
    indent = " " * len(mark)
    lines = [f"{mark}Two lines that", f"{indent}end so::", "", f"{indent}    code", "", f"{indent}Said after it.", ""]
    lines.append("End.")
    assert [(block.line, block.text) for block in rst_blocks(lines)] == [
        (1, "Two lines that end so:"),
        (6, "Said after it."),
        (8, "End."),
    ]


@pytest.mark.parametrize("text", ["Hello world. It is - see a) or 2. - so. At :3: too.", "*So* it is: the end."])
def test_marks_of_items_and_fields_stand_at_the_beginning(text: str) -> None:
    for mark in ("", "- ", "3. ", "(a) ", ":param x: "):
        (block,) = rst_blocks([mark + text])
        assert block.text == text.replace("*", "")


SIMPLE = """=====  ========= =====
Name   Meaning   Since
=====  ========= =====
alpha  The first
       letter.
beta   The next letter 2

gamma  Two marks
=====  ========= =====

Text after.
"""


def test_a_simple_table_has_its_columns_where_its_rule_says(written: Write) -> None:
    """Rows may have blank lines between them, and go on where the first column is empty."""
    assert [(block.line, block.text) for block in blocks_of(written("a.rst", SIMPLE))] == [
        (2, "Name: Meaning, Since"),
        (4, "alpha: The first letter."),
        (6, "beta The next letter 2"),
        (8, "gamma: Two marks"),
        (11, "Text after."),
    ]


def test_tables_of_directives_are_read_row_by_row() -> None:
    listed = """.. list-table:: Title
   :header-rows: 1

   * - Option
     - Meaning
   * - ``--top``
     - How many hits,
       at most

       * ten
       * a hundred
   * -
     - Nothing

Behind.
"""
    found = [(block.line, block.text.strip()) for block in rst_blocks(listed.splitlines())]
    assert found == [
        (1, "Title"),
        (4, "Option: Meaning"),
        (6, "--top: How many hits, at most  ten a hundred"),
        (12, "Nothing"),
        (15, "Behind."),
    ]
    commas = """.. csv-table:: Prices
   :header: "Name", Price
   :widths: 2, 1

   "Bread, brown", 3
   "Two
   lines", 4
   Salt, 1
.. csv-table:: Elsewhere
   :file: rows.csv

Behind.
"""
    found = [(block.line, block.text.strip()) for block in rst_blocks(commas.splitlines())]
    assert found == [
        (1, "Prices"),
        (1, "Name: Price"),
        (5, "Bread, brown: 3"),
        (6, "Two\nlines: 4"),
        (8, "Salt: 1"),
        (9, "Elsewhere"),
        (12, "Behind."),
    ]


def test_a_quote_without_an_end_loses_no_row() -> None:
    rows = [".. csv-table::", "", "   Salt, 1", '   "Bread, 3', *(f"   {'more ' * 1000}" for _ in range(40))]
    limit = csv.field_size_limit(131_072)  # Python's own; the reader of tables raises it for the whole process
    try:
        found = [block.text.strip() for block in rst_blocks(rows)]
    finally:
        csv.field_size_limit(limit)
    assert found[1:3] == ["Salt: 1", '"Bread, 3']
    assert len(found) == 43
    csv.field_size_limit(10_000_000)
    try:
        whole = [block.text for block in rst_blocks(rows)]
    finally:
        csv.field_size_limit(limit)
    assert sum(text.count("more") for text in whole) == 40_000


def test_a_field_goes_on_in_indented_lines_and_a_prompt_is_no_heading() -> None:
    field = [":param x: what x is,", "    and what it is not", ":returns: nothing"]
    assert [block.text for block in rst_blocks(field)] == ["what x is, and what it is not", "nothing"]
    assert not list(rst_blocks([">>> with x:", "...", "...     y"]))
    assert [block.level for block in rst_blocks(["API", "===", "", "Text."])] == [1, 0]


def test_an_escaped_blank_joins_and_other_escapes_stay() -> None:
    (block,) = rst_blocks([r"Two ``batch``\ es of H\ :sub:`2`\ O, 2 \* 3."])
    assert block.text == "Two batches of H2O, 2 * 3."


@pytest.mark.parametrize("title", ["", ' "Mind"'])
@pytest.mark.parametrize("indent", ["    ", "\t"])
def test_notes_keep_what_is_indented_below_them_and_below_their_item(indent: str, title: str) -> None:
    item = ["1. One.", "", f"!!! note{title}", f"{indent}Inside.", "", "Rest.", "", f"{indent}code"]
    lines = [item[0], *(line and f"{indent}{line}" for line in item[1:]), "", "End."]
    found = [block.text for block in markdown_blocks(lines)]
    assert found == ["One.", f"{title.strip(' ' + chr(34))}: Inside." if title else "Inside.", "Rest.", "End."]
    alone = [f"!!! note{title}", "", f"{indent}Inside.", "", f"{indent}More."]
    assert [block.text for block in markdown_blocks(alone)][-2:] == ["Inside.", "More."]


def test_words_between_two_formulas_stay() -> None:
    lines = ["$$a$$ is the input,", "and the loss is", "$$b$$", "", "$$", "c", "$$", "Then the end."]
    assert [block.text for block in markdown_blocks(lines)] == ["$$a$$ is the input, and the loss is", "Then the end."]


def test_code_in_a_line_keeps_its_marks() -> None:
    (markdown,) = markdown_blocks(["`df[[name]]`, `[^a-z]+` and [[Page|the page]][^1]"])
    assert markdown.text == "df[[name]], [^a-z]+ and the page"
    (rst,) = rst_blocks([r"``coef_``, ``\d+``, ``*args``, ``a|b|c`` and :attr:`~fit_` (`__len__`), *so* it_ is."])
    assert rst.text == r"coef_, \d+, *args, a|b|c and fit_ (__len__), so it is."


@pytest.mark.parametrize("first", ["\nFirst.", "First.", "# First.", "\n# First."])
def test_a_rule_at_the_top_is_no_front_matter(written: Write, first: str) -> None:
    text = f"---\n{first}\n\n---\n\nSecond.\n"
    assert [block.text for block in blocks_of(written("a.md", text))] == ["First.", "Second."]


@pytest.mark.parametrize(
    "front", ["---\n# a note\ntitle: 'Page'\nmenu:\n  title: In menus\n\n---", '+++\n[page]\nx=1\ntitle = "Page"\n+++']
)
def test_of_front_matter_the_title_of_the_page_stays(written: Write, front: str) -> None:
    found = [(block.level, block.text) for block in blocks_of(written("a.md", f"{front}\nText.\n"))]
    assert found == [(1, "Page"), (0, "Text.")]


def test_wrapped_lines_of_plain_text_are_joined_and_others_are_not(written: Write) -> None:
    wrapped = (
        "The first sentence of this note is long and goes on\nin the next line. The second one ends the paragraph\n"
    )
    wrapped += "here, at last.\n\nAnother paragraph."
    assert [(block.line, block.text) for block in blocks_of(written("a.txt", wrapped))] == [
        (1, " ".join(wrapped.split("\n\n")[0].split())),
        (5, "Another paragraph."),
    ]
    assert [block.text for block in blocks_of(written("b.txt", "One line.\nAnother line\n\nlast"))] == [
        "One line.",
        "Another line",
        "last",
    ]


def test_a_row_says_what_it_is_about_first() -> None:
    assert row_text(["rate", " 0.1 ", "", "a number"]) == "rate: 0.1, a number"
    assert row_text(["", ""]) == ""


@pytest.mark.parametrize("blocks", [markdown_blocks, rst_blocks])
@given(text=st.text(alphabet="ab1 #*-=+|:.`_[](){}<>!$~\\\n\t^&\"'", max_size=200))
def test_any_marks_are_read_and_lines_are_those_of_the_file(
    blocks: Callable[[list[str]], list[object]], text: str
) -> None:
    """And nothing is read twice."""
    lines = text.split("\n")
    found = list(blocks(lines))
    assert all(1 <= block.line <= len(lines) for block in found)  # type: ignore[attr-defined]
    words = "".join(block.text for block in found)  # type: ignore[attr-defined]
    assert all(words.count(letter) <= text.count(letter) for letter in "ab1")
