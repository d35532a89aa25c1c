"""Supervised contrast: who is whose positive, the joint form, what is dropped, and the linear stage after it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

import isotrope
from isotrope.data.batches import batches
from isotrope.data.corpus import Records
from isotrope.errors import InputError
from isotrope.evaluation.linear import linear_accuracy
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.settings import check
from isotrope.methods.supcon import SupCon
from isotrope.objectives import nt_xent, supervised_contrast

Built = Callable[..., Any]
Batched = Callable[..., Batch]
JOINT = {"temperature": 0.3, "projection": 0, "number_of_views": 1, "cross_entropy_weight": 0.1, "edits": "none"}


def topic_of(number: int) -> str:
    return ("cooking", "sailing", "music", "garden", "space")[(number // 8) % 5]


@pytest.fixture
def labelled(topics: list[str]) -> list[dict[str, Any]]:
    return [{"text": topics[i], "label": topic_of(i)} for i in range(0, 400, 2)]


def loss_of(method: Method, batch: Batch) -> dict[str, float]:
    return {
        name: float(term.detach()) for name, term in method.loss(method.represent(batch), batch.generator()).items()
    }


# ---- the loss


def test_golden_values_through_the_method(built: Built, labelled: Any) -> None:
    method = built("supcon", labelled, number_of_views=1, temperature=0.5)
    vectors = torch.tensor([[1.0, 0], [0.8, 0.6], [0, 1], [0.6, 0.8], [-1, 0]]).unsqueeze(1)
    found = {"vectors": vectors, "labels": torch.tensor([0, 0, 0, 1, 1])}
    assert float(method.loss(found, torch.Generator())["contrastive"]) == pytest.approx(2.025307, abs=1e-5)
    inner = built("supcon", labelled, number_of_views=1, temperature=0.5, form="in")
    assert float(inner.loss(found, torch.Generator())["contrastive"]) == pytest.approx(1.929156, abs=1e-5)


def test_a_contrast_of_no_weight_is_not_taken(built: Built, batched: Batched, labelled: Any) -> None:
    """Watched all the same, it looked like a collapse."""
    method = built("supcon", labelled, cross_entropy_weight=1.0, projection=0)
    assert [*loss_of(method, batched(method))] == ["classification"]


def test_classes_that_fell_together(built: Built, labelled: Any) -> None:
    """K classes at orthogonal centres, n views each: log((n − 1) + n (K − 1) e^(−1/τ))."""
    method = built("supcon", labelled, temperature=0.5)
    found = {
        "vectors": torch.eye(3).repeat_interleave(4, dim=0).unsqueeze(1).repeat(1, 2, 1),
        "labels": torch.arange(3).repeat_interleave(4),
    }
    expected = math.log(7 + 8 * 2 * math.exp(-2))
    assert float(method.loss(found, torch.Generator())["contrastive"]) == pytest.approx(expected, abs=1e-5)


def test_labels_of_their_own_make_it_nt_xent(built: Built, batched: Batched, topics: list[str]) -> None:
    method = built("supcon", [{"text": topics[i], "label": f"class {i}"} for i in range(0, 80, 2)])
    batch = batched(method)
    found = method.represent(batch)
    assert found["vectors"].shape == (8, 2, 128)
    assert not torch.allclose(found["vectors"][:, 0], found["vectors"][:, 1], atol=1e-4)  # dropout makes the views
    expected = nt_xent(found["vectors"][:, 0], found["vectors"][:, 1], 0.1)
    assert float(method.loss(found, batch.generator())["contrastive"].detach()) == pytest.approx(
        float(expected.detach()), abs=1e-5
    )
    assert method.candidates(found) == 15


def test_two_views_of_a_text_are_two_rows_of_its_label(built: Built, batched: Batched, labelled: Any) -> None:
    method = built("supcon", labelled, dropout=0.0)
    rows = [0, 4, 1, 8, 5, 12]  # classes that interleave
    batch = batched(method, rows)
    found = method.represent(batch)
    both = torch.cat([found["vectors"][:, 0], found["vectors"][:, 1]])
    labels = torch.tensor(
        [["cooking", "sailing", "music", "space", "garden"].index(labelled[row]["label"]) for row in rows]
    )
    expected = supervised_contrast(both, torch.cat([labels, labels]), 0.1)
    assert float(method.loss(found, batch.generator())["contrastive"].detach()) == pytest.approx(
        float(expected.detach()), abs=1e-5
    )


def test_the_views_of_a_text_are_two_edits_of_it(built: Built, batched: Batched, labelled: Any) -> None:
    """As in the paper; without edits dropout alone makes the second view."""
    method = built("supcon", labelled, dropout=0.0, edits="delete:0.5")
    batch = batched(method)
    whole = method.frame(Records(method.corpus, list(range(8))).tokens())
    first, second = batch["first"], batch["second"]
    assert (first.lengths < whole.lengths).all()
    assert (second.lengths < whole.lengths).all()
    rows = [view.ids[0, : int(view.lengths[0])].tolist() for view in (first, second)]
    assert rows[0] != rows[1]
    vectors = method.represent(batch)["vectors"]
    for place, view in enumerate((first, second)):
        (expected,) = method.encoder.embed(view)
        assert torch.allclose(vectors[:, place], method.tower["head"](expected), atol=1e-5)
    plain = batched(built("supcon", labelled, edits="none"))
    assert torch.equal(plain["first"].ids, whole.ids)
    assert torch.equal(plain["second"].ids, whole.ids)
    apart = batched(built("supcon", labelled, edits="none", second_edits="crop:0.5"))
    assert torch.equal(apart["first"].ids, whole.ids)
    assert (apart["second"].lengths < whole.lengths).any()
    assert "second" not in batched(built("supcon", labelled, number_of_views=1)).views


def test_names_of_labels_mean_nothing(built: Built, batched: Batched, labelled: Any) -> None:
    renamed = [
        {**row, "label": {"cooking": "z", "sailing": "7", "music": "q", "garden": "b", "space": "ä"}[row["label"]]}
        for row in labelled
    ]
    first, second = (built("supcon", rows, dropout=0.0) for rows in (labelled, renamed))
    assert loss_of(first, batched(first)) == pytest.approx(loss_of(second, batched(second)), abs=1e-5)


def test_the_joint_form_weighs_contrast_and_cross_entropy(built: Built, batched: Batched, labelled: Any) -> None:
    method = built("supcon", labelled, dropout=0.0, **JOINT)
    batch = batched(method)
    found = method.represent(batch)
    assert found["vectors"].shape == (8, 1, 32)  # the encoder's own, once
    assert method.candidates(found) == 7
    terms = method.loss(found, batch.generator())
    assert float(Combined(method).total(terms).detach()) == pytest.approx(
        0.9 * float(terms["contrastive"]) + 0.1 * float(terms["classification"])
    )
    scores = method.tower["classifier"](found["vectors"][:, 0])
    labels = torch.tensor([sorted({row["label"] for row in labelled}).index(row["label"]) for row in labelled[:8]])
    assert float(terms["classification"].detach()) == pytest.approx(
        float(cross_entropy(scores, labels).detach()), abs=1e-6
    )
    twice = built("supcon", labelled, dropout=0.0, **{**JOINT, "number_of_views": 2})
    twice.tower["classifier"].load_state_dict(method.tower["classifier"].state_dict())
    assert loss_of(twice, batched(twice))["classification"] == pytest.approx(
        float(terms["classification"].detach()), abs=1e-5
    )


def test_batches_bring_positives(built: Built, labelled: Any) -> None:
    method = built("supcon", labelled)
    corpus = method.corpus
    assert corpus is not None
    for batch in batches(method.batches, corpus, np.arange(len(corpus)), 10, 0, 0):
        _, counts = np.unique(Records(corpus, batch.tolist()).labels(), return_counts=True)
        assert len(counts) > 1
        assert counts.min() > 1


# ---- what is kept, and the laws


def test_head_and_classifier_learn_and_are_dropped(built: Built, batched: Batched, labelled: Any, tiny: Path) -> None:
    method = built("supcon", labelled, cross_entropy_weight=0.5)
    batch = batched(method)
    Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
    assert set(method.tower) == {"head", "classifier"}
    for tower in method.tower.values():
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in tower.parameters())
    exported, raw = method.export(), isotrope.load(tiny)
    assert {name for name, _ in exported.named_parameters()} == {name for name, _ in raw.named_parameters()}
    assert np.allclose(exported.encode("the chef bakes"), raw.encode("the chef bakes"), atol=1e-6)


@pytest.mark.parametrize("settings", [{}, JOINT])
def test_chunks_agree(built: Built, labelled: Any, chunks_agree: Callable[..., None], settings: dict[str, Any]) -> None:
    chunks_agree(*(built("supcon", labelled, **settings) for _ in range(2)))


def test_resume_agrees(labelled: Any, resume_agrees: Callable[..., None]) -> None:
    resume_agrees("supcon", labelled, cross_entropy_weight=0.2)


# ---- both stages


@pytest.mark.filterwarnings("ignore:.*effective rank fell")
def test_training_lowers_its_loss_and_the_linear_stage_gains(
    labelled: Any, topics: list[str], tiny: Path, tmp_path: Path
) -> None:
    """One labelled text a class is enough for the second stage once classes lie together."""
    settings = {
        "max_steps": 30,
        "batch_size": 20,
        "eval_steps": 30,
        "logging_steps": 10,
        "learning_rate": 1e-3,
        "held_out": 0,
    }
    run = isotrope.train("supcon", labelled, model=tiny, output=tmp_path / "run", **settings)
    losses = [line["contrastive"] for line in run.history if "contrastive" in line]
    assert losses[-1] < 0.85 * losses[0]
    assert run.selected_step == 30
    few, held = (
        [(topics[i], topic_of(i)) for i in (400, 408, 416, 424, 432)],
        [(topics[i], topic_of(i)) for i in range(500, 800, 3)],
    )
    before, after = (
        linear_accuracy(encoder, few, held, standardise=False).accuracy
        for encoder in (isotrope.load(tiny), run.encoder)
    )
    assert after >= before
    assert after > 0.95


def test_the_linear_stage_leaves_the_encoder_alone_and_repeats_itself(tiny: Path, topics: list[str]) -> None:
    encoder = isotrope.load(tiny)
    fingerprint = encoder.fingerprint()
    train, test = (
        [(topics[i], topic_of(i)) for i in range(0, 200, 2)],
        [(topics[i], topic_of(i)) for i in range(301, 500, 3)],
    )
    first, again = (linear_accuracy(encoder, train, test) for _ in range(2))
    assert first == again
    assert first.accuracy > 0.9
    assert first.tested == len(test)
    assert first.majority == pytest.approx(
        np.mean([label == "cooking" for _, label in test])
    )  # as many as any other, and first by name
    assert encoder.fingerprint() == fingerprint


def test_shuffled_labels_are_at_chance(tiny: Path, topics: list[str]) -> None:
    rng = np.random.default_rng(0)
    train, test = ([(text, str(rng.integers(2))) for text in part] for part in (topics[:200], topics[600:800]))
    found = linear_accuracy(isotrope.load(tiny), train, test)
    assert 0.35 < found.accuracy < 0.65


def test_the_linear_stage_reads_files(tiny: Path, tmp_path: Path) -> None:
    for name in ("train", "test"):
        rows = "".join(f"the {w} number {i}\t{w}\n" for i in range(10) for w in ("chef", "boat"))
        (tmp_path / f"{name}.tsv").write_text("sentence\tlabel\n" + rows, encoding="utf-8")
    assert linear_accuracy(isotrope.load(tiny), tmp_path / "train.tsv", str(tmp_path / "test.tsv")).accuracy == 1.0


@pytest.mark.parametrize(
    ("train", "test", "says"),
    [
        ([("a", "x"), ("b", "x")], [("c", "x")], "Every training record is labelled 'x'"),
        ([("a", "x"), ("b", "y")], [("c", "z")], "that the training part lacks: 'z'"),
        ([("a", "x"), ("", "y")], [("c", "x")], "Every training record"),
        ([("a", "x"), ("b", "")], [("c", "x")], ":2: the label is empty"),
        ([("", "x")], [("c", "x")], "no labelled texts"),
    ],
)
def test_bad_input_of_the_linear_stage(tiny: Path, train: Any, test: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        linear_accuracy(isotrope.load(tiny), train, test)
    with pytest.raises(InputError, match="strength"):
        linear_accuracy(isotrope.load(tiny), train, test, strength=0)


# ---- bad input


def test_data_that_cannot_work(built: Built, labelled: Any, sentences: Path, tiny: Path, tmp_path: Path) -> None:
    for settings in ({}, JOINT):
        with pytest.raises(InputError, match="Every record is labelled 'same'"):
            built("supcon", [{**row, "label": "same"} for row in labelled], **settings)
    with pytest.raises(InputError, match="needs its data"):
        SupCon(SupCon.Settings(**JOINT), isotrope.load(tiny), 64)
    with pytest.raises(InputError, match="text/label"):
        isotrope.train("supcon", sentences, model=tiny, output=tmp_path / "run")


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": 0.0},
        {"form": "sideways"},
        {"projection": -1},
        {"number_of_views": 3},
        {"edits": "sprinkle:0.1"},
        {"second_edits": "delete:1"},
        {"cross_entropy_weight": 1.1},
        {"cross_entropy_weight": -0.1},
        {"dropout": 1.0},
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        check(SupCon.Settings(**bad))
