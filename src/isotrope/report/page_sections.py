"""The parts of the page as HTML: head, warnings, tables, places for the figures, neighbours, settings."""

from __future__ import annotations

from html import escape

from isotrope.report.figure_parts import Figure, Panel
from isotrope.report.findings import Findings, Neighbour, Score, SubjectCard
from isotrope.report.subject_styles import GROUP_COLOURS, styles


def title(findings: Findings) -> str:
    asked = [card.name for card in findings.subjects if card.role != "start"]
    names = asked or [card.name for card in findings.subjects]
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]


def head(findings: Findings) -> str:
    text, subjects = findings.text, findings.subjects
    runs = sum(card.role == "run" for card in subjects)
    lead = (
        f"{_count(runs, 'run')}, {_count(len(subjects) - runs, 'model')}, seen through {text.sample:,} of the "
        f"{text.records:,} sentences of {text.name}."
    )
    shown = [card for card in subjects if card.role != "start" or len(subjects) == 1]
    return (
        f'<header><p class="eyebrow">Isotrope report</p><h1>{escape(title(findings))}</h1>'
        f'<p class="lead">{escape(lead)}</p>'
        f'<div class="cards">{"".join(_card(findings, card) for card in shown)}</div></header>'
    )


def _card(findings: Findings, card: SubjectCard) -> str:
    """The few numbers that matter, before and after where there is a before."""
    rows = []
    for label, values in _numbers(findings).items():
        if card.name in values:
            now = f"<b>{values[card.name]}</b>"
            before = f"{values[card.start]} → " if card.start in values else ""
            rows.append(f"<dt>{escape(label)}</dt><dd>{before}{now}</dd>")
    what = card.method or "a model"
    if card.method:
        what += f" on {card.data}" if card.data else ""
        what += f", from {card.start}" if card.start else ""
        what += f", step {card.selected_step}" if card.selected_step is not None else ""
    colour = styles(findings.subjects)[card.name].colour
    return (
        f'<div class="card" style="--own: {colour}"><h3>{escape(card.name)}</h3>'
        f'<p class="what">{escape(what)}</p><dl>{"".join(rows)}</dl></div>'
    )


def _numbers(findings: Findings) -> dict[str, dict[str, str]]:
    """The numbers of the cards: label → subject → number as it is shown."""
    found: dict[str, dict[str, str]] = {}
    table = findings.scores
    if table is not None:
        label = "STS average" if table.suite == "sts" else "MRR without labels"
        found[label] = {name: f"{value:.1f}" for name, value in table.headlines().items()}
    on = findings.plane.get("sts") or findings.plane.get("text")
    if on is not None:
        found["alignment"] = {name: _signed(point.alignment) for name, point in on.points.items()}
        found["uniformity"] = {name: _signed(point.uniformity) for name, point in on.points.items()}
    found["mean cosine"] = {name: _signed(shape.mean_cosine) for name, shape in findings.geometry.items()}
    found["effective rank"] = {name: f"{shape.effective_rank:.0f}" for name, shape in findings.geometry.items()}
    return found


def legend(findings: Findings) -> str:
    """A button for each subject, which switches it off and on in every figure."""
    buttons = "".join(
        f'<button type="button" data-subject="{escape(card.name)}" aria-pressed="true">'
        f"{_key(card.name, ' data-line')}{escape(card.name)}</button>"
        for card in findings.subjects
    )
    return f'<nav class="legend" aria-label="Show or hide a model">{buttons}</nav>'


def warnings_section(findings: Findings) -> str:
    items = [
        f"<li><b>{escape(alarm.category)}</b> · {escape(alarm.subject)}: {escape(alarm.sentence)}</li>"
        for alarm in findings.warnings
    ]
    items += [f"<li>{escape(sentence)}</li>" for sentence in findings.remarks]
    if not items:
        looked = "collapse, progress, duplicates" + (", leaks" if findings.leaks_looked_for else "")
        return f'<section id="warnings"><h2>Warnings</h2><p class="fine">None ({looked}).</p></section>'
    unlooked = '<p class="note">Leaks were not looked for: there are no test sets (data_dir).</p>'
    return (
        f'<section id="warnings"><h2>Warnings</h2><ul class="warnings">{"".join(items)}</ul>'
        f"{'' if findings.leaks_looked_for else unlooked}</section>"
    )


