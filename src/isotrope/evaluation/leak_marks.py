"""A mark at each score whose test items stand in the training text, and a footnote with their number.

An item leaks where a line of the training text holds it word for word (data/protected_sentences.py), or is almost the
same set of words (data/near_copies.py). What a suite tests is what its ``judged_texts`` says. Counts are cached by the
content of the files and of the tests.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from isotrope.data.cache_folders import sealed, unsealed
from isotrope.data.compared_words import words_of
from isotrope.data.near_copies import NearCopies
from isotrope.data.protected_sentences import SHORTEST, Protected
from isotrope.data.record_blocks import record_blocks
from isotrope.data.sentences import split_sentences
from isotrope.errors import InputError
from isotrope.evaluation.results import Results, Section
from isotrope.evaluation.suite_runs import PlannedSuite
from isotrope.evaluation.training_text import TrainingText, texts_of, training_text
from isotrope.files import cache_folder, digest, file_digest, write_json
from isotrope.progress import bar, say

MARK = "†"
MUCH = 0.05  # share of the texts of a test from which a verdict names it
UNKNOWN = "training text unknown"
Counted = dict[str, dict[str, int]]  # suite/task → items, copies, near


def mark_leaks(
    found: Sequence[tuple[str, Results]], planned: Sequence[PlannedSuite], model: str | os.PathLike[str] | None
) -> list[tuple[str, Results]]:
    """The same results, with marks, footnotes and counts."""
    text = training_text(model)
    judged = {one.name: one.suite.judged_texts(one.options) for one in planned} if text.files else {}
    flat = {f"{suite}/{task}": texts for suite, tasks in judged.items() for task, texts in tasks.items()}
    counted = count_leaks(text.files, flat) if flat else {}
    titles = {one.name: one.suite.row_titles for one in planned}
    return [(name, _marked(name, results, text, counted, titles[name])) for name, results in found]


def joined_leaks(found: Sequence[tuple[str, Results]]) -> dict[str, Any]:
    """What several suites say, as one; each sentence once."""
    every = [results.leaks for _, results in found if results.leaks]
    if not every:
        return {}
    remarks = dict.fromkeys(line for one in every for line in one["remarks"])
    tasks = {task: counts for one in every for task, counts in one["tasks"].items()}
    return {**every[0], "tasks": tasks, "remarks": list(remarks)}


def count_leaks(files: Sequence[Path], judged: Mapping[str, Sequence[str]]) -> Counted:
    """By task: different test texts of three words and more, those found word for word, and those found nearly so."""
    keys = {
        task: {" ".join(words) for text in texts if len(words := words_of(text)) >= SHORTEST}
        for task, texts in judged.items()
    }
    name = digest(
        "leaks-2", *(file_digest(file) for file in files), *(digest(task, *sorted(own)) for task, own in keys.items())
    )
    place = cache_folder() / "leaks" / f"{name}.json"
    known = _cached(place, keys)
    if known is not None:
        return known
    copies, near = _search(files, {key for own in keys.values() for key in own})
    counted = {
        task: {"items": len(own), "copies": len(own & copies), "near": len((own & near) - copies)}
        for task, own in keys.items()
    }
    try:
        write_json(place, sealed(counted))
    except (InputError, OSError) as error:
        say(f"The count of leaks is not kept for the next call: {error}")
    return counted


def _search(files: Sequence[Path], keys: set[str]) -> tuple[set[str], set[str]]:
    """The keys that the files hold word for word, and those they nearly hold."""
    if not keys:
        return set(), set()
    exact, almost = Protected([("tests", keys)]), NearCopies(keys)
    copies: set[str] = set()
    near: set[str] = set()
    for file in files:
        with bar(f"looking for test items in {file.name}", None) as advance:
            for block in record_blocks(texts_of(file), lambda texts: sum(map(len, texts))):
                words = {text: words_of(text) for texts in block for text in texts}
                copies.update(*exact.found_among(list(words.values())).values())
                for text, own in words.items():
                    near.update(almost.found_in(own))
                    for part in split_sentences(text):
                        if part != text:
                            near.update(almost.found_in(words_of(part)))
                advance(len(block))
    copies &= keys  # their sentences are protected as well
    return copies, near


def _cached(place: Path, keys: Mapping[str, Any]) -> Counted | None:
    if not place.is_file():
        return None
    try:
        found = unsealed(json.loads(place.read_text(encoding="utf-8")))
        assert set(found) == set(keys)
        assert all({"items", "copies", "near"} == set(counts) for counts in found.values())
    except (OSError, ValueError, AssertionError, AttributeError, TypeError):
        say(f"{place}: damaged; leaks are looked for again.")
        return None
    return found


def _marked(suite: str, results: Results, text: TrainingText, counted: Counted, titles: Mapping[str, str]) -> Results:
    own = {key.split("/", 1)[1]: counts for key, counts in counted.items() if key.startswith(f"{suite}/")}
    leaked = {task for task, counts in own.items() if counts["copies"] + counts["near"]}
    tasks = [{**task, "leaked": own.get(task["task"], None if text.files else UNKNOWN)} for task in results.tasks]
    leaks = {
        "training_text": [str(file) for file in text.files],
        "unknown": list(text.unknown),
        "tasks": {f"{suite}/{task}": counts for task, counts in own.items()},
        "remarks": _remarks(suite, text, own, leaked),
    }
    known = {titles.get(task, task): task in leaked for task in own}
    sections = [Section(one.title, one.columns, _rows(one.rows, known), one.caption) for one in results.sections]
    return replace(results, rows=_rows(results.rows, known), sections=sections, tasks=tasks, leaks=leaks)


def much_leaked(model: str, runs: Sequence[Results]) -> tuple[str, ...]:
    """A sentence to go with a verdict where more than a few texts of a test stand in the training text of a run."""
    shares: dict[str, float] = {}
    for counted in (results.leaks.get("tasks", {}) for results in runs if results.leaks):
        for task, counts in counted.items():
            share = (counts["copies"] + counts["near"]) / max(counts["items"], 1)
            shares[task] = max(shares.get(task, 0.0), share)
    much = [f"{100 * share:.0f} % of {task.split('/', 1)[1]}" for task, share in shares.items() if share > MUCH]
    return (f"But test texts stand in the training text of {model}: {', '.join(much)}.",) if much else ()


def _rows(rows: Sequence[tuple[str, ...]], known: Mapping[str, bool]) -> list[tuple[str, ...]]:
    """``known``: by the name of a row, whether its task leaks. Behind the name a row may say what was read for it."""
    return [(f"{row[0]} {MARK}", *row[1:]) if row and _leaks(row[0], known) else row for row in rows]


def _leaks(name: str, known: Mapping[str, bool]) -> bool:
    return known.get(name, known.get(name.partition(" (")[0], False))


def _remarks(suite: str, text: TrainingText, own: Counted, leaked: set[str]) -> list[str]:
    names = ", ".join(file.name for file in text.files)
    remarks = []
    if leaked:
        counts = "; ".join(
            f"{task} {found['copies'] + found['near']:,} of {found['items']:,}"
            + (f" ({found['near']:,} nearly)" if found["near"] else "")
            for task, found in own.items()
            if task in leaked
        )
        remarks.append(f"{MARK} {suite}: test texts that stand in the training text ({names}): {counts}.")
    elif own:
        remarks.append(f"{suite}: no test text stands in the training text ({names}).")
    elif text.files:
        remarks.append(f"{suite}: it does not say which texts it tests, so leaks are not looked for.")
    if text.unknown:
        remarks.append(f"{UNKNOWN}: {', '.join(text.unknown)}.")
    return remarks
