"""Long tables that open on demand, and the keys of figures whose lines are not the subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from isotrope.report.figure_parts import Style


def pooling_keys(looks: Mapping[str, Style]) -> str:
    """The colours of the poolings."""
    items = "".join(
        f'<li><span data-key="" data-colour="{style.colour}"></span>{escape(name)}</li>'
        for name, style in looks.items()
    )
    return f'<ul class="keys">{items}</ul>'


def folded_table(title: str, rows: Sequence[Sequence[str]]) -> str:
    """A table that opens on demand, its head first; nothing where there are no rows."""
    if not rows:
        return ""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[1:])
    return (
        f'<details><summary>{escape(title)}</summary><div class="scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div></details>"
    )
