"""Sentence-BERT: the form follows the data, the formulas are the paper's, the classifier is dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

import isotrope
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.settings import check
from isotrope.methods.sbert import SBERT

Built = Callable[..., Any]
Batched = Callable[..., Batch]
LABELS = ("entailment", "neutral", "contradiction")


@pytest.fixture
def inferences(topics: list[str]) -> list[dict[str, Any]]:
    return [{"premise": topics[i], "hypothesis": topics[i + 1], "label": LABELS[i // 2 % 3]} for i in range(0, 120, 2)]


@pytest.fixture
def scored(topics: list[str]) -> list[dict[str, Any]]:
    return [{"sentence1": topics[i], "sentence2": topics[i + 1], "score": i % 11 / 2} for i in range(0, 120, 2)]


@pytest.fixture
def of_each(inferences: Any, scored: Any, triples: Path) -> dict[str, Any]:
    return {"classification": inferences, "regression": scored, "triplet": triples}


def still(method: Method) -> Method:
    """Dropout off: what two passes give can be compared."""
    return method.eval()


# ---- the form


@pytest.mark.parametrize("form", ["classification", "regression", "triplet"])
def test_the_data_choose_the_form_and_a_setting_may_insist(
    built: Built, batched: Batched, of_each: Any, form: str
) -> None:
    for asked in ("auto", form):
        method = built("sbert", of_each[form], form=asked)
        batch = batched(method)
        terms = method.loss(method.represent(batch), batch.generator())
        assert list(terms) == [form]
        assert torch.isfinite(terms[form])
        assert method.candidates({}) == 0
    other = {"classification": "triplet", "regression": "classification", "triplet": "regression"}[form]
    with pytest.raises(InputError, match="columns found"):
        built("sbert", of_each[form], form=other)


def test_a_column_called_label_holds_classes_or_scores_as_asked(built: Built, topics: list[str]) -> None:
    rows = [{"sentence1": topics[i], "sentence2": topics[i + 1], "label": i % 5} for i in range(20)]
    assert built("sbert", rows).tower["classifier"].module.out_features == 5  # type: ignore[union-attr]
    assert "classifier" not in built("sbert", rows, form="regression").tower
    halves = [{**row, "label": row["label"] / 2} for row in rows]
    with pytest.raises(InputError, match=r"look like scores \('0.5'\); say form regression"):
        built("sbert", halves)
    assert built("sbert", halves, form="regression").highest == 2.0


# ---- the formulas


def test_classification_reads_u_v_and_their_distance(built: Built, batched: Batched, inferences: Any) -> None:
    method = still(built("sbert", inferences))
    batch = batched(method)
    u, v = (
        torch.from_numpy(method.encoder.encode([row[side] for row in inferences[:8]]))
        for side in ("premise", "hypothesis")
    )
    weight = method.tower["classifier"].module.weight  # type: ignore[union-attr]
    assert weight.shape == (3, 3 * method.encoder.dimension)
    assert method.tower["classifier"].module.bias is None  # type: ignore[union-attr]
    scores = u @ weight[:, :32].T + v @ weight[:, 32:64].T + (u - v).abs() @ weight[:, 64:].T
    wanted = torch.tensor([sorted(LABELS).index(row["label"]) for row in inferences[:8]])
    expected = cross_entropy(scores, wanted)
    assert float(method.loss(method.represent(batch), batch.generator())["classification"].detach()) == pytest.approx(
        float(expected.detach()), abs=1e-5
    )


def test_swapping_the_texts_leaves_the_distance_part(built: Built, inferences: Any) -> None:
    method = built("sbert", inferences)
    with torch.no_grad():
        method.tower["classifier"].module.weight[:, :64] = 0  # type: ignore[union-attr,index]
    u, v = torch.randn(2, 6, 32, generator=torch.Generator().manual_seed(0))
    wanted = torch.tensor([0, 1, 2, 0, 1, 2])
    losses = [
        method.loss({"first": a, "second": b, "wanted": wanted}, torch.Generator())["classification"]
        for a, b in ((u, v), (v, u))
    ]
    assert float(losses[0].detach()) == pytest.approx(float(losses[1].detach()))


def test_regression_is_the_squared_error_of_the_cosine(built: Built, batched: Batched, scored: Any) -> None:
    method = still(built("sbert", scored))
    batch = batched(method)
    first, second = (
        method.encoder.encode([row[side] for row in scored[:8]], normalize_embeddings=True)
        for side in ("sentence1", "sentence2")
    )
    cosines = (first * second).sum(axis=1)
    expected = np.mean((cosines - np.array([row["score"] for row in scored[:8]]) / 5.0) ** 2)  # the highest score is 5
    assert float(method.loss(method.represent(batch), batch.generator())["regression"].detach()) == pytest.approx(
        float(expected), abs=1e-5
    )
    assert built("sbert", scored, highest_score=10.0).highest == 10.0


def test_regression_is_zero_where_the_cosine_is_the_score(built: Built, scored: Any) -> None:
    method = built("sbert", scored)
    u, v = torch.tensor([[1.0, 0.0], [3.0, 4.0]]), torch.tensor([[0.0, 2.0], [5.0, 0.0]])
    found = {"first": u, "second": v, "wanted": torch.tensor([0.0, 0.6])}
    assert float(method.loss(found, torch.Generator())["regression"]) == pytest.approx(0.0, abs=1e-7)


def test_the_golden_triplet_and_its_sign(built: Built, triples: Path) -> None:
    method = built("sbert", triples)
    u, near, far = torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 2.0]]), torch.tensor([[3.0, 4.0]])
    generator = torch.Generator()
    assert float(method.loss({"first": u, "second": far, "third": near}, generator)["triplet"]) == pytest.approx(4.0)
    assert float(method.loss({"first": u, "second": near, "third": far}, generator)["triplet"]) == 0.0
    wide = built("sbert", triples, margin=5.0)
    assert float(wide.loss({"first": u, "second": near, "third": far}, generator)["triplet"]) == pytest.approx(2.0)
    cosine = built("sbert", triples, distance="cosine", margin=0.5)
    right = {
        "first": torch.tensor([[1.0, 0.0]]),
        "second": torch.tensor([[0.0, 1.0]]),
        "third": torch.tensor([[1.0, 0.0]]),
    }
    assert float(cosine.loss(right, generator)["triplet"]) == pytest.approx(1.5)


# ---- what is kept, and the laws


def test_the_classifier_learns_and_is_dropped(built: Built, batched: Batched, inferences: Any, tiny: Path) -> None:
    method = built("sbert", inferences)
    batch = batched(method)
    Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
    assert method.tower["classifier"].module.weight.grad.abs().sum() > 0  # type: ignore[union-attr]
    exported = method.export()
    raw = isotrope.load(tiny)
    assert {name for name, _ in exported.named_parameters()} == {name for name, _ in raw.named_parameters()}
    assert np.allclose(exported.encode("the chef bakes"), raw.encode("the chef bakes"), atol=1e-6)


@pytest.mark.parametrize("form", ["classification", "regression", "triplet"])
def test_chunks_agree(built: Built, of_each: Any, chunks_agree: Callable[..., None], form: str) -> None:
    chunks_agree(*(built("sbert", of_each[form]) for _ in range(2)))


@pytest.mark.parametrize("form", ["classification", "regression", "triplet"])
def test_neither_the_order_of_a_batch_nor_its_padding_matters(
    built: Built, batched: Batched, of_each: Any, form: str
) -> None:
    method = still(built("sbert", of_each[form]))
    whole, turned = batched(method, range(8)), batched(method, range(7, -1, -1))
    losses = [
        float(method.loss(method.represent(batch), batch.generator())[form].detach()) for batch in (whole, turned)
    ]
    single = [
        float(method.loss(method.represent(batch), batch.generator())[form].detach())
        for batch in (batched(method, [row]) for row in range(8))
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    assert losses[0] == pytest.approx(np.mean(single), abs=1e-5)


def test_masked_language_modelling_can_be_added(
    built: Built, batched: Batched, with_mlm: Callable[..., Combined], inferences: Any
) -> None:
    combined = with_mlm(built("sbert", inferences, language_head=True), 0.1)
    batch = batched(combined)
    assert set(combined.loss(combined.represent(batch), batch.generator())) == {"classification", "mlm"}


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_training_lowers_its_loss(tiny: Path, topics: list[str], tmp_path: Path) -> None:
    rows = [
        {
            "premise": topics[i],
            "hypothesis": topics[i + 1] if i % 4 else topics[i + 17],
            "label": LABELS[0] if i % 4 else LABELS[2],
        }
        for i in range(0, 240, 2)
    ]
    settings = {
        "max_steps": 40,
        "batch_size": 16,
        "eval_steps": 40,
        "logging_steps": 10,
        "learning_rate": 2e-3,
        "held_out": 0,
    }
    run = isotrope.train("sbert", rows, model=tiny, output=tmp_path / "run", **settings)
    losses = [line["classification"] for line in run.history if "classification" in line]
    assert losses[-1] < 0.75 * losses[0]


# ---- bad input


def test_data_that_teach_nothing(built: Built, inferences: Any, scored: Any, tiny: Path) -> None:
    with pytest.raises(InputError, match="Every pair is labelled 'neutral'"):
        built("sbert", [{**row, "label": "neutral"} for row in inferences])
    with pytest.raises(InputError, match="run from 0 to 5; divided by 4 "):
        built("sbert", scored, highest_score=4.0)
    with pytest.raises(InputError, match="run from -10 to -10"):
        built("sbert", [{**row, "score": -10} for row in scored])
    with pytest.raises(InputError, match="needs its data"):
        SBERT(SBERT.Settings(), isotrope.load(tiny), 64)


@pytest.mark.parametrize(
    "bad",
    [
        {"form": "guess"},
        {"highest_score": 0.0},
        {"margin": -1.0},
        {"distance": "taxi"},
        {"distance": "cosine", "margin": 2.0},
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        check(SBERT.Settings(**bad))


@pytest.mark.parametrize("form", ["classification", "regression", "triplet"])
def test_separate_towers_encode_the_first_text_and_the_others(
    built: Built, batched: Batched, of_each: Any, form: str
) -> None:
    method = still(built("sbert", of_each[form], towers="separate"))
    second = method.further()["second"]
    batch = batched(method)
    with torch.no_grad():
        before = method.represent(batch)
        for parameter in second.backbone.parameters():
            parameter.mul_(1.1)
        after = method.represent(batch)
    assert torch.equal(before["first"], after["first"])
    for name in [name for name in ("second", "third") if name in after]:
        assert torch.allclose(after[name], second.embed(batch[name])[0], atol=1e-5)
        assert not torch.allclose(after[name], before[name], atol=1e-3)
    assert built("sbert", of_each[form]).further() == {}
