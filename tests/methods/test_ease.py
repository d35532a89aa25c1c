"""EASE: which entities a sentence is compared with, what the table learns, what is kept."""

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
from isotrope.methods.ease import EASE
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.settings import check
from isotrope.objectives import entity_contrast, info_nce
from isotrope.towers.keeping import Trained

Built = Callable[..., Any]
Batched = Callable[..., Batch]
WHO = ["chef", "sailor", "pianist", "farmer", "pilot", "baker"]
OFF = {"dropout": 0.0}


@pytest.fixture
def linked() -> list[dict[str, Any]]:
    """60 sentences; entities come again every six rows; every third row names hard entities; none has a type."""
    rows = []
    for number in range(60):
        hard = [WHO[(number + 1) % 6], "astronaut"] if number % 3 == 0 else []
        sentence = f"the {WHO[number % 6]} stands on the {'old ' * (number % 4)}boat number {number}"
        rows.append({"sentence": sentence, "entity": WHO[number % 6], "hard_entities": hard})
    return rows


@pytest.fixture
def typed() -> list[dict[str, Any]]:
    """Every sentence links to two persons and a place; nothing names hard entities."""
    rows = []
    for number in range(30):
        text = f"the {WHO[number % 6]} and the {WHO[(number + 1) % 6]} met at dock number {number}"
        for entity, sort in (
            (WHO[number % 6], "person"),
            (WHO[(number + 1) % 6], "person"),
            (f"dock {number % 3}", "place"),
        ):
            rows.append({"sentence": text, "entity": entity, "entity_type": sort})
    return rows


def table_of(method: Method) -> torch.nn.Embedding:
    tower = method.tower["entities"]
    assert isinstance(tower, Trained)
    assert isinstance(tower.module, torch.nn.Embedding)
    return tower.module


def entities_of(batch: Batch) -> list[int]:
    return batch["links"].values[:, 0].tolist()


def hard_of(batch: Batch) -> list[int]:
    return batch["hard"].values.tolist()


# ---- the loss


def test_defaults_are_the_papers() -> None:
    settings: Any = EASE.Settings()
    assert (settings.entity_weight, settings.hard_negative_weight, settings.entity_map) == (0.01, 1.0, "linear")
    assert (settings.temperature, settings.entity_temperature) == (0.05, 0.05)
    assert EASE.card.read_out == "cls"


def test_the_entity_is_compared_with_the_first_view_alone(built: Built, batched: Batched, linked: Any) -> None:
    method = built("ease", linked)  # under dropout, or both views would be equal
    batch = batched(method)
    found = method.represent(batch)
    assert not torch.allclose(found["first"], found["second"], atol=1e-4)
    entity, other = (
        float(method.loss({**found, "second": found[name]}, batch.generator())["entity"].detach())
        for name in ("second", "first")
    )
    assert entity == other


@pytest.mark.parametrize(("weight", "expected"), [(1.0, 1.066328), (math.e, 1.516450)])
def test_golden_values_through_the_method(built: Built, linked: Any, weight: float, expected: float) -> None:
    method = built("ease", linked, entity_temperature=0.5, hard_negative_weight=weight)
    found = {
        "first": torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
        "second": torch.eye(2),
        "entities": torch.tensor([[0.8, 0.6], [-0.6, 0.8]]),
        "hard_entities": torch.tensor([[0.6, 0.8], [0.28, 0.96]]),
        "links": torch.tensor([[0, -1], [1, -1]]),
        "hard": torch.tensor([2, 3]),
    }
    assert float(method.loss(found, torch.Generator())["entity"]) == pytest.approx(expected, abs=1e-6)


def test_the_sentence_term_is_simcse_and_no_weight_leaves_nothing_else(
    built: Built, batched: Batched, linked: Any
) -> None:
    method = built("ease", linked, entity_weight=0.0, **OFF)
    batch = batched(method, range(12))
    found = method.represent(batch)
    terms = method.loss(found, batch.generator())
    simcse = info_nce(found["first"], found["second"], 0.05)
    terms = {name: term.detach() for name, term in terms.items()}
    assert float(terms["contrastive"]) == pytest.approx(float(simcse.detach()))
    assert float(Combined(method).total(terms)) == pytest.approx(float(simcse.detach()))
    assert float(terms["entity"]) > 0
    assert method.candidates(found) == 12
    weighted = built("ease", linked, entity_weight=0.5, **OFF)
    assert float(Combined(weighted).total(terms)) == pytest.approx(float(simcse.detach() + 0.5 * terms["entity"]))


