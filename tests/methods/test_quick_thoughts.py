"""QuickThoughts: who is a neighbour, which encoder learns what, which one is kept."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import Corpus, Records, open_corpus
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.methods.frame.auxiliary import Beside
from isotrope.methods.frame.method import Batch, Method
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.methods.quick_thoughts import QuickThoughts
from isotrope.objectives import neighbour_prediction
from isotrope.training.loop import make_accelerator
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.step import _represent, compute_gradient

SHORT = {"batch_size": 16, "learning_rate": 1e-3, "logging_steps": 1, "held_out": 40}


def build(folder: Path, dropout: float = 0.0, mlm: float = 0.0, **settings: object) -> Method:
    torch.manual_seed(0)
    encoder = isotrope.load(folder, device="cpu", language_head=mlm > 0)
    set_dropout(encoder.backbone, dropout)
    chosen = QuickThoughts.Settings(**settings)  # type: ignore[arg-type]
    QuickThoughts.check(chosen)
    method: Method = QuickThoughts(chosen, encoder, 64)
    if mlm:
        method = Beside(method, MaskedLanguageModel(MLMSettings(), encoder, 64), mlm)
    return method.train()


def corpus_of(method: Method, source: Path) -> Corpus:
    tokenizer = method.encoder.text_tokenizer
    return open_corpus(source, ("documents",), tokenizer)


def batch_of(method: Method, source: Path, rows: list[int] | None = None) -> Batch:
    rows = list(range(4, 16)) if rows is None else rows
    return Batch(method.views(Records(corpus_of(method, source), rows), np.random.default_rng(0)), len(rows), 0)


def naive_loss(first: torch.Tensor, second: torch.Tensor, near: dict[int, list[int]]) -> float:
    f, g = first.detach().double(), second.detach().double()
    total = 0.0
    for i, neighbours in near.items():
        scores = {k: float(f[i] @ g[k]) for k in range(len(g)) if k != i}
        top = max(scores.values())
        total += (
            top
            + math.log(sum(math.exp(s - top) for s in scores.values()))
            - sum(scores[j] for j in neighbours) / len(neighbours)
        )
    return total / len(near)


def test_the_card_and_the_papers_settings() -> None:
    card = QuickThoughts.card()
    assert (card.name, card.needs, card.year, QuickThoughts.batches) == (
        "quick-thoughts",
        "documents",
        2018,
        "consecutive",
    )
    settings = QuickThoughts.Settings()
    assert (settings.window, settings.temperature, settings.second) == (1, 1.0, "own")


def test_golden_value(tiny: Path, sentences: Path) -> None:
    method = build(tiny)
    batch = batch_of(method, sentences, list(range(4)))
    found = {**method.represent(batch), "first": torch.zeros(4, 3), "second": torch.zeros(4, 3)}
    assert float(method.loss(found, batch)["contrastive"]) == pytest.approx(
        1.098612, abs=1e-6
    )  # log 3: the diagonal is no candidate
    assert method.candidates(found) == 3


def test_the_end_of_a_document_parts_neighbours(tiny: Path, sentences: Path) -> None:
    method = build(tiny)
    batch = batch_of(method, sentences)  # rows 4 to 7 end a document of eight, 8 to 15 are the next
    found = method.represent(batch)
    near = {i: [j for j in (i - 1, i + 1) if 0 <= j < 12 and (j < 4) == (i < 4)] for i in range(12)}
    assert near[3] == [2]
    assert near[4] == [5]
    loss = float(method.loss(found, batch)["contrastive"].detach())
    assert loss == pytest.approx(naive_loss(found["first"], found["second"], near), abs=1e-4)
    whole = neighbour_prediction(found["first"], found["second"])  # as if it were one text
    assert loss != pytest.approx(float(whole.detach()), abs=1e-4)


@pytest.mark.parametrize("window", [1, 2, 20])
def test_no_window_reaches_over_the_end_of_a_document(tiny: Path, sentences: Path, window: int) -> None:
    method = build(tiny, window=window)
    corpus = corpus_of(method, sentences)
    places = method.views(Records(corpus, list(range(60))), np.random.default_rng(0))["places"].values  # type: ignore[attr-defined]
    rows = torch.arange(60)
    expected = (rows[:, None] // 8 == rows // 8) & ((rows[:, None] - rows).abs() <= window)
    assert torch.equal((places[:, None] - places).abs() <= window, expected)


def test_a_sentence_held_out_between_two_parts_them(tiny: Path, sentences: Path) -> None:
    method = build(tiny)
    batch = batch_of(method, sentences, [0, 1, 3, 4, 6])  # 2 and 5 are elsewhere
    found = method.represent(batch)
    expected = naive_loss(found["first"], found["second"], {0: [1], 1: [0], 2: [3], 3: [2]})
    assert float(method.loss(found, batch)["contrastive"].detach()) == pytest.approx(expected, abs=1e-4)


def test_two_encoders_start_alike_learn_apart_and_the_first_is_kept(tiny: Path, sentences: Path) -> None:
    method = build(tiny)
    batch = batch_of(method, sentences)
    found = method.represent(batch)
    assert torch.allclose(found["first"], found["second"], atol=1e-6)
    optimiser = torch.optim.SGD(method.parameters(), lr=0.1)
    method.loss(found, batch)["contrastive"].backward()
    optimiser.step()
    second = method.role["second"].module  # type: ignore[union-attr]
    moved = [not torch.equal(a, b) for a, b in zip(method.encoder.parameters(), second.parameters(), strict=True)]
    assert any(moved)
    text = "the chef bakes"
    assert np.array_equal(method.export().encode(text), method.encoder.encode(text))
    assert not np.allclose(method.export().encode(text), second.encode(text), atol=1e-6)
    assert not np.allclose(method.export().encode(text), isotrope.load(tiny).encode(text), atol=1e-6)
    assert len(list(method.export().parameters())) == len(list(isotrope.load(tiny).parameters()))


def test_one_shared_encoder_serves_both_sides(tiny: Path, sentences: Path) -> None:
    method = build(tiny, second="shared", dropout=0.1)
    assert len(method.role) == 0
    found = method.represent(batch_of(method, sentences))
    assert torch.equal(found["first"], found["second"])


def test_neither_the_order_of_rows_nor_padding_nor_chunks_matter(tiny: Path, sentences: Path) -> None:
    method = build(tiny, temperature=3.0)
    batch = batch_of(method, sentences)
    found = method.represent(batch)
    parts = [method.represent(chunk) for chunk in batch.chunks(5)]
    for name, whole in found.items():
        assert torch.allclose(torch.cat([part[name] for part in parts]), whole, atol=1e-5)
    shuffled = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    mixed = {name: tensor[shuffled] for name, tensor in found.items()}
    losses = [float(method.loss(each, batch)["contrastive"].detach()) for each in (found, mixed)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)


@pytest.mark.parametrize(("second", "mlm"), [("own", 0.0), ("shared", 0.0), ("own", 0.5)])
def test_chunks_give_the_gradient_of_the_whole_batch_with_dropout_on(
    tiny: Path, sentences: Path, second: str, mlm: float
) -> None:
    accelerator = make_accelerator(LoopSettings())
    key = (42, 3, 0)
    cached, plain = (build(tiny, dropout=0.1, second=second, mlm=mlm) for _ in range(2))
    outcome = compute_gradient(cached, batch_of(cached, sentences), accelerator, key, chunk_size=5)
    batch = batch_of(plain, sentences)
    parts = [_represent(plain, chunk, accelerator, (*key, number)) for number, chunk in enumerate(batch.chunks(5))]
    loss = plain.total(plain.loss({name: torch.cat([part[name] for part in parts]) for name in parts[0]}, batch))
    loss.backward()
    assert float(outcome.loss) == pytest.approx(float(loss.detach()), abs=1e-5)
    for (name, one), other in zip(cached.named_parameters(), plain.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None), name
        if one.grad is not None and other.grad is not None:
            assert torch.allclose(one.grad, other.grad, atol=1e-5), name
    assert max(float(p.grad.abs().max()) for p in plain.parameters() if p.grad is not None) > 1e-3


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_resume_equals_uninterrupted(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"max_steps": 6, "eval_steps": 3, **SHORT}
    whole = isotrope.train("quick-thoughts", sentences, tiny, tmp_path / "whole", **settings)
    steps = []

    def fail_at_fourth(*given: object) -> object:
        steps.append(given)
        if len(steps) == 4:
            raise RuntimeError("stopped")
        return compute_gradient(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("isotrope.training.loop.compute_gradient", fail_at_fourth)
    with pytest.raises(RuntimeError, match="stopped"):
        isotrope.train("quick-thoughts", sentences, tiny, tmp_path / "cut", **settings)
    monkeypatch.undo()
    again = isotrope.train("quick-thoughts", sentences, tiny, tmp_path / "cut", resume=True, **settings)
    for (name, one), other in zip(whole.encoder.named_parameters(), again.encoder.parameters(), strict=True):
        assert torch.equal(one, other), name
    assert [line.get("loss") for line in whole.history] == [line.get("loss") for line in again.history]


def test_training_lowers_its_loss(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    run = isotrope.train("quick-thoughts", sentences, tiny, tmp_path / "run", max_steps=30, eval_steps=30, **SHORT)
    losses = [line["contrastive"] for line in run.history if "contrastive" in line]
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
    assert run.history[1]["candidates"] == 15


def test_documents_of_one_sentence_are_counted(tiny: Path, tmp_path: Path, topics: list[str]) -> None:
    file = tmp_path / "uneven.txt"
    file.write_text(
        "\n\n".join(["\n".join(topics[:3]), topics[3], topics[4], "\n".join(topics[5:8])]), encoding="utf-8"
    )
    method = build(tiny)
    method.corpus = corpus_of(method, file)
    (said,) = method.remarks()
    assert said.startswith("2 of 4 documents are a single sentence")


@pytest.mark.parametrize(
    "bad", [{"temperature": 0.0}, {"temperature": float("nan")}, {"window": 0}, {"second": "third"}]
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        QuickThoughts.check(QuickThoughts.Settings(**bad))  # type: ignore[arg-type]
