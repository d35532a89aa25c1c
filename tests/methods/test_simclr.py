"""SimCLR: what is compared, what is trained, what is kept."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import isotrope
from isotrope.data.corpus import Records, open_corpus
from isotrope.errors import InputError
from isotrope.methods.frame.method import Batch
from isotrope.methods.simclr import SimCLR
from isotrope.objectives import nt_xent
from isotrope.training.loop import make_accelerator
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.step import compute_gradient

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


def build(folder: Path, **settings: Any) -> SimCLR:
    chosen = SimCLR.Settings(**{"projection": 16, **settings})
    SimCLR.check(chosen)
    torch.manual_seed(0)
    return SimCLR(chosen, isotrope.load(folder, device="cpu"), 64).train()


def batch_of(method: SimCLR, source: Any, rows: range = range(8), seed: int = 0) -> Batch:
    tokenizer = method.encoder.text_tokenizer
    corpus = open_corpus(source, ("sentences",), tokenizer)
    return Batch(method.views(Records(corpus, list(rows)), np.random.default_rng(seed)), len(rows), 0)


def test_the_card_and_the_papers_numbers() -> None:
    card = next(card for card in isotrope.methods() if card.name == "simclr")
    assert (card.needs, card.year, card.kind) == ("sentences", 2020, "training")
    settings = SimCLR.Settings()
    assert (settings.temperature, settings.projection, settings.head_layers) == (0.1, 128, 2)


@pytest.mark.parametrize(("temperature", "expected"), [(0.5, 2.030190), (0.1, 8.063780)])
def test_golden_values(tiny: Path, temperature: float, expected: float) -> None:
    """specs/2, section 1.8; the released code's loss is twice this."""
    method = build(tiny, temperature=temperature)
    first, second = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.6, 0.8], [0.8, -0.6]])
    loss = method.loss({"first": first, "second": second}, Batch({}, 2, 0))["contrastive"]
    assert float(loss) == pytest.approx(expected, abs=1e-5)


def test_collapsed_vectors_give_the_logarithm_of_the_candidates(tiny: Path) -> None:
    method = build(tiny)
    same = {"first": torch.ones(8, 4), "second": torch.ones(8, 4)}
    assert method.candidates(same) == 15
    assert float(method.loss(same, Batch({}, 8, 0))["contrastive"]) == pytest.approx(math.log(15), abs=1e-5)


def test_both_views_are_edited_each_by_its_own_chance(tiny: Path, sentences: Path) -> None:
    method = build(tiny)
    whole = method.encoder.frame(batch_of_tokens(method, sentences))
    first, second = (batch_of(method, sentences)[name] for name in ("first", "second"))
    assert (first.lengths < whole.lengths).all()  # a crop to nine tenths takes at least a word of these
    assert (second.lengths < whole.lengths).all()
    assert not torch.equal(first.rows(slice(0, 1)).ids, second.rows(slice(0, 1)).ids)
    again = batch_of(method, sentences)["first"]
    assert torch.equal(first.ids, again.ids)  # all chance is the generator's
    assert not np.array_equal(first.lengths, batch_of(method, sentences, seed=1)["first"].lengths)


def batch_of_tokens(method: SimCLR, source: Path) -> list[Any]:
    tokenizer = method.encoder.text_tokenizer
    corpus = open_corpus(source, ("sentences",), tokenizer)
    return Records(corpus, list(range(8))).tokens()


def test_a_view_may_stay_as_it_is(tiny: Path, sentences: Path) -> None:
    method = build(tiny, second_edits="none")
    batch = batch_of(method, sentences)
    assert torch.equal(batch["second"].ids, method.encoder.frame(batch_of_tokens(method, sentences)).ids)
    assert (batch["first"].lengths < batch["second"].lengths).all()


def test_without_edits_and_dropout_the_views_are_equal(tiny: Path, sentences: Path) -> None:
    still, dropping = build(tiny, **STILL), build(tiny, edits="none")
    found = still.represent(batch_of(still, sentences))
    assert torch.allclose(found["first"], found["second"], atol=1e-6)
    found = dropping.represent(batch_of(dropping, sentences))
    assert not torch.allclose(found["first"], found["second"], atol=1e-3)