def test_a_naive_loop_over_what_may_be_compared(built: Built, batched: Batched, linked: Any) -> None:
    """Rows 0 and 6 share their entity, and the hard entity of one is the entity of another."""
    method = built("ease", linked, entity_temperature=0.2, hard_negative_weight=3.0, **OFF)
    batch = batched(method, range(12))
    found = {name: tensor.detach() for name, tensor in method.represent(batch).items()}
    entity, hard = entities_of(batch), hard_of(batch)
    assert entity[0] == entity[6]
    assert -1 in hard
    assert set(hard) & set(entity)
    cosine = torch.nn.functional.cosine_similarity
    total = 0.0
    for i in range(12):
        bottom = 0.0
        for j in range(12):
            if i == j or entity[j] != entity[i]:
                bottom += math.exp(float(cosine(found["first"][i], found["entities"][j], dim=0)) / 0.2)
            if hard[j] not in (-1, entity[i]):
                weight = 3.0 if i == j else 1.0
                bottom += weight * math.exp(float(cosine(found["first"][i], found["hard_entities"][j], dim=0)) / 0.2)
        total -= math.log(math.exp(float(cosine(found["first"][i], found["entities"][i], dim=0)) / 0.2) / bottom)
    assert float(method.loss(found, batch.generator())["entity"]) == pytest.approx(total / 12, abs=1e-5)


def test_sentences_of_one_entity_are_not_each_others_negatives(built: Built, batched: Batched, linked: Any) -> None:
    """A batch of one entity alone has nothing to distinguish: the entity term is 0."""
    method = built("ease", [{k: row[k] for k in ("sentence", "entity")} for row in linked], **OFF)
    batch = batched(method, range(0, 60, 6))
    assert len(set(entities_of(batch))) == 1
    assert float(method.loss(method.represent(batch), batch.generator())["entity"]) == pytest.approx(0.0, abs=1e-6)


def test_what_a_sentence_links_to_elsewhere_is_no_negative_of_it(built: Built, batched: Batched) -> None:
    """Row 0 links its sentence to A, row 1 to B; row 2 brings B as the entity of another sentence, row 3 brings D."""
    rows = [
        ("the chef met the sailor", "A"),
        ("the chef met the sailor", "B"),
        ("the sailor stands", "B"),
        ("the pilot lands", "D"),
    ]
    method = built("ease", [{"sentence": s, "entity": e} for s, e in rows], entity_temperature=0.2, **OFF)
    batch = batched(method, [0, 2, 3])
    found = method.represent(batch)
    cosines = torch.nn.functional.cosine_similarity(found["first"].unsqueeze(1), found["entities"], dim=2) / 0.2
    cosines[0, 1] = -math.inf
    expected = torch.nn.functional.cross_entropy(cosines, torch.arange(3))
    assert float(method.loss(found, batch.generator())["entity"].detach()) == pytest.approx(
        float(expected.detach()), abs=1e-5
    )


