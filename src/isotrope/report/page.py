"""One self-contained page:

words and tables written here, figures drawn by ``draw.js`` from the values inside the page.
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import Any

from isotrope.report.figures import GROUP_COLOURS, Figure, styles
from isotrope.report.measure import Findings
from isotrope.version import __version__

# Nothing may be fetched from anywhere: the browser itself holds the page to it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def write_page(findings: Findings, figures: dict[str, Figure]) -> str:
    """The whole page as HTML."""
    style, script = (
        files("isotrope.report").joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "draw.js")
    )
    near = {name: findings["map"][name] for name in ("texts", "near")}
    values = _in_script({"figures": figures, "styles": styles(findings), "map": near})
    sections = [
        _warnings(findings),
        _figure(figures.get("scores"), _scores(findings)),
        _figure(figures.get("plane")),
        _figure(figures.get("map"), before=_groups(findings)),
        *(_figure(figures.get(name)) for name in ("density", "spectrum", "layers", "training")),
        _neighbours(findings),
        _facts(findings),
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="generator" content="isotrope {__version__}">
<title>{escape(_title(findings))} · Isotrope</title>
<style>
{style}</style>
</head>
<body>
{_head(findings)}
<main>
{_legend(findings)}
{"".join(sections)}
</main>
<footer>Written by isotrope {__version__}. The page holds {len(findings["map"]["texts"]):,} sentences of {escape(findings["text"]["name"])}.
It fetches nothing and sends nothing.</footer>
<div id="tip" role="status" hidden></div>
<noscript><p class="caption">The figures are drawn by a script inside this page; without it there are the tables.</p></noscript>
<script type="application/json" id="report-data">{values}</script>
<script>
{script}</script>
</body>
</html>
"""