def score_rows(findings: Findings) -> str:
    """The scores as a table, a row a subject."""
    table = findings.scores
    if table is None:
        return ""
    heads = "".join(f"<th>{escape(task)}</th>" for task in table.tasks)
    rows = "".join(
        f'<tr><td><span class="who">{_key(row.name)}{escape(row.name)}</span></td>'
        f"{''.join(_cell(row.values[task]) for task in table.tasks)}</tr>"
        for row in table.rows
    )
    return (
        f'<div class="scroll"><table><thead><tr><th>{escape(table.measure)}</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cell(score: Score) -> str:
    interval = "" if score.low is None else f"<small>{score.low:.1f} – {score.high:.1f}</small>"
    return f"<td>{score.value:.2f}{interval}</td>"


def figure_section(figure: Figure | None, before: str = "", after: str = "") -> str:
    """A section with an empty place for each panel; one panel alone has its caption at its side."""
    if figure is None:
        return ""
    panels = "".join(_panel(panel) for panel in figure.panels)
    caption = f'<p class="caption">{escape(figure.caption)}</p>'
    name = escape(figure.name)
    body = f'<div class="panels" data-figure="{name}">{panels}</div>'
    if len(figure.panels) == 1 and figure.chart != "map":
        body = f'{before}<div class="alone">{body}<div class="side">{caption}</div></div>'
    else:
        body = f"{caption}{before}{body}"
    return f'<section id="{name}"><h2>{escape(figure.title)}</h2>{body}{after}</section>'


def _panel(panel: Panel) -> str:
    heading = f"<h3>{escape(panel.title)}</h3>" if panel.title else ""
    note = f'<p class="note">{escape(panel.note)}</p>' if panel.note else ""
    return f'<figure class="panel">{heading}{note}<div class="chart"></div></figure>'


def group_keys(findings: Findings) -> str:
    """The colours of the groups on the map."""
    items = "".join(
        f'<li><span data-key="" data-colour="{GROUP_COLOURS[number % len(GROUP_COLOURS)]}"></span>{escape(name)}</li>'
        for number, name in enumerate(findings.map.names)
    )
    return f'<ul class="keys">{items}</ul>'


def neighbours_section(findings: Findings) -> str:
    starts = {card.name: card.start for card in findings.subjects}
    blocks = []
    for found in findings.neighbours:
        columns = []
        for name, near in found.columns.items():
            start = starts[name]
            before = None if start is None else {one.text for one in found.columns.get(start, [])}
            items = "".join(_neighbour(one, before) for one in near)
            columns.append(f'<div><span class="who">{_key(name)}{escape(name)}</span><ol>{items}</ol></div>')
        blocks.append(
            f'<div class="query"><blockquote>{escape(found.query)}</blockquote>'
            f'<div class="columns">{"".join(columns)}</div></div>'
        )
    caption = (
        "The five nearest sentences of the sample, with their cosine. “New” was not among the five nearest before "
        "training."
    )
    return (
        f'<section id="neighbours"><h2>Nearest neighbours</h2><p class="caption">{caption}</p>'
        f"{''.join(blocks)}</section>"
    )


def _neighbour(one: Neighbour, before: set[str] | None) -> str:
    new = " <em>new</em>" if before is not None and one.text not in before else ""
    return f"<li><span>{one.cosine:.2f}</span><div>{escape(one.text)}{new}</div></li>"


def settings_section(findings: Findings) -> str:
    """Settings that differ between the runs first: that is what a reader asks."""
    runs = [card for card in findings.subjects if card.role == "run"]
    if not runs:
        return ""
    names = list(dict.fromkeys(name for card in runs for name in card.settings))
    names.sort(key=lambda name: len({str(card.settings.get(name)) for card in runs}) == 1)
    heads = "".join(f"<th>{escape(card.name)}</th>" for card in runs)
    rows = ""
    for name in names:
        cells = "".join(f"<td>{escape(str(card.settings.get(name, '')))}</td>" for card in runs)
        rows += f"<tr><td><code>{escape(name)}</code></td>{cells}</tr>"
    return (
        "<section id='settings'><h2>Settings</h2>"
        "<details><summary>Every setting of the runs, those that differ first</summary>"
        f'<div class="scroll"><table><thead><tr><th>setting</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details></section>"
    )


def _key(name: str, mark: str = "") -> str:
    """The place of a subject's mark; with `` data-line``, on a piece of its line."""
    return f'<span data-key="{escape(name)}"{mark}></span>'


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
