"""Long tables that open on demand, and the keys of figures whose lines are not the subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from isotrope.evaluation.worth_table import Worth
from isotrope.report.figure_parts import Style
from isotrope.report.findings import Findings


def pooling_keys(looks: Mapping[str, Style]) -> str:
    """The colours of the poolings."""
    items = "".join(
        f'<li><span data-key="" data-colour="{style.colour}"></span>{escape(name)}</li>'
        for name, style in looks.items()
    )
    return f'<ul class="keys">{items}</ul>'


def worth_section(findings: Findings) -> str:
    """The final table of each run that has one: is it better than before?"""
    blocks = []
    for card in findings.subjects:
        worth = Worth.read(card.worth)
        if worth is None or not worth.rows:
            continue
        lines = worth.lines()
        rows = [tuple(lines[0]), *(tuple(line.values()) for line in lines)]
        said = "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in worth.remarks())
        title = f"{card.name}: {worth.measure}"
        blocks.append(f"<h3>{escape(title)}</h3>{plain_table(rows)}{said}")
    return f'<section id="worth"><h2>Better than before?</h2>{"".join(blocks)}</section>' if blocks else ""


def folded_table(title: str, rows: Sequence[Sequence[str]]) -> str:
    """A table that opens on demand, its head first; nothing where there are no rows."""
    if not rows:
        return ""
    return f"<details><summary>{escape(title)}</summary>{plain_table(rows)}</details>"


def plain_table(rows: Sequence[Sequence[str]]) -> str:
    """A table, its head first."""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[1:])
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'
