"""Runs that are made once: each is a line of a file, so a benchmark that is stopped goes on where it was.

Several processes may append to one file, each with its part of the runs; a last call reads them all and prints the
table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


class KeptRuns:
    """By what a run was asked to do, what it gave; without a file nothing is kept."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.found: dict[str, Any] = {}
        if file is not None and file.is_file():
            for line in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
                self.found[_key(line["run"])] = line["result"]

    def get(self, run: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """The result of ``run``; ``make`` is called where the file has none."""
        key = _key(run)
        if key not in self.found:
            self.found[key] = make()
            if self.file is not None:
                with open(self.file, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"run": dict(run), "result": self.found[key]}) + "\n")
        return self.found[key]


def _key(run: Mapping[str, Any]) -> str:
    return json.dumps(run, sort_keys=True)