def test_the_projected_views_are_compared(tiny: Path, sentences: Path) -> None:
    method = build(tiny, dropout=0.0, temperature=0.3)
    batch = batch_of(method, sentences)
    found = method.represent(batch)
    first, second = method.encoder.embed(batch["first"], batch["second"])
    head = method.role["head"].module
    assert isinstance(head, torch.nn.Sequential)
    assert [type(part).__name__ for part in head] == ["Linear", "ReLU", "Linear"]
    assert torch.allclose(found["first"], head(first), atol=1e-5)
    assert torch.allclose(found["second"], head(second), atol=1e-5)
    with torch.no_grad():
        loss, expected = method.loss(found, batch)["contrastive"], nt_xent(head(first), head(second), 0.3)
    assert float(loss) == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize(("layers", "linears", "width"), [(0, 0, 32), (1, 1, 16), (3, 3, 16)])
def test_layers_of_the_head(tiny: Path, sentences: Path, layers: int, linears: int, width: int) -> None:
    method = build(tiny, head_layers=layers)
    assert sum(isinstance(part, torch.nn.Linear) for part in method.role["head"].modules()) == linears
    assert method.represent(batch_of(method, sentences))["first"].shape == (8, width)


def test_the_head_trains_both_views_get_gradient_and_the_head_is_dropped(
    tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    method = build(tiny)
    batch = batch_of(method, sentences)
    found = method.represent(batch)
    for view in found.values():
        view.retain_grad()
    method.total(method.loss(found, batch)).backward()
    assert all(float(view.grad.abs().sum()) > 0 for view in found.values() if view.grad is not None)
    assert all(view.grad is not None for view in found.values())
    assert all(
        float(p.grad.abs().sum()) > 0 for p in method.role["head"].parameters() if p.grad is not None and p.dim() > 1
    )
    exported = method.export()
    assert len(exported.parts) == 0
    assert np.allclose(exported.encode("the chef bakes"), isotrope.load(tiny).encode("the chef bakes"), atol=1e-6)
    exported.save(tmp_path / "model")
    assert np.allclose(
        isotrope.load(tmp_path / "model").encode("the chef bakes"), exported.encode("the chef bakes"), atol=1e-5
    )


def test_chunks_give_the_gradient_of_the_whole_batch(tiny: Path, sentences: Path) -> None:
    accelerator = make_accelerator(LoopSettings())
    whole, cut = build(tiny, dropout=0.0), build(tiny, dropout=0.0)
    for method, size in ((whole, None), (cut, 3)):
        compute_gradient(method, batch_of(method, sentences), accelerator, (1, 2, 0), size)
    largest = 0.0
    for (name, a), b in zip(whole.named_parameters(), cut.parameters(), strict=True):
        if a.grad is not None and b.grad is not None:
            assert torch.allclose(a.grad, b.grad, atol=1e-5), name
            largest = max(largest, float(a.grad.abs().max()))
    assert largest > 1e-2


def test_neither_padding_nor_the_order_of_the_batch_matters(tiny: Path) -> None:
    texts = [
        "the chef bakes the bread",
        "the sailor steers",
        "the pilot lands the rocket near the dusty crater with orbit and comet",
        "salt",
    ]
    method = build(tiny, **STILL)
    found = method.represent(batch_of(method, texts, range(4)))
    alone = method.represent(batch_of(method, texts, range(2)))  # without the long one there is less padding
    assert torch.allclose(found["first"][:2], alone["first"], atol=1e-5)
    forward, backward = batch_of(method, texts, range(4)), batch_of(method, texts, range(3, -1, -1))
    losses = [
        float(method.loss(method.represent(batch), batch)["contrastive"].detach()) for batch in (forward, backward)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)


@unjudged
def test_resume_equals_an_uninterrupted_run(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = {**SHORT, "model": tiny, "max_steps": 6, "eval_steps": 3}
    isotrope.train("simclr", sentences, output=tmp_path / "whole", **common)
    steps = iter(range(1, 10))

    def fall_at_four(self: SimCLR, representations: Any) -> None:
        if next(steps) == 4:
            raise RuntimeError("the power fails")

    with monkeypatch.context() as patch:
        patch.setattr(SimCLR, "after_step", fall_at_four)
        with pytest.raises(RuntimeError, match="the power fails"):
            isotrope.train("simclr", sentences, output=tmp_path / "cut", **common)
    isotrope.train("simclr", sentences, output=tmp_path / "cut", resume=True, **common)
    first, second = (
        load_file(tmp_path / name / "checkpoints" / "step-6" / "weights.safetensors") for name in ("whole", "cut")
    )
    assert any("head" in name for name in first)
    assert all(torch.equal(first[name], second[name]) for name in first)


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
        ({"edits": "swap:0.1"}, "'swap' is no edit"),
        ({"second_edits": "delete:1"}, "delete takes a share"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        SimCLR.check(SimCLR.Settings(**bad))
