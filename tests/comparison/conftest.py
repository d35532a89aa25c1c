"""A comparison that takes a second, and a folder of made-up STS tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from isotrope.evaluation.sts import TASKS


@pytest.fixture
def short(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    loop = {
        "max_steps": 4,
        "eval_steps": 4,
        "logging_steps": 2,
        "batch_size": 16,
        "held_out": 40,
        "max_length": 24,
        "learning_rate": 1e-3,
    }
    return {"model": tiny, "seeds": 2, **loop}


@pytest.fixture
def benchmarks(tmp_path: Path, topics: list[str]) -> Path:
    """Seven tasks of a few pairs each; gold is how far apart two sentences stand in the list."""
    folder = tmp_path / "data" / "sts"
    folder.mkdir(parents=True)
    for number, name in enumerate(TASKS.values()):
        pairs = [
            (topics[i], topics[i + step], 5 - step / 4) for i in range(number, number + 60, 6) for step in (1, 4, 13)
        ]
        rows = [f"{a}\t{b}\t{score}\tall" for a, b, score in pairs]
        (folder / f"{name}.tsv").write_text(
            "sentence1\tsentence2\tscore\tsubset\n" + "\n".join(rows) + "\n", encoding="utf-8"
        )
    return folder.parent
