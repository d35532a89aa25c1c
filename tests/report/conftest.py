"""What the report's tests share: two tiny runs, made-up STS tasks, and a report on them, made once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from report_world import NASTY, World

import isotrope
from isotrope.evaluation.sts import TASKS
from isotrope.report.build import Report
from isotrope.training.state import TrainingWarning


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)


@pytest.fixture(scope="session")
def world(tiny: Path, topics: list[str], tmp_path_factory: pytest.TempPathFactory) -> World:
    """A text with documents, duplicates and HTML in it, and two runs on it."""
    folder = tmp_path_factory.mktemp("report")
    lines = [*topics[:310], NASTY, *topics[:9]]
    text = folder / "sentences.txt"
    text.write_text("\n\n".join("\n".join(lines[i : i + 8]) for i in range(0, len(lines), 8)) + "\n", encoding="utf-8")
    data = folder / "data" / "sts"
    data.mkdir(parents=True)
    for number, name in enumerate(TASKS.values()):
        pairs = [
            (topics[i], topics[i + step], 5 - step / 4)
            for i in range(number + 700, number + 760, 6)
            for step in (1, 4, 6, 9, 13, 19)
        ]
        rows = [f"{a}\t{b}\t{score}\tall" for a, b, score in pairs]
        (data / f"{name}.tsv").write_text(
            "sentence1\tsentence2\tscore\tsubset\n" + "\n".join(rows) + "\n", encoding="utf-8"
        )
    loop = {
        "max_steps": 6,
        "eval_steps": 2,
        "logging_steps": 1,
        "batch_size": 16,
        "held_out": 60,
        "max_length": 32,
        "learning_rate": 1e-3,
    }
    runs = folder / "runs" / "first", folder / "runs" / "second"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)  # six steps need not help
        isotrope.train("simcse", text, model=tiny, output=runs[0], **loop)
        isotrope.train("simcse", text, model=tiny, output=runs[1], dropout=0.0, **loop)
    return World(folder, text, data.parent, runs)


@pytest.fixture(scope="session")
def report(world: World) -> Iterator[Report]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ISOTROPE_DATA", raising=False)
        yield isotrope.report(*world.runs, data_dir=world.data, sentences=120)


@pytest.fixture(scope="session")
def page(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report.save(tmp_path_factory.mktemp("page") / "report.html")
