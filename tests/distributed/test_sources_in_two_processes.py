"""Several sources in two processes: the weights of one process, and a resumed run that equals an uninterrupted one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from worker import descend

STEPS = 6
WEIGHTS = Path("checkpoints", f"step-{STEPS}", "weights.safetensors")

pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")


@pytest.fixture(scope="module")
def case(still: Path, samples: dict[str, Path]) -> dict[str, Any]:
    """Methods whose views draw nothing, two of them with towers of their own; a batch is cut into chunks."""
    learned = {"head": "train-only", "learn_temperature": True}
    return {
        "sources": [
            {"data": str(samples["triples"]), "method": "simcse-supervised", "share": 2, "settings": learned},
            {"data": str(samples["scored-pairs"]), "method": "cosent", "share": 1, "settings": {"batch_size": 12}},
            {"data": str(samples["sentences"]), "method": "simcse", "share": 1, "settings": learned},
        ],
        "model": str(still),
        "pooling": "mean",
        "max_steps": STEPS,
        "batch_size": 16,
        "chunk_size": 5,
        "eval_steps": 3,
        "logging_steps": 1,
        "learning_rate": 0.1,
        "weight_decay": 0.1,
        "max_length": 32,
        "held_out": 0,
    }


@pytest.fixture(scope="module")
def two(case: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    (folder / "case.json").write_text(json.dumps(case), encoding="utf-8")
    worker = Path(__file__).with_name("sources_worker.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(worker)]
    done = subprocess.run(
        [*command, str(folder / "case.json"), str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return folder


def lines(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "records_per_second")} for line in found]


def test_two_processes_equal_one(case: dict[str, Any], two: Path, tmp_path: Path) -> None:
    descend(case, tmp_path / "one")
    alone, together = load_file(tmp_path / "one" / WEIGHTS), load_file(two / "two" / WEIGHTS)
    assert alone.keys() == together.keys()
    assert any("parts.2.method.tower.head" in name for name in alone)
    apart = {key: float((value.double() - together[key].double()).abs().max()) for key, value in alone.items()}
    # A learned temperature moves by half a unit, its rate is a hundred times that of weights: so is what rounding does.
    assert {key: gap for key, gap in apart.items() if gap > (3e-4 if key.endswith("log_scale") else 3e-6)} == {}
    steps = list(zip(lines(tmp_path / "one"), lines(two / "two"), strict=True))
    trained = [(mine, theirs) for mine, theirs in steps if "training" in mine]
    order = ["triples", "scored_pairs", "sentences", "triples", "triples", "scored_pairs"]
    assert [mine["source"] for mine, _ in trained] == order
    for mine, theirs in trained:
        assert theirs["source"] == mine["source"]
        assert theirs["training"]["candidates"] == mine["training"]["candidates"]
        assert theirs["training"]["loss"] == pytest.approx(mine["training"]["loss"], rel=1e-5, abs=1e-5)
    assert max(mine["gradient_norm"] for mine, _ in steps if "gradient_norm" in mine) > 0.1


def test_a_run_of_two_processes_resumes_bit_for_bit(two: Path) -> None:
    whole, resumed = load_file(two / "whole" / WEIGHTS), load_file(two / "cut" / WEIGHTS)
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert [line for line in lines(two / "whole") if "held_out" in line] == [
        line for line in lines(two / "cut") if "held_out" in line
    ]
