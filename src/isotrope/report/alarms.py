"""What a person should know before believing the page: collapse, no progress, duplicates, leaks. A sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from isotrope.data.leaks import Row, find_leaks
from isotrope.data.protected_sentences import Protected
from isotrope.data.tables import format_of
from isotrope.errors import InputError
from isotrope.evaluation.geometry_description import TextGeometry
from isotrope.evaluation.training_text import texts_of
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


@dataclass
class ProtectedRows:
    """Protected sentences that are looked for in the rows of a .csv, .jsonl or .parquet."""

    protected: Protected
    sizes: Counter[str]

    def texts_of(self, source: Path) -> Iterator[Row]:
        return ((" ".join(texts), texts) for texts in texts_of(source))

    def leaking(self, rows: Sequence[Sequence[str]]) -> Mapping[int, Set[str]]:
        return self.protected.leaking(rows)


def leaks(run: Subject, protected: Protected | None) -> list[Alarm]:
    """Lines of the run's text, or rows, that hold a sentence of the test sets."""
    source = run.source
    if protected is None or source is None:
        return []
    lines = format_of(source) in (".txt", ".tsv")
    try:
        found = find_leaks([source], protected if lines else ProtectedRows(protected, protected.sizes))
    except InputError:  # it holds names and numbers, and no text
        return []
    count = sum(found.leaks.values())
    if not count:
        return []
    sets = ", ".join(f"{name} ({number:,})" for name, number in found.by_set.most_common(4))
    example = found.examples[0]
    what, advice = ("line", "`isotrope leaks` writes a clean copy.") if lines else ("row", "Take such rows out.")
    return [
        Alarm(
            "leak",
            run.name,
            f"{count:,} of {sum(found.lines.values()):,} {what}s of its text hold a sentence of {sets}, such as "
            f"{what} {example['line']}: “{example['text']}”. {advice}",
        )
    ]


def unread_texts(runs: Sequence[Subject]) -> list[str]:
    """A sentence on each run whose text cannot be looked through: no word of leaks would sound like none."""
    return [
        f"{run.name}: leaks were not looked for in its text, which is not one file that lies here."
        for run in runs
        if run.source is None and not str((run.facts.get("data") or {}).get("record_type")).endswith("images")
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
