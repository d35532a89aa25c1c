"""What a person should know before believing the page: collapse, no progress, duplicates, leaks. A sentence each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from isotrope.data.leaks import find_leaks
from isotrope.data.protected_sentences import Protected
from isotrope.data.tables import format_of
from isotrope.evaluation.geometry_description import TextGeometry
from isotrope.report.subjects import Cast, Subject
from isotrope.report.texts import Texts
from isotrope.training.collapse import CollapseAlarm

MANY_DUPLICATES = 0.01  # of the records
NEEDLE = 0.95  # mean cosine of two sentences


@dataclass(frozen=True)
class Alarm:
    """``category``: collapse, no progress, needle, leak or duplicates."""

    category: str
    subject: str
    sentence: str


def collapse(run: Subject) -> list[Alarm]:
    """The alarm of the training loop, sounded again from the history."""
    alarm = CollapseAlarm()
    said: list[str] = []
    for line in run.history:
        if "loss" in line:
            said += alarm.after_log(
                int(line["step"]), float(line.get("contrastive", 0.0)), int(line.get("candidates", 0))
            )
        if "evaluation" in line:
            said += alarm.after_evaluation(int(line["step"]), line["evaluation"])
    return [Alarm("collapse", run.name, sentence) for sentence in said]


def no_progress(run: Subject) -> list[Alarm]:
    judged = [line for line in run.history if line.get("chosen_by")]
    missing = sum("score" not in line for line in judged)
    if missing:
        said = f"{judged[0]['chosen_by']} was not a number at {missing} of {len(judged)} evaluations"
        return [Alarm("no progress", run.name, f"{said}: it did not choose the checkpoint. Check eval_data.")]
    scores = [(line["step"], line["score"], line.get("chosen_by", "score")) for line in run.history if "score" in line]
    if len(scores) < 2 or scores[0][0] != 0:
        return []
    best = max(score for _, score, _ in scores[1:])
    if best > scores[0][1]:
        return []
    return [
        Alarm(
            "no progress",
            run.name,
            f"{scores[0][2]} was {scores[0][1]:.4f} before training and at best {best:.4f} after.",
        )
    ]


def duplicates(run: Subject) -> list[Alarm]:
    counts = run.facts.get("data", {})
    return _duplicates(run.name, int(counts.get("duplicates", 0)), int(counts.get("records", 0)), "its training data")


def leaks(run: Subject, protected: Protected | None) -> list[Alarm]:
    """Lines of the run's text that hold a sentence of the test sets."""
    source = run.source
    if protected is None or source is None:
        return []
    if format_of(source) not in (".txt", ".tsv"):
        return []
    found = find_leaks([source], protected)
    count = sum(found.leaks.values())
    if not count:
        return []
    sets = ", ".join(f"{name} ({number:,})" for name, number in found.by_set.most_common(4))
    example = found.examples[0]
    return [
        Alarm(
            "leak",
            run.name,
            f"{count:,} of {sum(found.lines.values()):,} lines of its text hold a sentence of {sets}, such as "
            f"line {example['line']}: “{example['text']}”. `isotrope leaks` writes a clean copy.",
        )
    ]


def all_warnings(
    cast: Cast, texts: Texts, protected: Protected | None, geometry: Mapping[str, TextGeometry]
) -> list[Alarm]:
    """Every warning, the gravest first."""
    runs = cast.runs
    found = [warning for run in runs for warning in (*collapse(run), *no_progress(run))]
    for name, shape in geometry.items():
        if shape.mean_cosine > NEEDLE:
            found.append(
                Alarm(
                    "needle",
                    name,
                    f"Two sentences of the sample have a mean cosine of {shape.mean_cosine:.3f}: they hardly differ.",
                )
            )
    by_text = {str(run.source.resolve()): run for run in reversed(runs) if run.source is not None}  # one look a text
    found += [warning for run in reversed(by_text.values()) for warning in leaks(run, protected)]
    by_data = {str(run.facts.get("data", {}).get("fingerprint")): run for run in reversed(runs)}
    found += [warning for run in reversed(by_data.values()) for warning in duplicates(run)]
    if not runs:
        found += _duplicates("text", texts.duplicates, texts.total, texts.name)
    return found


def _duplicates(subject: str, count: int, total: int, where: str) -> list[Alarm]:
    if not total or count / total < MANY_DUPLICATES:
        return []
    return [
        Alarm(
            "duplicates",
            subject,
            f"{count:,} of {total:,} records of {where} stood there before ({100 * count / total:.1f} %).",
        )
    ]
