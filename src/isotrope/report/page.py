"""One self-contained page: words and tables are written here, ``draw.js`` draws the figures from values in the page.

The page fetches nothing and sends nothing; a policy inside it makes the browser hold it to that. A sentence of the user
is text everywhere: escaped in HTML, and unable to end the script in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from typing import Any

from isotrope.evaluation.worth_table import Worth
from isotrope.report.compared import compared_section
from isotrope.report.figure_parts import Figure, Style
from isotrope.report.findings import Findings
from isotrope.report.page_sections import (
    figure_section,
    group_keys,
    head,
    legend,
    neighbours_section,
    score_rows,
    settings_section,
    title,
    warnings_section,
)
from isotrope.report.plane_figures import checkpoint_table
from isotrope.report.read_out_figures import pooling_styles, read_out_table
from isotrope.report.subject_styles import styles
from isotrope.version import __version__

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def write_page(findings: Findings, figures: dict[str, Figure]) -> str:
    """The whole page as HTML."""
    style, script = (
        files("isotrope.report").joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "draw.js")
    )
    sections = [
        warnings_section(findings),
        compared_section(findings.compared),
        worth_section(findings),
        figure_section(figures.get("scores"), after=score_rows(findings)),
        figure_section(figures.get("plane"), after=folded_table("Every checkpoint", checkpoint_table(findings))),
        figure_section(figures.get("map"), before=group_keys(findings)),
        *(figure_section(figures.get(name)) for name in ("density", "spectrum", "layers")),
        figure_section(
            figures.get("read-out"),
            before=pooling_keys(pooling_styles(findings.read_outs)),
            after=folded_table("Every read-out", read_out_table(findings)),
        ),
        figure_section(figures.get("training")),
        neighbours_section(findings),
        settings_section(findings),
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="generator" content="isotrope {__version__}">
<title>{escape(title(findings))} · Isotrope</title>
<style>
{style}</style>
</head>
<body>
{head(findings)}
<main>
{legend(findings)}
{"".join(sections)}
</main>
<footer>Written by isotrope {__version__}.
The page holds {len(findings.map.texts):,} sentences of {escape(findings.text.name)}.
It fetches nothing and sends nothing.</footer>
<div id="tip" role="status" hidden></div>
<noscript><p class="caption">A script in this page draws the figures; without it there are the tables.</p></noscript>
<script type="application/json" id="report-data">{_in_script(_drawn_values(findings, figures))}</script>
<script>
{script}</script>
</body>
</html>
"""


def _drawn_values(findings: Findings, figures: dict[str, Figure]) -> dict[str, Any]:
    """What ``draw.js`` reads."""
    return {
        "figures": {name: figure.to_json() for name, figure in figures.items()},
        "styles": {name: asdict(style) for name, style in styles(findings.subjects).items()},
        "map": {"texts": findings.map.texts, "near": findings.map.near},
    }


def _in_script(value: Any) -> str:
    """JSON that cannot end the script it stands in, whatever a sentence holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


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