def test_the_mask_of_the_objective() -> None:
    s, e, h = torch.randn(3, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    everything = torch.ones(4, 8, dtype=torch.bool)
    plain = entity_contrast(s, e, h, 0.1, negative_weight=2.0)
    assert float(entity_contrast(s, e, h, 0.1, negative_weight=2.0, allowed=everything)) == pytest.approx(float(plain))
    no_hard = everything.clone()
    no_hard[:, 4:] = False
    assert float(entity_contrast(s, e, h, 0.1, allowed=no_hard)) == pytest.approx(
        float(entity_contrast(s, e, None, 0.1))
    )
    assert float(entity_contrast(s, e, None, 0.1, allowed=torch.zeros(4, 4, dtype=torch.bool))) == pytest.approx(0.0)
    with pytest.raises(InputError, match="allowed"):
        entity_contrast(s, e, h, allowed=everything[:, :4])


# ---- hard entities


def test_a_given_hard_entity_is_taken_and_a_missing_one_is_none(built: Built, linked: Any) -> None:
    method = built("ease", linked)
    corpus = method.corpus
    assert corpus is not None
    seen = set()
    for seed in range(20):
        hard = method.views(Records(corpus, [0, 1]), np.random.default_rng(seed))["hard"].values.tolist()  # type: ignore[attr-defined]
        assert hard[1] == -1
        seen.add(corpus.entities[hard[0]])
    assert seen == {"sailor", "astronaut"}


@pytest.mark.parametrize("columns", [None, ["sentence", "entity", "entity_type"]])
def test_of_the_same_type_and_not_linked_from_the_sentence(built: Built, typed: Any, columns: list[str] | None) -> None:
    method = built("ease", typed, columns=columns)
    corpus = method.corpus
    assert corpus is not None
    assert corpus.types == ["person", "place"]
    rows = list(range(len(corpus)))
    for seed in range(5):
        hard = method.views(Records(corpus, rows), np.random.default_rng(seed))["hard"].values.tolist()  # type: ignore[attr-defined]
        names = [corpus.entities[number] for number in hard if number >= 0]
        assert len(names) > 85  # out of ten draws hardly all are taken
        for row, number in zip(rows, hard, strict=True):
            if number >= 0:
                name = corpus.entities[number]
                assert (name in WHO) == (typed[row]["entity_type"] == "person")
                linked = {other["entity"] for other in typed if other["sentence"] == typed[row]["sentence"]}
                assert name not in linked


def test_a_type_with_one_entity_gives_no_hard_entity(built: Built, batched: Batched) -> None:
    method = built(
        "ease", [{"sentence": f"sentence {i}", "entity": f"e{i % 2}", "entity_type": f"t{i % 2}"} for i in range(8)]
    )
    assert hard_of(batched(method)) == [-1] * 8


def test_types_are_no_entities_and_may_be_missing(built: Built, tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("entity_type\tsentence\tentity\nz\tone\tA\n\ttwo\tB\na\tthree\tC\n", encoding="utf-8")
    corpus = built("ease", file).corpus
    assert corpus is not None
    assert corpus.entities == ["A", "B", "C"]
    assert corpus.types == ["a", "z"]
    assert corpus.type_numbers().tolist() == [1, -1, 0]
    untyped = built("ease", file, columns=["sentence", "entity"]).corpus
    assert untyped is not None
    assert (untyped.types, untyped.type_numbers().tolist()) == ([], [-1, -1, -1])


def test_the_published_mentions(built: Built, batched: Batched, shared_data: Path) -> None:
    path = shared_data / "entity" / "gum_wikified_mentions.tsv.gz"
    method = built("ease", path, columns=["sentence", "entity", "entity_type"])
    assert table_of(method).num_embeddings == 2603
    assert method.corpus is not None
    assert "person" in method.corpus.types
    batch = batched(method, range(0, 6400, 200))
    assert sum(number >= 0 for number in hard_of(batch)) > 28
    assert torch.isfinite(method.loss(method.represent(batch), batch.generator())["entity"])


# ---- the table and the map


def test_the_gradient_reaches_the_rows_of_the_batch_and_no_others(built: Built, batched: Batched, linked: Any) -> None:
    method = built("ease", linked, **OFF)
    batch = batched(method, range(3))
    method.loss(method.represent(batch), batch.generator())["entity"].backward()
    moved = set(table_of(method).weight.grad.abs().sum(dim=1).nonzero().squeeze(1).tolist())  # type: ignore[union-attr]
    named = {number for number in entities_of(batch) + hard_of(batch) if number >= 0}
    assert moved == named
    assert len(named) < table_of(method).num_embeddings
    assert method.tower["map"].module.linear.weight.grad.abs().sum() > 0  # type: ignore[union-attr]


def test_the_table_is_drawn_small_and_the_map_is_linear_or_tanh(built: Built, linked: Any) -> None:
    method = built("ease", linked)
    weight = table_of(method).weight
    assert weight.shape == (7, 32)  # the astronaut is only ever a hard entity
    assert 0.04 < float(weight.abs().max()) <= 0.05
    vectors = torch.randn(3, 32)
    linear, tanh = method.tower["map"], built("ease", linked, entity_map="tanh").tower["map"]
    assert torch.allclose(linear(2 * vectors), 2 * linear(vectors), atol=1e-5)
    assert tanh(100 * vectors).abs().max() <= 1


def test_given_vectors_begin_the_table(built: Built, batched: Batched, linked: Any, tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("3 3\nENTITY/chef 1 2 3\nthe 7 7 7\nsailor -1 0.5 0\n", encoding="utf-8")
    method = built("ease", linked, vectors=str(file))
    corpus = method.corpus
    assert corpus is not None
    weight = table_of(method).weight
    assert weight.shape == (7, 3)
    assert weight[corpus.entities.index("chef")].tolist() == [1, 2, 3]
    assert weight[corpus.entities.index("sailor")].tolist() == [-1, 0.5, 0]
    assert weight[corpus.entities.index("farmer")].abs().max() <= 0.05
    batch = batched(method)
    assert torch.isfinite(Combined(method).total(method.loss(method.represent(batch), batch.generator())))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("nobody 1 2 3\n", "no vector of any of the 7 entities"),
        ("chef 1 2 x\n", ":1: a word and numbers"),
        ("chef 1 2\nsailor 1\n", ":2: 1 numbers, 2 expected"),
        ("chef 1 nan\n", ":1: a number is not finite"),
        ("chef\n", ":1: 0 numbers, 1 expected"),
    ],
)
def test_bad_vectors(built: Built, linked: Any, tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        built("ease", linked, vectors=str(file))


def test_table_map_and_head_are_dropped(built: Built, linked: Any, tiny: Path) -> None:
    for pooling in ("mean", "cls"):
        exported = built("ease", linked, pooling=pooling).export()
        assert len(exported.parts) == 0
        raw = isotrope.load(tiny, pooling=pooling)
        assert np.allclose(exported.encode("the chef bakes"), raw.encode("the chef bakes"), atol=1e-6)
        assert {name for name, _ in exported.named_parameters()} == {name for name, _ in raw.named_parameters()}


# ---- laws


def test_chunks_agree(built: Built, linked: Any, chunks_agree: Callable[..., None]) -> None:
    chunks_agree(*(built("ease", linked, entity_weight=1.0, pooling="cls") for _ in range(2)))


def test_resume_agrees(typed: Any, resume_agrees: Callable[..., None]) -> None:
    resume_agrees("ease", typed, entity_weight=1.0)


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_sentences_learn_their_entities(linked: Any, tiny: Path, tmp_path: Path) -> None:
    settings = {
        "max_steps": 30,
        "batch_size": 16,
        "eval_steps": 30,
        "logging_steps": 5,
        "learning_rate": 3e-3,
        "held_out": 0,
    }
    run = isotrope.train(
        "ease", linked, model=tiny, output=tmp_path / "run", entity_weight=1.0, entity_temperature=0.1, **settings
    )
    losses = [line["entity"] for line in run.history if "entity" in line]
    assert losses[-1] < 0.5 * losses[0]


# ---- bad input


def test_entities_that_the_table_does_not_know(built: Built, linked: Any) -> None:
    method, other = (
        built("ease", linked),
        built("ease", [{"sentence": "a", "entity": "B"}, {"sentence": "c", "entity": "D"}]),
    )
    assert other.corpus is not None
    with pytest.raises(InputError, match="no rows in it"):
        method.views(Records(other.corpus, [0]), np.random.default_rng(0))


def test_no_data_and_the_wrong_data(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs its data"):
        EASE(EASE.Settings(), isotrope.load(tiny), 64)
    with pytest.raises(InputError, match="sentence/entity"):
        isotrope.train("ease", sentences, model=tiny, output=tmp_path / "run")


@pytest.mark.parametrize(
    "bad",
    [
        {"entity_weight": -1.0},
        {"entity_temperature": 0.0},
        {"entity_temperature": float("nan")},
        {"hard_negative_weight": -1.0},
        {"entity_map": "quadratic"},
        {"temperature": 0.0},
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        check(EASE.Settings(**bad))


def test_the_released_temperature_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="hardly moves"):
        check(EASE.Settings(entity_temperature=100.0))


# ---- pages


def test_hard_entities_come_from_other_pages(built: Built, batched: Batched, typed: Any) -> None:
    pages = [{**row, "page": f"page {number // 3 % 6}"} for number, row in enumerate(typed)]
    method = built("ease", pages, pages="needed", **OFF)
    corpus = method.corpus
    on_page: dict[int, set[int]] = {}
    for page, entity in zip(corpus.page_numbers(), corpus.numbers("entity"), strict=True):
        on_page.setdefault(int(page), set()).add(int(entity))
    batch = batched(method, rows=list(range(0, 60, 3)))
    drawn = [(row, hard) for row, hard in zip(range(0, 60, 3), hard_of(batch), strict=True) if hard >= 0]
    assert len(drawn) == 20
    assert all(hard not in on_page[int(corpus.page_numbers()[row])] for row, hard in drawn)


def test_data_without_pages_are_refused_where_pages_are_needed(built: Built, typed: Any) -> None:
    with pytest.raises(InputError, match=r"90 of 90 records name no page \(column page\), and pages is 'needed'"):
        built("ease", typed, pages="needed")


def test_records_that_lack_a_page_among_others_are_said(built: Built, typed: Any) -> None:
    some = [{**row, "page": "P"} if number else row for number, row in enumerate(typed)]
    assert built("ease", some).prepared.remarks == (
        "1 of 90 records name no page: a hard entity of their type may stand on it.",
    )
    assert not built("ease", some, pages="ignored").prepared.remarks
    assert not built("ease", typed).prepared.remarks
