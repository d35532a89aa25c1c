"""Dialogue order: which turns meet in which order, what the two forms compare, which dialogues are left out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import Records
from isotrope.errors import InputError
from isotrope.methods.dialogue_order import FORMS, DialogueOrder
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.objectives import info_nce
from isotrope.training.state import TrainingWarning

Build = Callable[..., Any]
Batched = Callable[..., Batch]
Law = Callable[..., Any]
SHORT = {"batch_size": 8, "learning_rate": 1e-3, "logging_steps": 1, "held_out": 40}
FIRST_ROWS = range(0, 64, 8)  # of eight dialogues


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    """Dropout is off unless it is asked for."""
    return lambda data=sentences, **settings: built("dialogue-order", data, **{"backbone_dropout": 0.0, **settings})


@pytest.fixture
def uneven(tmp_path: Path, topics: list[str]) -> Path:
    """Dialogues of 1, 2, 3, 4 and 12 turns, one that says the same three times, and one whose last two turns are the
    same.
    """
    dialogues = [topics[:1], topics[1:3], topics[3:6], topics[6:10], topics[10:22], ["yes"] * 3, ["no", "well", "well"]]
    path = tmp_path / "uneven.txt"
    path.write_text("\n\n".join("\n".join(turns) for turns in dialogues), encoding="utf-8")
    return path


def test_the_card() -> None:
    card = DialogueOrder.card
    assert (card.name, card.needs, card.year, DialogueOrder.batches) == (
        "dialogue-order",
        "dialogues",
        2019,
        "by-document",
    )
    assert DialogueOrder.Settings().form == "classifier"


@pytest.mark.parametrize(("form", "kept"), [("classifier", {1, 2, 3, 4, 6}), ("contrastive", {2, 3, 4})])
def test_dialogues_without_an_order_are_left_out_and_counted(
    build: Build, uneven: Path, form: str, kept: set[int]
) -> None:
    method = build(uneven, form=form)
    rows = method.prepared.select(np.arange(len(method.corpus)))
    assert set(method.corpus.documents[rows].tolist()) == kept
    (said,) = method.prepared.remarks
    assert said.startswith(f"{7 - len(kept)} of 7 dialogues have fewer than {2 if form == 'classifier' else 3} turns")
    for document in kept:  # each of these gives its views, whatever is drawn
        for seed in range(5):
            method.views(Records(method.corpus, [int(method.corpus.starts[document])]), np.random.default_rng(seed))


@pytest.mark.parametrize("form", FORMS)
def test_both_orders_hold_the_same_turns_of_one_dialogue(build: Build, uneven: Path, form: str) -> None:
    method = build(uneven, form=form)
    corpus = method.corpus
    starts = [int(corpus.starts[document]) for document in ((1, 2, 3, 4) if form == "classifier" else (2, 3, 4))]
    views = method.views(Records(corpus, starts), np.random.default_rng(0))
    assert len(views["turns"]) == 5 * len(starts)
    texts = {corpus.tokens(row).tobytes(): row for row in range(len(corpus))}
    tokens = [
        views["turns"].ids[i, 1 : length - 1].numpy().astype(np.int32)
        for i, length in enumerate(views["turns"].lengths)
    ]
    for number, start in enumerate(starts):
        right, wrong, (fixed, size) = (views[name].values[number].tolist() for name in ("right", "wrong", "sizes"))
        total = fixed + size
        assert fixed == (0 if form == "classifier" else (total - 1) // 2)
        assert right[:size] == list(range(fixed, total))
        assert sorted(wrong[:size]) == right[:size] != wrong[:size]
        rows = [texts[tokens[5 * number + i].tobytes()] for i in range(total)]
        assert rows == list(range(rows[0], rows[0] + total))  # in a row, of this dialogue
        assert rows[0] >= start
        assert rows[-1] in corpus.document(start)
        assert all(len(tokens[5 * number + i]) == 0 for i in range(total, 5))


def test_the_classifier_judges_both_orders_alike_often(build: Build, batched: Batched) -> None:
    method = build()
    batch = batched(method, FIRST_ROWS)
    found = method.represent(batch)
    right, wrong = found["right"].detach().double(), found["wrong"].detach().double()
    assert right.shape == wrong.shape == (8,)
    expected = (
        sum(
            math.log1p(math.exp(-r)) + math.log1p(math.exp(w))
            for r, w in zip(right.tolist(), wrong.tolist(), strict=True)
        )
        / 16
    )
    terms = method.loss(found, batch.generator())
    assert set(terms) == {"order"}
    assert float(terms["order"].detach()) == pytest.approx(expected, abs=1e-6)
    assert method.candidates(found) == 0
    zeros = {name: torch.zeros(8) for name in found}
    assert float(method.loss(zeros, batch.generator())["order"]) == pytest.approx(math.log(2))


def naive_state(method: Any, batch: Batch, record: int, places: list[int]) -> torch.Tensor:
    """The reader's last state over some turns, encoded one by one."""
    turns = [
        method.encoder.embed(batch["turns"].rows(slice(i, i + 1)))[0]
        for i in (method.settings.turns * record + p for p in places)
    ]
    return method.tower["reader"](torch.stack(turns, dim=1))[0][0, -1]


