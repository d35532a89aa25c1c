"""The laws of the frame, over the whole registry: a method is held to them by being there.

A new method needs a line in OWN only where its defaults cannot work on a tiny encoder; a new record type needs a sample
in tests/conftest.py.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import isotrope
from isotrope.data.record_types import RECORD_TYPES
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.from_scratch import FromScratch
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.method_registry import find, registry
from isotrope.methods.frame.settings import describe, resolve
from isotrope.towers.keeping import Frozen, Momentum
from isotrope.training import run as training_run
from isotrope.training.loop import Job
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.run import Run
from isotrope.training.state import Finished, Judge

ROOT = Path(__file__).parents[2]
DIGESTS = Path(__file__).parent / "method_digests.py"
NAMES = [name for name, method in registry().items() if method.card.kind == "training"]
LOOP = {
    "max_steps": 4,
    "batch_size": 24,
    "eval_steps": 4,
    "logging_steps": 1,
    "learning_rate": 1e-3,
    "max_length": 32,
    "held_out": 0,
}
OWN: dict[str, dict[str, str]] = {
    "distil": {"teacher": "{tiny}"},
    "dclr": {"complement": "{tiny}"},
    "rankcse": {"teacher": "{tiny}"},
    "sg": {"projection": "64"},
    "sg-opt": {"projection": "64"},
}  # the built-in encoder and heads of 4,096 are slow

# Encoders from scratch are cut in their own tests; a copy of its teacher has no gradient.
CUT = [name for name in NAMES if not issubclass(find(name), FromScratch) and name != "distil"]
WITH_COMPANY = {
    "cline": "tokens of the first texts come before those of the second",
    "diffcse": "batch norm",
    "retromae": "what the decoder sees is drawn in the forward",
}
DRAWN_ONCE = ("dclr",)  # by the loss, for the whole batch

pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
every = pytest.mark.parametrize("name", NAMES)


def settings_of(name: str, tiny: Path) -> dict[str, Any]:
    return {setting: value.format(tiny=tiny) for setting, value in OWN.get(name, {}).items()}


def record_types(name: str) -> tuple[str, ...]:
    return find(name).record_types(find(name).Settings())


def sample_for(name: str, samples: dict[str, Path]) -> Path:
    return next(samples[each] for each in record_types(name) if each in samples)


def start_of(name: str, tiny: Path) -> str | Path:
    """Methods that initialise their encoder from scratch take no model: only the default, which is not asked for."""
    return "builtin-base" if issubclass(find(name), FromScratch) else tiny


@dataclass(frozen=True)
class Trained:
    """A run of four steps, the method as the loop left it, and its backbone and frozen towers as they were before."""

    name: str
    run: Run
    method: Method[Any]
    before: dict[str, Tensor]
    frozen: dict[str, dict[str, Tensor]]


@pytest.fixture(scope="module", params=NAMES)
def trained(
    request: pytest.FixtureRequest,
    tiny: Path,
    samples: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    rising_judge: Callable[..., Judge],
) -> Trained:
    name = request.param
    seen: dict[str, Any] = {}
    loop = training_run.train_loop

    def watched(job: Job, resume: bool = False) -> Finished:
        method = job.combined.method
        towers = {
            name: tower
            for name, tower in method.tower.items()
            if isinstance(tower, Frozen) and not isinstance(tower, Momentum)
        }
        seen["method"] = method
        seen["before"] = copied(method.encoder.backbone)
        seen["frozen"] = {name: copied(tower) for name, tower in towers.items()}
        return loop(job, resume)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_run, "train_loop", watched)
        patch.setattr("isotrope.evaluation.checkpoint_judge.make_judge", rising_judge)
        folder = tmp_path_factory.mktemp(name) / "whole"
        run = isotrope.train(
            name, sample_for(name, samples), start_of(name, tiny), folder, **LOOP, **settings_of(name, tiny)
        )
    return Trained(name, run, **seen)


@pytest.fixture
def make(
    built: Callable[..., Method[Any]], uneven_samples: dict[str, Path], tiny: Path
) -> Callable[[str], Method[Any]]:
    """The method on the tiny encoder with a sample of texts of many lengths, in training mode."""

    def made(name: str) -> Method[Any]:
        settings, _ = resolve(settings_of(name, tiny), find(name).Settings, LoopSettings)
        return built(name, sample_for(name, uneven_samples), **asdict(settings))

    return made


def usable(method: Method[Any]) -> list[int]:
    return method.prepared.select(np.arange(len(method.corpus))).tolist()  # type: ignore[arg-type]


def copied(module: torch.nn.Module) -> dict[str, Tensor]:
    return {key: value.clone() for key, value in module.state_dict().items()}


def test_every_record_type_has_a_sample(samples: dict[str, Path]) -> None:
    wanted = {each for name in NAMES for each in record_types(name)}
    assert wanted <= set(samples), "put samples of the new record types into SAMPLES of tests/conftest.py"
    assert set(OWN) <= set(NAMES)


def test_it_trains_and_its_loss_is_a_number(trained: Trained) -> None:
    lines = [line for line in trained.run.history if "loss" in line]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert all(math.isfinite(line["loss"]) for line in lines)
    assert all("information" in line for line in lines if line["candidates"] and "contrastive" in line)
    after = trained.method.encoder.backbone.state_dict()
    assert any(not torch.equal(value, after[key]) for key, value in trained.before.items())


def test_resume_equals_an_uninterrupted_run(
    trained: Trained,
    tiny: Path,
    samples: dict[str, Path],
    rising_scores: None,
    interrupted: Callable[[int], AbstractContextManager[None]],
) -> None:
    """To the last bit, what only training sees included: heads, towers, queues."""
    folder = trained.run.folder.parent / "cut"
    data = sample_for(trained.name, samples)
    common = {**LOOP, **settings_of(trained.name, tiny)}
    with interrupted(2), pytest.raises(KeyboardInterrupt, match="step 2"):
        isotrope.train(trained.name, data, start_of(trained.name, tiny), folder, **common)
    resumed = isotrope.train(trained.name, data, start_of(trained.name, tiny), folder, resume=True, **common)
    first, second = (
        load_file(run.folder / "checkpoints" / "step-4" / "weights.safetensors") for run in (trained.run, resumed)
    )
    assert first.keys() == second.keys()
    assert [key for key, value in first.items() if not torch.equal(value, second[key])] == []
    losses = [[line["loss"] for line in run.history if "loss" in line] for run in (trained.run, resumed)]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("name", CUT)
def test_chunks_give_the_gradient_of_the_whole_batch(
    name: str, make: Callable[[str], Method[Any]], chunks_agree: Callable[..., None]
) -> None:
    """With dropout on."""
    first, second = make(name), make(name)
    chunks_agree(first, second, usable(first)[:24], 10)


@pytest.mark.parametrize("name", [name for name in CUT if name not in WITH_COMPANY])
def test_padding_and_the_company_of_a_batch_do_not_matter(
    name: str, make: Callable[[str], Method[Any]], batched: Callable[..., Batch]
) -> None:
    method = make(name).eval()
    batch = batched(method, usable(method)[:12])
    parts = [method.represent(chunk) for chunk in batch.chunks(5)]
    for key, whole in method.represent(batch).items():
        assert torch.allclose(torch.cat([part[key] for part in parts]), whole, atol=5e-6, rtol=5e-6), key


@pytest.mark.parametrize("name", CUT)
def test_the_order_of_a_batch_does_not_matter(
    name: str, make: Callable[[str], Method[Any]], batched: Callable[..., Batch]
) -> None:
    method = make(name).eval()
    batch = batched(method, usable(method)[:24])
    found, generator = method.represent(batch), batch.generator()
    terms = method.loss(found, generator)
    if name not in DRAWN_ONCE and not torch.equal(generator.get_state(), batch.generator().get_state()):
        pytest.skip("the loss draws for each row")
    again = method.loss({key: tensor.flip(0) for key, tensor in found.items()}, batch.generator())
    assert {key: float(term) for key, term in again.items()} == pytest.approx(
        {key: float(term) for key, term in terms.items()}, rel=1e-5, abs=1e-5
    )


def test_two_processes_with_one_seed_train_the_same_weights(
    tiny: Path, samples: dict[str, Path], image_file: Path, tmp_path: Path
) -> None:
    """To the last bit, though the processes order their sets differently: each has a hash seed of its own.

    Methods that take images have a second run on some, and the classifier on frozen vectors has one.
    """
    loop = {**LOOP, "max_steps": 2, "eval_steps": 2}
    plan: dict[str, dict[str, Any]] = {
        name: {
            "method": name,
            "data": str(sample_for(name, samples)),
            "model": str(start_of(name, tiny)),
            "settings": {**loop, **settings_of(name, tiny)},
        }
        for name in NAMES
    }
    seeing = [name for name in NAMES if find(name).card.images is not None]
    assert {"simclr", "moco", "supcon"} <= set(seeing)
    for name in seeing:
        plan[f"{name} on images"] = {
            "method": name,
            "data": str(image_file),
            "model": "conv:4@16",
            "settings": {
                "max_steps": 2,
                "eval_steps": 2,
                "batch_size": 24,
                "held_out": 0,
                **({"queue": 40} if name == "moco" else {}),
            },
        }
    labelled = str(samples["labelled"])
    plan["head"] = {"method": "head", "data": labelled, "model": str(tiny), "settings": {}}
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    found = []
    for seed in ("1", "2"):
        ended = subprocess.run(
            [sys.executable, str(DIGESTS), str(tmp_path / "plan.json"), str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed, "ISOTROPE_CACHE": str(tmp_path / f"cache-{seed}")},
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stderr[-3000:]
        found.append(json.loads(ended.stdout.splitlines()[-1]))
    assert set(found[0]) == set(plan)
    assert [name for name in plan if found[0][name] != found[1][name]] == []


def test_the_saved_encoder_gives_the_same_vectors(trained: Trained, topics: list[str], tmp_path: Path) -> None:
    texts = [topics[0], topics[17], "a text of its own", "short"]
    expected = trained.run.encoder.encode(texts)
    assert expected.shape == (4, trained.run.encoder.dimension)
    trained.run.encoder.save(tmp_path / "again")
    for folder in (trained.run.folder / "model", tmp_path / "again"):
        found = isotrope.load(folder).encode(texts)
        assert torch.allclose(torch.from_numpy(found), torch.from_numpy(expected), atol=1e-5)


def test_what_only_training_needs_is_not_in_the_encoder(trained: Trained) -> None:
    """A tower that does not learn is never kept; a head that learns is kept whole or not at all."""
    kept = {id(parameter) for parameter in trained.run.encoder.parameters()}
    own = {id(parameter) for parameter in trained.method.encoder.parameters()}
    for name, tower in trained.method.tower.items():
        members = {id(parameter) for parameter in tower.parameters()} - own
        if isinstance(tower, Frozen):
            assert not members & kept, name
        else:
            assert members & kept in (set(), members), name
    buffers = {id(buffer) for key, buffer in trained.method.named_buffers() if not key.startswith("encoder.")}
    assert not buffers & {id(buffer) for buffer in trained.run.encoder.buffers()}
    saved = isotrope.load(trained.run.folder / "model")
    assert saved.state_dict().keys() == trained.run.encoder.state_dict().keys()


def test_frozen_towers_do_not_move(trained: Trained) -> None:
    for name, before in trained.frozen.items():
        tower = trained.method.tower[name]
        after = tower.state_dict()
        assert [key for key, value in before.items() if not torch.equal(value, after[key])] == [], name
        assert not any(parameter.requires_grad for parameter in tower.parameters()), name
        trained.method.train()
        assert not any(part.training for part in tower.module.modules()), name  # type: ignore[union-attr]


@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(find(name).Settings(), "learn_temperature")])
def test_a_temperature_that_can_be_learned_moves(
    name: str, tiny: Path, samples: dict[str, Path], tmp_path: Path, rising_scores: None
) -> None:
    settings = {**LOOP, **settings_of(name, tiny), "max_steps": 2, "learn_temperature": True}
    run = isotrope.train(name, sample_for(name, samples), start_of(name, tiny), tmp_path / "run", **settings)
    first, second = [line["temperature"] for line in run.history if "loss" in line]
    assert first != second


@every
def test_every_setting_is_explained(name: str) -> None:
    """By its meaning in the code, which `isotrope methods` prints, and on the method's own page by its name."""
    settings = describe(find(name).Settings)
    page = (ROOT / "docs" / "methods" / f"{find(name).__module__.rsplit('.', 1)[-1]}.md").read_text(encoding="utf-8")
    assert [setting.name for setting in settings] == [field.name for field in fields(find(name).Settings)]
    assert [setting.name for setting in settings if not setting.meaning] == []
    assert [setting.name for setting in settings if f"`{setting.name}`" not in page] == []


@every
def test_the_wrong_record_type_gets_a_sentence(name: str, samples: dict[str, Path], tiny: Path, tmp_path: Path) -> None:
    """It names what is needed and what was given, and nothing is left behind."""
    types = record_types(name)
    nobody = tmp_path / "nobody.tsv"
    nobody.write_text("left\tright\nx\ty\n", encoding="utf-8")
    wrong = {nobody: "'left', 'right'"}
    if not any(RECORD_TYPES[each].width == 1 for each in types):
        wrong[samples["sentences"]] = ".txt"
    for file, given in wrong.items():
        with pytest.raises(InputError) as caught:
            isotrope.train(name, file, start_of(name, tiny), tmp_path / "run", **LOOP, **settings_of(name, tiny))
        sentence = str(caught.value)
        assert types[0] in sentence
        assert given in sentence
        assert file.name in sentence
        assert "\n" not in sentence
        assert not (tmp_path / "run").exists()
