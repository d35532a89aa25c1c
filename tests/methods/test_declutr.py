"""DeCLUTR: which spans meet, what is compared, what is masked, what becomes of short documents."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

import isotrope
from isotrope.errors import InputError
from isotrope.methods.declutr import DeCLUTR, DeCLUTRSettings
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.settings import check
from isotrope.objectives import nt_xent
from isotrope.training.state import TrainingWarning

Build = Callable[..., Any]
Batched = Callable[..., Batch]
Law = Callable[..., Any]
SHORT = {"batch_size": 8, "learning_rate": 1e-3, "logging_steps": 1, "held_out": 40, "max_length": 32}
FIRST_ROWS = range(0, 64, 8)  # of eight documents


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    """Dropout is off unless it is asked for."""
    return lambda data=sentences, **settings: built("declutr", data, **{"backbone_dropout": 0.0, **settings})


def loss_of(method: Method, batch: Batch) -> float:
    return float(method.loss(method.represent(batch), batch.generator())["contrastive"].detach())


def naive_loss(anchors: torch.Tensor, positives: torch.Tensor, temperature: float) -> float:
    """The paper's sum over pairs, divided by the 2AN anchors of the loss."""
    vectors = [*anchors.detach().flatten(0, 1).double(), *positives.detach().flatten(0, 1).double()]
    half, total = len(vectors) // 2, 0.0
    for i, vector in enumerate(vectors):
        scores = {
            k: float(cosine_similarity(vector, other, dim=0)) / temperature for k, other in enumerate(vectors) if k != i
        }
        total += math.log(sum(math.exp(score) for score in scores.values())) - scores[(i + half) % len(vectors)]
    return total / len(vectors)


def test_the_card_and_the_papers_settings() -> None:
    card = DeCLUTR.card
    assert (card.name, card.needs, card.year, DeCLUTR.batches) == ("declutr", "documents", 2021, "by-document")
    settings = DeCLUTRSettings()
    assert (settings.temperature, settings.anchors, settings.positives, settings.place) == (0.05, 2, 2, "any")
    papers = settings.spans(510)
    assert (papers.shortest, papers.longest, papers.anchor_shape, papers.positive_shape) == (
        32,
        510,
        (4.0, 2.0),
        (2.0, 4.0),
    )


def test_span_lengths_scale_with_the_room(build: Build) -> None:
    assert [(spans.shortest, spans.longest) for spans in map(DeCLUTRSettings().spans, (126, 62, 1))] == [
        (8, 126),
        (4, 62),
        (1, 1),
    ]
    assert build().spans.longest == 62  # 64 positions, two special tokens
    assert build(max_length=20).spans.longest == 18
    assert build(max_length=500).spans.longest == 62
    assert build(longest=400, shortest=5).spans.longest == 62
    assert (build(longest=32).spans.shortest, build(longest=32).spans.longest) == (2, 32)


class Numbered:
    """Documents whose token ids name the document and the place."""

    def joined(self) -> list[np.ndarray]:
        return [1000 * number + np.arange(300) for number in range(8)]


