"""Figures of how good the subjects are, and how they came there: scores and training."""

from __future__ import annotations

from isotrope.report.figure_parts import Axis, Figure, Panel, Series
from isotrope.report.findings import Findings, Score, SubjectCard
from isotrope.report.subject_styles import styles

MEASURES = {
    "other_view": "MRR of the other half of a sentence",
    "retrieval_mrr": "MRR without labels",
    "spearman": "Spearman × 100 on the eval data",
    "eval_mrr": "MRR × 100 on the eval data",
    "effective_rank": "Effective rank",
    "mean_cosine": "Mean cosine of two sentences",
}


def scores(findings: Findings) -> Figure | None:
    """One row a task, one mark a subject, its interval as a bar."""
    table = findings.scores
    if table is None:
        return None
    style = styles(findings.subjects)
    series = []
    for row in table.rows:
        values = [row.values[task] for task in table.tasks]
        series.append(
            Series(
                name=row.name,
                style=style[row.name],
                x=[value.value for value in values],
                low=[value.low for value in values],
                high=[value.high for value in values],
                hover=[f"{row.name}\n{task}: {_scored(row.values[task])}" for task in table.tasks],
            )
        )
    return Figure(
        name="scores",
        title="Scores",
        chart="intervals",
        caption=f"{table.protocol}. The interval says how far other test pairs would move the score; other training "
        "seeds move it too.",
        x=Axis("Spearman × 100" if table.suite == "sts" else "× 100"),
        y=Axis(categories=table.tasks),
        panels=[Panel("", series)],
    )


def training(findings: Findings) -> Figure | None:
    """What was measured during the runs, by step."""
    panels = []
    for measure, label in MEASURES.items():
        drawn = [_curve(findings, card, measure, label) for card in findings.subjects]
        if series := [one for one in drawn if one is not None]:
            panels.append(Panel(label, series))
    if not panels:
        return None
    return Figure(
        name="training",
        title="During training",
        chart="lines",
        caption="From the runs' own logs, on the text each of them held out. The ring is the checkpoint that was kept.",
        x=Axis("step"),
        y=Axis(),
        panels=panels,
    )


def _curve(findings: Findings, card: SubjectCard, measure: str, label: str) -> Series | None:
    """A measure of a run over its steps, where there are two at least."""
    trail = [one for one in findings.trails.get(card.name, []) if measure in one.measures]
    if len(trail) < 2:
        return None
    steps = [one.step for one in trail]
    return Series(
        name=card.name,
        style=styles(findings.subjects)[card.name],
        x=[*steps],
        y=[one.measures[measure] for one in trail],
        hover=[f"{card.name}, step {one.step}\n{label}: {one.measures[measure]:.4g}" for one in trail],
        dots=True,
        chosen=steps.index(card.selected_step) if card.selected_step in steps else None,
    )


def _scored(score: Score) -> str:
    interval = "" if score.low is None else f" ({score.low:.1f} to {score.high:.1f})"
    return f"{score.value:.2f}{interval}"