@pytest.mark.parametrize("form", FORMS)
def test_the_reader_sees_the_turns_in_their_order_and_no_padding(build: Build, uneven: Path, form: str) -> None:
    method = build(uneven, form=form)
    corpus = method.corpus
    rows = [int(corpus.starts[document]) for document in (2, 3, 4)]
    batch = Batch(method.views(Records(corpus, rows), np.random.default_rng(3)), 3, 0)
    found = method.represent(batch)
    for record in range(3):
        fixed, size = batch["sizes"].values[record].tolist()
        for name in ("right", "wrong"):
            state = naive_state(method, batch, record, batch[name].values[record, :size].tolist())
            expected = method.tower["judge"](state).squeeze() if form == "classifier" else state
            assert torch.allclose(found[name][record], expected, atol=1e-5)
        if form == "contrastive":
            assert torch.allclose(
                found["context"][record], naive_state(method, batch, record, list(range(fixed))), atol=1e-5
            )


def test_the_contrastive_form_has_the_wrong_orders_as_hard_negatives(build: Build, batched: Batched) -> None:
    method = build(form="contrastive", temperature=0.3)
    batch = batched(method, FIRST_ROWS)
    found = method.represent(batch)
    expected = info_nce(found["context"], found["right"], 0.3, found["wrong"])
    assert float(method.loss(found, batch.generator())["contrastive"].detach()) == pytest.approx(
        float(expected.detach())
    )
    assert method.candidates(found) == 16


@pytest.mark.parametrize("form", FORMS)
def test_the_encoder_learns_through_the_heads_and_they_are_dropped(
    build: Build, batched: Batched, tiny: Path, form: str
) -> None:
    method = build(form=form)
    batch = batched(method, FIRST_ROWS)
    Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
    learned = {
        name.split(".")[0] for name, p in method.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0
    }
    assert learned == {"encoder", "tower"}
    assert set(method.tower) == ({"reader", "judge"} if form == "classifier" else {"reader"})
    exported = method.export()
    assert np.array_equal(exported.encode("the chef bakes"), isotrope.load(tiny).encode("the chef bakes"))
    assert len(exported.parts) == 0


@pytest.mark.parametrize("form", FORMS)
def test_neither_the_order_of_dialogues_nor_padding_nor_chunks_matter(
    build: Build, batched: Batched, form: str
) -> None:
    method = build(form=form)
    batch = batched(method, FIRST_ROWS)
    found = method.represent(batch)
    parts = [method.represent(chunk) for chunk in batch.chunks(3)]
    for name, whole in found.items():
        assert torch.allclose(torch.cat([part[name] for part in parts]), whole, atol=1e-5)
    backwards = {name: tensor.flip(0) for name, tensor in found.items()}
    first, second = (
        float(Combined(method).total(method.loss(each, batch.generator())).detach()) for each in (found, backwards)
    )
    assert first == pytest.approx(second, abs=1e-5)


@pytest.mark.parametrize(("form", "mlm"), [("classifier", 0.0), ("contrastive", 0.5)])
def test_chunks_give_the_gradient_of_the_whole_batch_with_dropout_on(
    build: Build, with_mlm: Law, chunks_agree: Law, form: str, mlm: float
) -> None:
    cached, plain = (build(backbone_dropout=0.1, language_head=True, form=form) for _ in range(2))
    if mlm:
        cached, plain = with_mlm(cached, mlm), with_mlm(plain, mlm)
    chunks_agree(cached, plain, FIRST_ROWS, 3)


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_an_order_that_words_tell_is_learned(tiny: Path, tmp_path: Path) -> None:
    topics = ("bread", "boat", "sonata", "roses", "rocket", "salt", "mast", "violin")
    said = ("the chef bakes {}", "the sailor steers {}", "the pianist plays {}", "the farmer waters {}")
    dialogues = ["\n".join(turn.format(f"{one} and {other}") for turn in said) for one in topics for other in topics]
    file = tmp_path / "dialogues.txt"
    file.write_text("\n\n".join([*dialogues, "alone"]), encoding="utf-8")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", TrainingWarning)
        settings = {**SHORT, "batch_size": 16, "max_steps": 30, "eval_steps": 30, "held_out": 0, "learning_rate": 3e-3}
        run = isotrope.train("dialogue-order", file, tiny, tmp_path / "run", **settings)
    assert any("1 of 65 dialogues have fewer than 2 turns" in str(each.message) for each in heard)
    losses = [line["order"] for line in run.history if "order" in line]
    assert losses[0] == pytest.approx(math.log(2), abs=0.1)
    assert np.mean(losses[-5:]) < 0.3


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"form": "sort"}, "form is one of classifier, contrastive"),
        ({"misorder": "reverse"}, "misorder is one of shuffle, swap"),
        ({"turns": 1}, "turns must be at least 2"),
        ({"turns": 2, "form": "contrastive"}, "turns must be at least 3 for the form contrastive"),
        ({"temperature": 0.0}, "temperature"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        check(DialogueOrder.Settings(**bad))