def test_spans_are_parts_of_their_own_document_positives_near_their_anchor(build: Build) -> None:
    views = build(anchors=2, positives=3).views(Numbered(), np.random.default_rng(0))  # type: ignore[arg-type]

    def places(view: Any) -> list[range]:
        spans = [row[1 : length - 1].tolist() for row, length in zip(view.ids, view.lengths, strict=True)]
        assert all(span == list(range(span[0], span[0] + len(span))) for span in spans)
        return [range(span[0], span[-1] + 1) for span in spans]

    anchors, positives = places(views["anchors"]), places(views["positives"])
    assert (len(anchors), len(positives)) == (16, 48)
    assert [anchor.start // 1000 for anchor in anchors] == np.arange(8).repeat(2).tolist()
    for number, positive in enumerate(positives):
        own, other = anchors[number // 3], anchors[number // 3 ^ 1]
        assert positive.start // 1000 == own.start // 1000 == (positive.stop - 1) // 1000
        assert positive.start <= own.stop
        assert own.start <= positive.stop
        assert positive.stop <= other.start or other.stop <= positive.start
    assert len({len(anchor) for anchor in anchors}) > 5


def test_positives_are_averaged_and_all_other_spans_are_negatives(build: Build, batched: Batched) -> None:
    method = build(temperature=0.2, anchors=2, positives=3)
    batch = batched(method, FIRST_ROWS)
    found = method.represent(batch)
    width = method.encoder.dimension
    assert found["anchors"].shape == found["positives"].shape == (8, 2, width)
    apart = torch.stack([method.encoder.embed(batch["positives"].rows(slice(i, i + 1)))[0][0] for i in range(48)])
    assert torch.allclose(
        found["positives"].flatten(0, 1), torch.stack([part.mean(dim=0) for part in apart.split(3)]), atol=1e-5
    )
    assert loss_of(method, batch) == pytest.approx(naive_loss(found["anchors"], found["positives"], 0.2), abs=1e-5)
    assert method.candidates(found) == 31


def test_one_span_of_each_kind_is_plain_nt_xent(build: Build, batched: Batched) -> None:
    method = build(anchors=1, positives=1)
    batch = batched(method, FIRST_ROWS)
    assert loss_of(method, batch) == pytest.approx(
        float(nt_xent(*method.encoder.embed(batch["anchors"], batch["positives"]), 0.05).detach())
    )


def test_a_boundless_temperature_leaves_a_guess_among_all_others(build: Build, batched: Batched) -> None:
    method = build(temperature=1e6)
    assert loss_of(method, batched(method, FIRST_ROWS)) == pytest.approx(math.log(2 * 2 * 8 - 1), abs=1e-4)


def test_spans_of_the_same_document_are_negatives(build: Build) -> None:
    directions = torch.eye(6)
    anchors = torch.stack([directions[0:2], directions[2:4]])
    alike = anchors.clone()
    alike[0, 1] = directions[0] + directions[1]  # the second anchor of a document comes closer to the first
    method = build(temperature=1.0)
    apart, close = (
        float(method.loss({"anchors": each, "positives": each}, torch.Generator())["contrastive"])
        for each in (anchors, alike)
    )
    assert apart == pytest.approx(math.log(1 + 6 * math.exp(-1)), abs=1e-6)
    assert close > apart + 0.01


@pytest.mark.parametrize("mlm", [0.0, 1.0])
def test_chunks_give_the_gradient_of_the_whole_batch_with_dropout_on(
    build: Build, with_mlm: Law, chunks_agree: Law, mlm: float
) -> None:
    cached, plain = (build(backbone_dropout=0.1, language_head=True) for _ in range(2))
    if mlm:
        cached, plain = with_mlm(cached, mlm), with_mlm(plain, mlm)
    chunks_agree(cached, plain, FIRST_ROWS, 3)


def test_language_modelling_asks_for_tokens_of_anchors_only_and_counts_once(
    build: Build, batched: Batched, with_mlm: Law
) -> None:
    combined = with_mlm(build(language_head=True), 1.0)
    batch = batched(combined, FIRST_ROWS)
    assert set(batch.views) == {"anchors", "positives", "mlm:masked:anchors"}
    masked = batch["mlm:masked:anchors"]
    assert torch.equal(torch.where(masked.labels >= 0, masked.labels, batch["anchors"].ids), batch["anchors"].ids)
    terms = combined.loss(combined.represent(batch), batch.generator())
    assert set(terms) == {"contrastive", "mlm"}
    assert float(combined.total(terms)) == pytest.approx(float(terms["contrastive"] + terms["mlm"]), rel=1e-6)
    assert len(masked) == len(batch["anchors"]) == 16


def test_the_encoder_alone_is_kept(build: Build, batched: Batched, tiny: Path) -> None:
    method = build()
    assert np.array_equal(method.export().encode("the chef bakes"), isotrope.load(tiny).encode("the chef bakes"))
    batch = batched(method, FIRST_ROWS)
    Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
    assert {name.split(".")[0] for name, p in method.named_parameters() if p.grad is not None} == {"encoder"}


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_the_plain_command_adds_masked_language_modelling(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    """The paper's loss has both terms at equal weight; a weight that is given wins."""
    lines = []
    for weight in ({}, {"mlm_weight": 0.0}):
        folder = tmp_path / f"run{len(weight)}"
        run = isotrope.train("declutr", sentences, tiny, folder, max_steps=1, eval_steps=1, **SHORT, **weight)
        lines.append(next(line for line in run.history if "loss" in line))
    assert lines[0]["loss"] == pytest.approx(lines[0]["contrastive"] + lines[0]["mlm"], rel=1e-5)
    assert "mlm" not in lines[1]
    assert {one.name: one.default for one in isotrope.catalogue.describe_settings("declutr")}["mlm_weight"] == 1.0


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_a_start_without_a_language_head_is_refused(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    headless = tmp_path / "headless"
    isotrope.load(tiny).save(headless)
    for start in ("builtin", headless):
        with pytest.raises(InputError, match=r"no masked-language head; start from .* or set mlm_weight 0"):
            isotrope.train("declutr", sentences, start, tmp_path / "run", **SHORT)
    with pytest.raises(InputError, match=r"language_head=True, or set mlm_weight 0"):
        isotrope.train("declutr", sentences, isotrope.load(tiny), tmp_path / "run", **SHORT)
    assert not (tmp_path / "run").exists()
    with pytest.warns(UserWarning, match="drawn at random"):  # asked for by name, a new head is trained
        isotrope.train(
            "declutr", sentences, headless, tmp_path / "run", max_steps=1, eval_steps=1, mlm_weight=1.0, **SHORT
        )


@pytest.mark.filterwarnings("ignore:.*their spans are shorter")
def test_resume_equals_uninterrupted(sentences: Path, resume_agrees: Law) -> None:
    resume_agrees("declutr", sentences, mlm_weight=1.0, max_length=32)


@pytest.mark.filterwarnings("ignore:.*their spans are shorter")
def test_training_lowers_its_loss_and_helps_neighbours_find_each_other(
    tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    run = isotrope.train(
        "declutr", sentences, tiny, tmp_path / "run", max_steps=60, eval_steps=60, **{**SHORT, "batch_size": 16}
    )
    losses = [line["contrastive"] for line in run.history if "contrastive" in line]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])
    scores = [line["evaluation"]["retrieval_mrr"] for line in run.history if "evaluation" in line]
    assert scores[-1] > scores[0]


@pytest.fixture
def uneven(tmp_path: Path, topics: list[str]) -> Path:
    """24 documents of eight sentences, one of a single token, and one without any."""
    texts = ["\n".join(topics[i : i + 8]) for i in range(0, 192, 8)]
    path = tmp_path / "uneven.txt"
    path.write_text("\n\n".join([*texts[:3], "the", *texts[3:], "\u0001"]) + "\n", encoding="utf-8")
    return path


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_short_documents_are_used_as_far_as_they_go_and_counted(
    build: Build, tiny: Path, uneven: Path, tmp_path: Path
) -> None:
    method = build(uneven)
    corpus = method.corpus
    tokens = corpus.document_tokens()
    assert tokens.tolist() == [len(corpus.joined(int(row))) for row in corpus.starts]
    assert sorted(tokens)[:2] == [0, 1]
    kept = method.prepared.select(np.arange(len(corpus)))
    assert len(kept) == len(corpus) - 2
    assert set(corpus.documents[kept]) == set(range(26)) - {3, 25}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", TrainingWarning)
        settings = {**SHORT, "batch_size": 6, "held_out": 0, "max_length": 64}
        run = isotrope.train("declutr", uneven, tiny, tmp_path / "run", max_steps=8, eval_steps=8, **settings)
    sentences_said = [str(each.message) for each in said]
    assert "24 of 26 documents have fewer than 248 tokens: their spans are shorter." in sentences_said
    assert "2 of 26 documents have fewer than two tokens an anchor and are left out." in sentences_said
    assert all(math.isfinite(line["loss"]) for line in run.history if "loss" in line)


@pytest.mark.parametrize(
    ("longest", "said"), [(None, []), (400, ["longest is 400, and 62 tokens fit: spans have at most 62."])]
)
def test_a_cap_is_said(build: Build, longest: int | None, said: list[str]) -> None:
    remarks = build(longest=longest).prepared.remarks
    assert [remark for remark in remarks if "longest" in remark] == said


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"anchors": 0}, "anchors"),
        ({"positives": 0}, "positives"),
        ({"shortest": 0}, "shortest"),
        ({"longest": 0}, "longest"),
        ({"shortest": 40, "longest": 20}, "longest must be at least shortest, 40; 20"),
        ({"place": "near"}, "place is one of any, adjacent, subsumed"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, float], named: str) -> None:
    with pytest.raises(InputError, match=named):
        check(DeCLUTR.Settings(**bad))  # type: ignore[arg-type]


def test_spans_that_do_not_fit_the_encoder_are_refused(build: Build, tiny: Path, triples: Path) -> None:
    with pytest.raises(InputError, match="shortest is 100, and 62 tokens fit"):
        build(shortest=100)
    with pytest.raises(InputError, match="max_length 2 leaves no room"):
        build(max_length=2)
    with pytest.raises(InputError, match="columns found"):
        isotrope.train("declutr", triples, tiny)
