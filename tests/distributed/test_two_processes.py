"""Two processes equal one: two steps of every method, from the text to the weights.

Dropout is off. What ``views`` draw (edits, spans, masks, wrong orders, hard entities) belongs to a process by design,
so the one process makes its views in two halves, each with the random numbers of the process that would have made it.
What ``loss`` draws is the same everywhere and stays as it is.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import pad
from worker import descend

import isotrope
from isotrope.data.corpus import Records
from isotrope.data.random_streams import keyed_seed
from isotrope.methods.frame.batch import View
from isotrope.methods.frame.from_scratch import FromScratch
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.method_registry import find, registry
from isotrope.tokens.padded import Tokens, join
from isotrope.views.masking import Masked
from isotrope.views.numbers import Numbers

SEED, BATCH = 42, 16
LOOP: dict[str, Any] = {
    "max_steps": 2,
    "batch_size": BATCH,
    "eval_steps": 2,
    "logging_steps": 1,
    "learning_rate": 0.1,
    "warmup_ratio": 0.0,
    "max_length": 32,
    "held_out": 0,
    "seed": SEED,
}
OWN: dict[str, dict[str, Any]] = {  # small enough for a tiny encoder, and with as many parts as there are
    "simcse": {"pooling": "cls", "learn_temperature": True},
    "simcse-supervised": {"pooling": "cls"},
    "moco": {"queue": 24, "momentum": 0.9},  # two batches go once around
    "cert": {"queue": 24, "momentum": 0.9},
    "dclr": {
        "complement": "{model}",
        "threshold": 0.98,
        "temperature": 1.0,
    },  # half of the pairs are negatives, and noise counts
    "distil": {"teacher": "{tiny}"},
    "rankcse": {"teacher": "{tiny}", "temperature": 1.0, "ranking_weight": 0.1},
    "vascl": {"neighbours": 4, "radius": 0.3, "head_learning_rate": 0.1},
    "sg": {"projection": 64},
    "sg-opt": {"projection": 64},
    "supcon": {"cross_entropy_weight": 0.1},
    "ease": {"entity_weight": 1.0},
    "esimcse": {"pooling": "cls", "queue": 24, "momentum": 0.9},
    "promptbert": {"pooling": "mask"},  # with its templates
    "sncse": {"pooling": "mask", "margin_weight": 1.0},
    "dialogue-order": {"form": "contrastive"},
    "diffcse": {"detection_weight": 1.0},  # the terms over tokens count as much as the contrast
    "infocse": {"reconstruction_weight": 1.0},
    **{name: {"mlm_weight": 0.0} for name in ("declutr", "nsp", "sop")},  # each process draws masks of its own
    "retromae": {"decoder_mask": 1e-9},  # each process draws what its decoder sees
    "fine-tune": {"dropout": 0.0},  # the head has its own
    "word2vec": {"dimension": 1, "window": 2},  # its vectors begin within ±0.5/dimension
}
LEAST = {"word2vec": 0.02, "simclr, semi-hard": 0.02}  # its second table begins at 0; a hinge has no temperature
NAMES = [name for name, method in registry().items() if method.card.kind == "training"]
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {  # settings of a method that gather or draw in another way
    "moco, end-to-end": ("moco", {"mechanism": "end-to-end", "queue": None}),
    "moco, memory bank": ("moco", {"mechanism": "memory-bank", "queue": 480}),
    "moco, nce": ("moco", {"loss": "nce", "negatives": 4}),
    "simclr, semi-hard": ("simclr", {"loss": "triplet", "mining": "semi-hard"}),
    "simcse, two towers": ("simcse", {"towers": "separate", "loss": "negative-sampling", "learn_temperature": False}),
}
CHILDREN = {f"child-{form}": {"child_tuning": form, "child_samples": 64, "weight_decay": 0.0} for form in "FD"}

pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")


@pytest.fixture(scope="module")
def cases(still: Path, tiny: Path, samples: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """By name of the method, what ``isotrope.train`` takes."""
    found, models = {}, {"{model}": str(still), "{tiny}": str(tiny)}
    for name in NAMES:
        own = {setting: models.get(value, value) for setting, value in OWN.get(name, {}).items()}
        theirs = {setting: value for setting, value in own.items() if setting not in ("pooling", "mlm_weight")}
        chosen = find(name).Settings(**theirs)
        data = next(samples[one] for one in find(name).record_types(chosen) if one in samples)
        start = {} if issubclass(find(name), FromScratch) else {"model": str(still)}
        found[name] = {"method": name, "data": str(data), **start, **LOOP, **own}
    tactics = {**CHILDREN, "chain-thaw": {"chain_thaw": "1,0,0,0", "chain_head_rate": 1.0}}  # the head alone, then all
    found |= {name: {**found[method], **own} for name, (method, own) in VARIANTS.items()}
    trained_first = {"dclr-auto": {**found["dclr"], "complement": "auto", "complement_steps": 1}}
    return found | trained_first | {name: {**found["simcse"], **own} for name, own in tactics.items()}


@pytest.fixture(scope="module")
def two(
    tiny: Path,
    samples: dict[str, Path],
    topics: list[str],
    cases: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The folder of the runs that two processes made together; they have found that their weights are the same."""
    folder = tmp_path_factory.mktemp("two")
    texts = {kind: str(samples[kind]) for kind in ("sentences", "triples")}
    documents = folder / "documents.txt"
    pairs = ["\n".join(topics[place : place + 2]) for place in range(0, len(topics), 2)]
    documents.write_text("\n\n".join(pairs) + "\n", encoding="utf-8")
    given = {"model": str(tiny), **texts, "documents": str(documents), "cases": cases}
    (folder / "cases.json").write_text(json.dumps(given), encoding="utf-8")
    worker = Path(__file__).with_name("worker.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(worker)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    arguments = [str(folder / "cases.json"), str(folder)]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, env=environment, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return folder


def in_halves(kind: type[Method]) -> Callable[[Method, Records, np.random.Generator], dict[str, View]]:
    """``views`` as two processes make them, one after the other."""
    plain, numbers = kind.views, itertools.count()

    def views(self: Method, records: Records, rng: np.random.Generator) -> dict[str, View]:
        number, half = next(numbers), len(records) // 2
        dice = [np.random.default_rng(keyed_seed("views", SEED, number, process)) for process in range(2)]
        assert rng.bit_generator.state == dice[0].bit_generator.state
        rows = [records.rows[:half], records.rows[half:]]
        first, second = (plain(self, Records(records.corpus, mine), own) for mine, own in zip(rows, dice, strict=True))
        return {name: joined(first[name], second[name], self.encoder.text_tokenizer.pad) for name in first}

    return views


def joined(first: Any, second: Any, padding: int) -> View:
    if isinstance(first, Tokens):
        return join([first, second], padding)
    if isinstance(first, Numbers):
        return Numbers(torch.cat([first.values, second.values]))
    assert isinstance(first, Masked)
    tokens = join([first.tokens, second.tokens], padding)
    width = tokens.ids.shape[1]
    return Masked.of(
        tokens, torch.cat([pad(part.labels, (0, width - part.labels.shape[1]), value=-100) for part in (first, second)])
    )


@pytest.mark.parametrize(
    "name", [*NAMES, *VARIANTS, "dclr-auto", "child-F", "chain-thaw"]
)  # D draws views before the first step; that both processes agree is tested all the same
def test_two_processes_equal_one(
    name: str, two: Path, cases: dict[str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same weights, heads, towers and queues after two steps, and on the way the same losses, gradients and
    candidates.
    """
    method = find(cases[name]["method"])
    monkeypatch.setattr(method, "views", in_halves(method))
    alone = descend(cases[name], tmp_path / "one")
    together = load_file(two / name / "checkpoints" / "step-2" / "weights.safetensors")
    assert alone.keys() == together.keys()
    apart = {key: float((value.double() - together[key].double()).abs().max()) for key, value in alone.items()}
    # A learned temperature moves by half a unit, its rate is a hundred times that of weights: so is what rounding does.
    assert {key: gap for key, gap in apart.items() if gap > (3e-4 if key.endswith("log_scale") else 3e-6)} == {}

    steps = list(zip(logged(tmp_path / "one"), logged(two / name), strict=True))
    for mine, theirs in steps:
        assert theirs["candidates"] == mine["candidates"]
        assert theirs["loss"] == pytest.approx(mine["loss"], rel=1e-5, abs=1e-5)
        assert theirs["gradient_norm"] == pytest.approx(mine["gradient_norm"], rel=1e-4)
    assert max(mine["gradient_norm"] for mine, _ in steps) > LEAST.get(
        name, 0.1
    )  # weights that do not move would prove nothing


def logged(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [line for line in lines if "loss" in line]
    assert [line["step"] for line in found] == [1, 2]
    return found


@pytest.mark.parametrize("tasks", ["mlm", "mlm,nsp"])
def test_two_processes_pretrain_together_and_resume(tasks: str, two: Path) -> None:
    """That both ended with the same weights, they have found themselves."""
    folder = two / "pretrained" / tasks
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    held = {line["step"]: line["evaluation"]["held_out_loss"] for line in lines if "evaluation" in line}
    assert list(held) == [0, 1, 6, 12]
    assert held[12] < held[0]
    assert isotrope.load(folder / "model").encode("the chef bakes").shape == (32,)
