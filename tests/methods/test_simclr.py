"""SimCLR: what is compared, what is trained, what is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import Records
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.methods.simclr import SimCLR
from isotrope.objectives import nt_xent

Build = Callable[..., Any]
Batched = Callable[..., Batch]
SHORT: dict[str, Any] = {
    "batch_size": 16,
    "logging_steps": 1,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 32,
    "projection": 16,
}
STILL: dict[str, Any] = {"dropout": 0.0, "edits": "none"}
unjudged = pytest.mark.filterwarnings("ignore:Training did not improve")


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    return lambda data=sentences, **settings: built("simclr", data, **{"projection": 16, **settings})


def test_the_card_and_the_papers_numbers() -> None:
    card = next(card for card in isotrope.methods() if card.name == "simclr")
    assert (card.needs, card.year, card.kind) == ("sentences", 2020, "training")
    settings = SimCLR.Settings()
    assert (settings.temperature, settings.projection, settings.head_layers) == (0.1, 128, 2)


@pytest.mark.parametrize(("temperature", "expected"), [(0.5, 2.030190), (0.1, 8.063780)])
def test_golden_values(build: Build, temperature: float, expected: float) -> None:
    """specs/2, section 1.8; the released code's loss is twice this."""
    method = build(temperature=temperature)
    first, second = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.6, 0.8], [0.8, -0.6]])
    loss = method.loss({"first": first, "second": second}, torch.Generator())["contrastive"]
    assert float(loss) == pytest.approx(expected, abs=1e-5)


def test_a_head_with_norms_has_no_biases_and_centres_its_vectors(build: Build, batched: Batched) -> None:
    """The released code's: a batch norm behind each map, the last one without a shift."""
    method = build(head_layers=3, head_norm=True)
    found = torch.cat([*method.represent(batched(method)).values()])
    assert found.mean(dim=0).abs().max() < 1e-5
    assert torch.allclose(found.var(dim=0, correction=0), torch.ones(16), atol=1e-2)
    names = [name for name, _ in method.tower["head"].module.named_parameters()]
    assert names == ["0.weight", "1.weight", "1.bias", "3.weight", "4.weight", "4.bias", "6.weight", "7.weight"]


def test_a_head_with_norms_refuses_chunks(sentences: Path, tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="would see a chunk"):
        isotrope.train("simclr", sentences, tiny, tmp_path / "run", chunk_size=8, head_norm=True, **SHORT)


def test_collapsed_vectors_give_the_logarithm_of_the_candidates(build: Build) -> None:
    method = build()
    same = {"first": torch.ones(8, 4), "second": torch.ones(8, 4)}
    assert method.candidates(same) == 15
    assert float(method.loss(same, torch.Generator())["contrastive"]) == pytest.approx(math.log(15), abs=1e-5)


def test_both_views_are_edited_each_at_random(build: Build, batched: Batched) -> None:
    method = build()
    whole = method.frame(Records(method.corpus, list(range(8))).tokens())
    first, second = (batched(method)[name] for name in ("first", "second"))
    assert (first.lengths < whole.lengths).all()  # a crop to nine tenths takes at least a word of these
    assert (second.lengths < whole.lengths).all()
    assert not torch.equal(first.rows(slice(0, 1)).ids, second.rows(slice(0, 1)).ids)
    again = batched(method)["first"]
    assert torch.equal(first.ids, again.ids)  # everything random is the generator's
    assert not np.array_equal(first.lengths, batched(method, seed=1)["first"].lengths)


def test_a_view_may_stay_as_it_is(build: Build, batched: Batched) -> None:
    method = build(second_edits="none")
    batch = batched(method)
    assert torch.equal(batch["second"].ids, method.frame(Records(method.corpus, list(range(8))).tokens()).ids)
    assert (batch["first"].lengths < batch["second"].lengths).all()


def test_without_edits_and_dropout_the_views_are_equal(build: Build, batched: Batched) -> None:
    still, dropping = build(**STILL), build(edits="none")
    found = still.represent(batched(still))
    assert torch.allclose(found["first"], found["second"], atol=1e-6)
    found = dropping.represent(batched(dropping))
    assert not torch.allclose(found["first"], found["second"], atol=1e-3)


def test_the_projected_views_are_compared(build: Build, batched: Batched) -> None:
    method = build(dropout=0.0, temperature=0.3)
    batch = batched(method)
    found = method.represent(batch)
    first, second = method.encoder.embed(batch["first"], batch["second"])
    head = method.tower["head"].module
    assert isinstance(head, torch.nn.Sequential)
    assert [type(part).__name__ for part in head] == ["Linear", "ReLU", "Linear"]
    assert torch.allclose(found["first"], head(first), atol=1e-5)
    assert torch.allclose(found["second"], head(second), atol=1e-5)
    with torch.no_grad():
        loss, expected = method.loss(found, batch.generator())["contrastive"], nt_xent(head(first), head(second), 0.3)
    assert float(loss) == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize(("layers", "linears", "width"), [(0, 0, 32), (1, 1, 16), (3, 3, 16)])
def test_layers_of_the_head(build: Build, batched: Batched, layers: int, linears: int, width: int) -> None:
    method = build(head_layers=layers)
    assert sum(isinstance(part, torch.nn.Linear) for part in method.tower["head"].modules()) == linears
    assert method.represent(batched(method))["first"].shape == (8, width)


def test_the_head_trains_both_views_get_gradient_and_the_head_is_dropped(
    build: Build, batched: Batched, tiny: Path, tmp_path: Path
) -> None:
    method = build()
    batch = batched(method)
    found = method.represent(batch)
    for view in found.values():
        view.retain_grad()
    Combined(method).total(method.loss(found, batch.generator())).backward()
    assert all(float(view.grad.abs().sum()) > 0 for view in found.values() if view.grad is not None)
    assert all(view.grad is not None for view in found.values())
    assert all(
        float(p.grad.abs().sum()) > 0 for p in method.tower["head"].parameters() if p.grad is not None and p.dim() > 1
    )
    exported = method.export()
    assert len(exported.parts) == 0
    assert np.allclose(exported.encode("the chef bakes"), isotrope.load(tiny).encode("the chef bakes"), atol=1e-6)
    exported.save(tmp_path / "model")
    assert np.allclose(
        isotrope.load(tmp_path / "model").encode("the chef bakes"), exported.encode("the chef bakes"), atol=1e-5
    )


@unjudged
def test_training_lowers_its_loss(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    run = isotrope.train(
        "simclr", sentences, model=tiny, output=tmp_path / "run", **{**SHORT, "max_steps": 40, "eval_steps": 40}
    )
    losses = [line["contrastive"] for line in run.history if "contrastive" in line]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"projection": 0}, "projection"),
        ({"head_layers": -1}, "head_layers"),
        ({"dropout": 1.0}, "dropout"),
        ({"edits": "swap:0.1"}, "Unknown edit 'swap'"),
        ({"second_edits": "delete:1"}, "delete takes a share"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check(SimCLR.Settings(**bad))
