"""A flat record of each task: its score with all that the number hangs on, for programs that read one line a task.

    suite, task, metric, score, protocol, aggregation, pooling, items, seeds

Where a suite does not say otherwise (``Suite.main_scores``), the first number of a task's entry is its main measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.results import Results, read_out
from isotrope.version import __version__

if TYPE_CHECKING:
    from isotrope.evaluation.suite import Options, Suite

# Names under which suites count what a score is made of.
COUNTS = ("pairs", "queries", "questions", "judged", "count", "items", "test", "texts", "rows", "sentences")


def task_records(suite: Suite, results: Results, encoder: Encoder, options: Options) -> list[dict[str, Any]]:
    """One record a task, in the order of the scores."""
    name = suite.card.name
    said: dict[str, Any] = {
        key: results.protocol[key] for key in ("aggregation", "space", "precision") if key in results.protocol
    }
    found: list[dict[str, Any]] = []
    for task, (metric, score) in suite.main_scores(results).items():
        found.append(
            {
                "suite": name,
                "task": task,
                "metric": metric,
                "score": score,
                "protocol": results.protocol.get("protocol", suite.card.protocol),
                "version": __version__,
                "aggregation": "all",
                **said,
                "pooling": read_out(encoder)["pooling"],
                "items": _count(results, name, task),
                "seeds": list(options.seeds),
            }
        )
    return found


def first_numbers(entries: Mapping[str, Any]) -> dict[str, tuple[str, float]]:
    """By task, the name and value of the first number of its entry; entries without one are facts, not tasks.

    Where nothing is nested, each number is a task of its own.
    """
    if not any(isinstance(entry, Mapping) for entry in entries.values()):
        return {name: (name, value) for name, value in entries.items() if isinstance(value, float)}
    found = {}
    for task, entry in entries.items():
        first = _first(entry) if isinstance(entry, Mapping) else None
        if first is not None:
            found[task] = first
    return found


def _first(entry: Mapping[str, Any]) -> tuple[str, float] | None:
    for name, value in entry.items():
        if isinstance(value, Mapping):
            inner = _first(value)
            if inner is not None:
                return (name if inner[0] in ("value", "share") else inner[0]), inner[1]
        elif isinstance(value, float):
            return name, value
    return None


def _count(results: Results, suite: str, task: str) -> int | None:
    """The items that verdicts are taken of, or what the suite counts itself."""
    if task in results.items:
        return len(results.items[task])
    scores = results.scores[suite]
    counted = ((scores.get(task) or {}), scores) if isinstance(scores.get(task), Mapping) else (scores,)
    for entry in counted:
        number = next((entry[name] for name in COUNTS if isinstance(entry.get(name), int)), None)
        if number is not None:
            return int(number)
    return None
