"""Scores, alignment and uniformity of every subject: on STS where it is there, and on the text's own pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from isotrope.evaluation.results import Results
from isotrope.evaluation.scored_pairs import POSITIVE_ABOVE
from isotrope.evaluation.sts import TASKS
from isotrope.report.findings import Plane, Point, Score, ScoreRow, ScoreTable
from isotrope.report.texts import Texts

RESAMPLES = 500
PARTNERS = {"pairs": "the other side of its pair", "neighbours": "the next sentence", "halves": "its other half"}


@dataclass(frozen=True)
class PairJudgement:
    """What the natural pairs of a text say of an encoder, without labels."""

    point: Point
    scores: dict[str, Score]  # "MRR" and "found first", × 100


def sts_scores(results: Mapping[str, Results]) -> ScoreTable:
    """Spearman × 100 by task and on average, with intervals."""
    tasks = [*TASKS, "average"]
    rows = []
    for name, result in results.items():
        found = result.scores["sts"]
        rows.append(
            ScoreRow(
                name, {task: Score(found[task]["spearman"], found[task]["low"], found[task]["high"]) for task in tasks}
            )
        )
    protocol = next(iter(results.values())).protocol
    said = f"Protocol {protocol['protocol']}, aggregation {protocol['aggregation']}, {protocol['interval']}"
    return ScoreTable("sts", "Spearman × 100", tasks, rows, said)


def text_scores(judged: Mapping[str, PairJudgement], texts: Texts) -> ScoreTable | None:
    """The same without labels: can a text find its partner?"""
    if not judged:
        return None
    sort, first, _ = texts.pairs
    said = (
        f"Label-free: each of {len(first):,} texts of {texts.name} ({texts.of}) looks for {PARTNERS[sort]}; "
        f"MRR is the mean of 1 / rank; 95 % bootstrap of pairs, {RESAMPLES} resamples"
    )
    rows = [ScoreRow(name, found.scores) for name, found in judged.items()]
    return ScoreTable("label-free", "× 100", ["MRR", "found first"], rows, said)


def planes(judged: Mapping[str, PairJudgement], results: Mapping[str, Results], texts: Texts) -> dict[str, Plane]:
    """Alignment and uniformity on the text's own pairs ("text") and on STS-B ("sts"), where each is there."""
    found: dict[str, Plane] = {}
    if judged:
        said = f"{texts.name}, {texts.of}; a text and {PARTNERS[texts.pairs[0]]}"
        if texts.elsewhere:
            said += f". The trails of {', '.join(texts.elsewhere)} are of the text they held out themselves"
        found["text"] = Plane(said, {name: one.point for name, one in judged.items()})
    if results:
        shapes = {name: result.scores["sts"]["geometry"] for name, result in results.items()}
        points = {name: Point(shape["alignment"], shape["uniformity"]) for name, shape in shapes.items()}
        found["sts"] = Plane(f"STS-B, pairs with a score above {POSITIVE_ABOVE:g}", points)
    return found
