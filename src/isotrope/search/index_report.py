"""What ``index`` answers: how many rows, what was encoded, what it took and what it costs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cost:
    """One way to search the index: bytes a vector that a query reads, recall@10 against exact float32, time."""

    vectors: str
    bytes: int
    recall: float
    milliseconds: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "vectors": self.vectors,
            "bytes": self.bytes,
            "recall@10": round(self.recall, 4),
            "ms_a_query": round(self.milliseconds, 3),
        }


@dataclass(frozen=True)
class Indexed:
    """The index that ``index`` left at ``place``.

    ``encoded`` texts went through the model, ``reused`` ones had their vector already; ``replaced`` and ``deleted``
    rows are gone. ``memory`` is the most that the process held, in bytes; ``size`` what the index takes.
    """

    place: str
    engine: str
    rows: int
    encoded: int = 0
    reused: int = 0
    replaced: int = 0
    deleted: int = 0
    empty_left_out: int = 0
    cut: int = 0
    dimension: int = 0
    precision: str = "float32"
    stemmer: str = "none"
    seconds: float = 0.0
    size: int | None = None
    memory: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    costs: Sequence[Cost] = ()

    def to_dict(self) -> dict[str, Any]:
        facts = {**vars(self), "seconds": round(self.seconds, 3), "costs": [cost.to_dict() for cost in self.costs]}
        return {name: value for name, value in facts.items() if value is not None}

    def rows_of_table(self) -> list[dict[str, Any]]:
        shown = {
            "index": self.place,
            "rows": f"{self.rows:,}",
            "encoded": f"{self.encoded:,}",
            "reused": f"{self.reused:,}",
        }
        for name in ("replaced", "deleted", "empty_left_out", "cut"):
            if getattr(self, name):
                shown[name.replace("_", " ")] = f"{getattr(self, name):,}"
        shown["vectors"] = f"{self.dimension} × {self.precision}"
        shown["stemmer"] = self.stemmer
        shown["seconds"] = f"{self.seconds:,.1f}"
        if self.size is not None:
            shown["on disk"] = megabytes(self.size)
        shown["peak memory"] = megabytes(self.memory)
        return [shown]


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def peak_memory() -> int:
    """The most that this process held so far, in bytes; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