def _in_script(value: Any) -> str:
    """JSON that cannot end the script it stands in, whatever a sentence holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _title(findings: Findings) -> str:
    asked = [card["name"] for card in findings["subjects"] if card["role"] != "start"] or [
        c["name"] for c in findings["subjects"]
    ]
    return ", ".join(asked[:-1]) + " and " + asked[-1] if len(asked) > 1 else asked[0]


def _head(findings: Findings) -> str:
    text = findings["text"]
    runs = sum(card["role"] == "run" for card in findings["subjects"])
    lead = (
        f"{_count(runs, 'run')}, {_count(len(findings['subjects']) - runs, 'model')}, seen through {text['sample']:,} of the "
        f"{text['records']:,} sentences of {text['name']}."
    )
    cards = "".join(
        _card(findings, card)
        for card in findings["subjects"]
        if card["role"] != "start" or len(findings["subjects"]) == 1
    )
    return (
        f'<header><p class="eyebrow">Isotrope report</p><h1>{escape(_title(findings))}</h1><p class="lead">{escape(lead)}</p>'
        f'<div class="cards">{cards}</div></header>'
    )


def _card(findings: Findings, card: dict[str, Any]) -> str:
    """The few numbers that matter, before and after where there is a before."""
    name, start = card["name"], card["start"]
    rows = []
    for label, values in _numbers(findings).items():
        if name in values:
            now = f"<b>{values[name]}</b>"
            rows.append(f"<dt>{escape(label)}</dt><dd>{f'{values[start]} → {now}' if start in values else now}</dd>")
    what = card["method"] or "a model"
    if card["method"]:
        what += f" on {card['data']}" if card["data"] else ""
        what += f", from {start}" if start else ""
        what += f", step {card['selected_step']}" if card["selected_step"] is not None else ""
    colour = styles(findings)[name]["colour"]
    return f'<div class="card" style="--own: {colour}"><h3>{escape(name)}</h3><p class="what">{escape(what)}</p><dl>{"".join(rows)}</dl></div>'


def _numbers(findings: Findings) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    table = findings["scores"]
    if table is not None:
        task = "average" if table["kind"] == "sts" else "MRR"
        label = "STS average" if table["kind"] == "sts" else "MRR without labels"
        found[label] = {row["name"]: f"{row['values'][task]['value']:.1f}" for row in table["rows"]}
    on = findings["plane"].get("sts") or findings["plane"].get("text")
    for measure in ("alignment", "uniformity") if on else ():
        found[measure] = {name: f"{point[measure]:.2f}".replace("-", "−") for name, point in on["points"].items()}
    found["mean cosine"] = {
        name: f"{shape['mean_cosine']:.2f}".replace("-", "−") for name, shape in findings["geometry"].items()
    }
    found["effective rank"] = {name: f"{shape['effective_rank']:.0f}" for name, shape in findings["geometry"].items()}
    return found


def _legend(findings: Findings) -> str:
    buttons = "".join(
        f'<button type="button" data-subject="{escape(card["name"])}" aria-pressed="true">{_key(card["name"], line=True)}'
        f"{escape(card['name'])}</button>"
        for card in findings["subjects"]
    )
    return f'<nav class="legend" aria-label="Show or hide a model">{buttons}</nav>'


def _warnings(findings: Findings) -> str:
    items = [
        f"<li><b>{escape(w['kind'])}</b> · {escape(w['subject'])}: {escape(w['sentence'])}</li>"
        for w in findings["warnings"]
    ]
    items += [f"<li>{escape(sentence)}</li>" for sentence in findings["remarks"]]
    if not items:
        looked = "collapse, progress, duplicates" + (", leaks" if findings["leaks_looked_for"] else "")
        return f'<section id="warnings"><h2>Warnings</h2><p class="fine">None ({looked}).</p></section>'
    unlooked = (
        ""
        if findings["leaks_looked_for"]
        else '<p class="note">Leaks were not looked for: there are no test sets (--data-dir).</p>'
    )
    return f'<section id="warnings"><h2>Warnings</h2><ul class="warnings">{"".join(items)}</ul>{unlooked}</section>'


def _scores(findings: Findings) -> str:
    table = findings["scores"]
    if table is None:
        return ""
    head = "".join(f"<th>{escape(task)}</th>" for task in table["tasks"])
    rows = []
    for row in table["rows"]:
        cells = []
        for task in table["tasks"]:
            value = row["values"][task]
            interval = "" if value["low"] is None else f"<small>{value['low']:.1f} – {value['high']:.1f}</small>"
            cells.append(f"<td>{value['value']:.2f}{interval}</td>")
        rows.append(
            f'<tr><td><span class="who">{_key(row["name"])}{escape(row["name"])}</span></td>{"".join(cells)}</tr>'
        )
    return (
        f'<div class="scroll"><table><thead><tr><th>{escape(table["measure"])}</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _figure(figure: Figure | None, after: str = "", before: str = "") -> str:
    """A section with an empty place for each panel; one panel alone has its caption at its side."""
    if figure is None:
        return ""
    panels = "".join(
        '<figure class="panel">'
        + (f"<h3>{escape(panel['title'])}</h3>" if panel["title"] else "")
        + (f'<p class="note">{escape(panel["note"])}</p>' if panel.get("note") else "")
        + '<div class="chart"></div></figure>'
        for panel in figure["panels"]
    )
    caption = f'<p class="caption">{escape(figure["caption"])}</p>'
    name = escape(figure["name"])
    if len(figure["panels"]) == 1 and figure["kind"] != "map":
        body = f'<div class="alone"><div class="panels" data-figure="{name}">{panels}</div><div class="side">{caption}</div></div>'
    else:
        body = f'{caption}{before}<div class="panels" data-figure="{name}">{panels}</div>'
    return f'<section id="{name}"><h2>{escape(figure["title"])}</h2>{body}{after}</section>'


def _groups(findings: Findings) -> str:
    items = "".join(
        f'<li><span data-key="" data-colour="{GROUP_COLOURS[number % 6]}"></span>{escape(name)}</li>'
        for number, name in enumerate(findings["map"]["names"])
    )
    return f'<ul class="keys">{items}</ul>'


def _neighbours(findings: Findings) -> str:
    blocks = []
    starts = {card["name"]: card["start"] for card in findings["subjects"]}
    for found in findings["neighbours"]:
        columns = []
        for name, hits in found["columns"].items():
            before = {hit["text"] for hit in found["columns"].get(starts[name], [])} if starts[name] else None
            items = ""
            for hit in hits:
                new = " <em>new</em>" if before is not None and hit["text"] not in before else ""
                items += f"<li><span>{hit['cosine']:.2f}</span><div>{escape(hit['text'])}{new}</div></li>"
            columns.append(f'<div><span class="who">{_key(name)}{escape(name)}</span><ol>{items}</ol></div>')
        blocks.append(
            f'<div class="query"><blockquote>{escape(found["query"])}</blockquote><div class="columns">{"".join(columns)}</div></div>'
        )
    caption = "The five nearest sentences of the sample, with their cosine. “New” was not among the five nearest before training."
    return f'<section id="neighbours"><h2>Nearest neighbours</h2><p class="caption">{caption}</p>{"".join(blocks)}</section>'


def _facts(findings: Findings) -> str:
    """Settings that differ between the runs first: that is what a reader asks."""
    runs = [card for card in findings["subjects"] if card["role"] == "run"]
    if not runs:
        return ""
    names = list(dict.fromkeys(name for card in runs for name in card["settings"]))
    names.sort(key=lambda name: len({str(card["settings"].get(name)) for card in runs}) == 1)
    head = "".join(f"<th>{escape(card['name'])}</th>" for card in runs)
    rows = ""
    for name in names:
        cells = "".join(f"<td>{escape(str(card['settings'].get(name, '')))}</td>" for card in runs)
        rows += f"<tr><td><code>{escape(name)}</code></td>{cells}</tr>"
    return (
        "<section id='settings'><h2>Settings</h2><details><summary>Every setting of the runs, those that differ first</summary>"
        f'<div class="scroll"><table><thead><tr><th>setting</th>{head}</tr></thead><tbody>{rows}</tbody></table></div></details></section>'
    )


def _key(name: str, line: bool = False) -> str:
    return f'<span data-key="{escape(name)}"{" data-line" if line else ""}></span>'


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
