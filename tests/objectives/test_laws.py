"""The laws that every objective keeps:

its gradient is right, the order of the batch is nothing to it, half precision does not break it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from isotrope import objectives
from isotrope.errors import InputError
from isotrope.objectives import (
    bidirectional_margin,
    bits_per_dimension,
    chunked_contrast,
    contrast_with_neighbours,
    cosent,
    debiased,
    entity_contrast,
    imitation,
    info_nce,
    jensen_shannon,
    listmle,
    listnet,
    mined_triplets,
    nce,
    negative_sampling,
    neighbour_prediction,
    neighbourhood,
    nt_xent,
    pooled_triplets,
    queue_nce,
    ranking_consistency,
    relational,
    self_guided,
    sne,
    supervised_contrast,
    symmetric_sne,
    synonym_antonym,
    synonym_antonym_released,
    t_sne,
    token_contrast,
    triplet,
    virtual_contrast,
    windowed_sampling,
)

LABELS = torch.tensor([0, 1, 0, 2, 1, 0])
NEIGHBOURS = torch.tensor([[1, 2], [0, 5], [3, 4], [2, 0], [5, 1], [4, 3]])
KEEP = torch.tensor([[j != (i + 1) % 6 for j in range(6)] for i in range(6)])
SCORES = torch.tensor([0.0, 1.0, 2.5, 2.5, 4.0, 5.0])
NEAR = torch.linspace(1, 3, 36, dtype=torch.float64).view(6, 6).fill_diagonal_(0)  # made-up neighbours for the maps
PAIR = {"first": (6, 4), "second": (6, 4)}
NOISY = {"anchor": (6, 4), "positive": (6, 4), "negatives": (6, 3, 4)}
MAP = {"points": (6, 2)}
TRIPLE = {"anchor": (6, 4), "positive": (6, 4), "negative": (6, 4)}


@dataclass(frozen=True)
class Case:
    """``shapes``:

    the vectors, drawn at random. ``rows``: what moves together when the batch is permuted. ``cosine``: scale is
    nothing.
    """

    loss: Callable[..., Tensor]
    shapes: dict[str, tuple[int, ...]]
    given: dict[str, Any] = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    cosine: bool = True
    tempered: bool = True
    wrong: float = 1.0  # what many a row that is wrong by far costs at least

    def draw(self, seed: int, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return {
            name: torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
            for name, shape in self.shapes.items()
        }

    def __call__(self, vectors: dict[str, Tensor], temperature: float | Tensor = 0.5, **given: Any) -> Tensor:
        settings = {"temperature": temperature} if self.tempered else {}
        return self.loss(**{**self.given, **vectors, **given, **settings})


def case(loss: Callable[..., Tensor], shapes: dict[str, tuple[int, ...]], rows: str = "", **more: Any) -> Case:
    return Case(loss, shapes, rows=tuple(rows.split()), **more)


CASES = {
    "info_nce": case(info_nce, {"anchors": (6, 4), "candidates": (6, 4)}, "anchors candidates"),
    "info_nce, negatives": case(
        info_nce,
        {"anchors": (6, 4), "candidates": (6, 4), "negatives": (6, 4)},
        "anchors candidates negatives",
        given={"negative_weight": 2.0},
    ),
    "nt_xent": case(nt_xent, PAIR, "first second"),
    "chunked_contrast": case(
        chunked_contrast,
        {"anchors": (6, 4), "candidates": (9, 4)},
        given={"targets": torch.tensor([3, 0, 8, 1, 1, 5])},
    ),
    "queue_nce": case(queue_nce, {"queries": (6, 4), "keys": (6, 4), "queue": (9, 4)}, "queries keys"),
    "supervised_contrast, out": case(
        supervised_contrast, {"embeddings": (6, 4)}, "embeddings labels", given={"labels": LABELS}
    ),
    "supervised_contrast, in": case(
        supervised_contrast, {"embeddings": (6, 4)}, "embeddings labels", given={"labels": LABELS, "form": "in"}
    ),
    **{
        f"self_guided, {variant}": case(
            self_guided, {"cls": (6, 4), "layers": (6, depth, 4)}, "cls layers", given={"variant": variant}
        )
        for variant, depth in (("base", 1), ("opt1", 1), ("opt2", 1), ("opt3", 3))
    },
    "debiased": case(
        debiased,
        {"anchors": (6, 4), "positives": (6, 4), "noise": (5, 4)},
        "anchors positives weights",
        given={"weights": KEEP.double() * torch.linspace(0.5, 2, 36).view(6, 6)},
    ),
    "neighbourhood": case(neighbourhood, {"anchors": (6, 4), "virtual": (6, 4)}, "anchors virtual", given={"k": 2}),
    "contrast_with_neighbours": case(
        contrast_with_neighbours, {"anchors": (6, 4), "virtual": (6, 4)}, given={"neighbours": NEIGHBOURS}
    ),
    "virtual_contrast": case(
        virtual_contrast, {"virtual": (6, 4), "anchors": (6, 4)}, given={"neighbours": NEIGHBOURS}
    ),
    "entity_contrast": case(entity_contrast, {"sentences": (6, 4), "entities": (6, 4)}, "sentences entities"),
    "entity_contrast, hard": case(
        entity_contrast,
        {"sentences": (6, 4), "entities": (6, 4), "hard_entities": (6, 4)},
        "sentences entities hard_entities",
        given={"negative_weight": math.e},
    ),
    "neighbour_prediction": case(neighbour_prediction, PAIR, given={"window": 2}, cosine=False),
    "triplet, euclidean": case(
        triplet, TRIPLE, "anchor positive negative", cosine=False, tempered=False, given={"margin": 1.5}
    ),
    "triplet, cosine": case(
        triplet, TRIPLE, "anchor positive negative", tempered=False, given={"margin": 1.5, "distance": "cosine"}
    ),
    "triplet, dot": case(
        triplet,
        TRIPLE,
        "anchor positive negative",
        cosine=False,
        tempered=False,
        given={"margin": 1.5, "distance": "dot"},
    ),
    **{
        f"pooled_triplets, {distance}": case(
            pooled_triplets,
            {"anchors": (6, 4), "candidates": (6, 4)},
            cosine=distance == "cosine",
            tempered=False,
            given={
                "positive": torch.arange(6),
                "negatives": ~torch.eye(6, dtype=torch.bool),
                "mining": "batch-all",
                "margin": 1.5,
                "distance": distance,
            },
        )
        for distance in ("euclidean", "cosine", "dot")
    },
    **{
        loss.__name__: case(
            loss,
            dict.fromkeys(("original", "synonym", "antonym"), (6, 4)),
            "original synonym antonym",
            cosine=False,
            tempered=False,
        )
        for loss in (synonym_antonym, synonym_antonym_released)
    },
    "bidirectional_margin": case(
        bidirectional_margin,
        {"anchors": (6, 4), "positives": (6, 4), "negatives": (6, 4)},
        "anchors positives negatives",
        given={"least": 1.5, "most": 1.6},
        tempered=False,
    ),
    "negative_sampling": case(negative_sampling, NOISY, "anchor positive negatives", cosine=False),
    "nce": case(
        nce,
        NOISY,
        "anchor positive negatives log_noise",
        cosine=False,
        given={"log_noise": -torch.linspace(1, 3, 24).view(6, 4)},
    ),
    "token_contrast": case(
        token_contrast,
        {"student": (6, 5, 4), "teacher": (6, 5, 4)},
        "student teacher valid anchors",
        given={
            "valid": torch.arange(5) < torch.tensor([[5], [2], [4], [5], [3], [1]]),
            "anchors": torch.arange(30).view(6, 5) % 3 > 0,
        },
    ),
    "windowed_sampling": case(
        lambda **given: windowed_sampling(**given).mean(),
        {"anchors": (6, 3, 4), "partners": (6, 3, 4), "noise": (6, 2, 4)},
        "anchors partners noise pairs other",
        cosine=False,
        tempered=False,
        given={
            "pairs": torch.linspace(0, 1, 54, dtype=torch.float64).view(6, 3, 3),
            "other": (torch.arange(36) % 5 > 0).double().view(6, 3, 2),
            "negatives": 5,
        },
    ),
    "relational": case(
        relational,
        {"images": (6, 4), "concepts": (9, 4)},
        "images answers answers_each",
        cosine=False,
        tempered=False,
        given={"answers": torch.tensor([0, 3, 8, 1, 1, 5]), "answers_each": torch.tensor([1, 2, 1, 3, 1, 2])},
    ),
    "imitation": case(imitation, {"student": (6, 4), "teacher": (6, 4)}, "student teacher", tempered=False),
    "cosent": case(
        cosent,
        {"similarities": (6,)},
        "similarities labels",
        cosine=False,
        tempered=False,
        given={"labels": SCORES, "scale": 2.0},
    ),
    "listnet": case(listnet, {"scores": (6, 4), "teacher": (6, 4)}, "scores teacher", cosine=False),
    "listmle": case(
        listmle,
        {"scores": (6, 4)},
        "scores teacher",
        cosine=False,
        given={"teacher": torch.linspace(0, 9, 24).sin().view(6, 4)},
    ),
    "jensen_shannon": case(jensen_shannon, PAIR, "first second", cosine=False, tempered=False, wrong=0.3),
    "ranking_consistency": case(ranking_consistency, PAIR, "first second", wrong=0.3),  # at most log 2
    "sne": case(
        sne,
        MAP,
        "points targets",
        cosine=False,
        tempered=False,
        given={"targets": NEAR / NEAR.sum(dim=1, keepdim=True)},
    ),
    "symmetric_sne": case(
        symmetric_sne, MAP, "points targets", cosine=False, tempered=False, given={"targets": NEAR / NEAR.sum()}
    ),
    "t_sne": case(t_sne, MAP, "points targets", cosine=False, tempered=False, given={"targets": NEAR / NEAR.sum()}),
    "bits_per_dimension": case(bits_per_dimension, {"latents": (6, 4), "log_det": (6,)}, cosine=False, tempered=False),
}
every = pytest.mark.parametrize("name", CASES)


def test_no_objective_is_forgotten() -> None:
    tested = {name.split(",")[0] for name in CASES}
    assert tested == set(objectives.__all__) - {
        "contrast",
        "joint_neighbours",
        "mined_negatives",
        "mined_triplets",
        "nearest_rows",
        "neighbours",
        "without_self",
    }


@every
def test_the_gradient_is_that_of_finite_differences(name: str) -> None:
    loss, vectors = CASES[name], CASES[name].draw(0)
    names = list(vectors)
    inputs = [vectors[key].requires_grad_() for key in names]
    assert torch.autograd.gradcheck(lambda *tensors: loss(dict(zip(names, tensors, strict=True))), inputs)
    gradients = torch.autograd.grad(loss(vectors), inputs)
    assert all(float(gradient.abs().sum()) > 1e-6 for gradient in gradients)


@every
def test_the_order_of_the_batch_changes_nothing_and_a_broken_pairing_does(name: str) -> None:
    loss = CASES[name]
    if not loss.rows:
        pytest.skip("row numbers mean something here; see the family's own test")
    vectors, order = loss.draw(1), torch.tensor([3, 0, 5, 1, 4, 2])
    moved = {row: {**vectors, **loss.given}[row][order] for row in loss.rows}
    for key in {"weights", "targets"} & set(moved):  # these have a column a row
        moved[key] = moved[key][:, order]
    base = float(loss(vectors))
    assert float(loss({**vectors, **moved})) == pytest.approx(base, rel=1e-12)
    if len(loss.rows) > 1:
        broken = {**vectors, loss.rows[0]: moved[loss.rows[0]]}
        assert float(loss(broken)) != pytest.approx(base, rel=1e-6)


@every
def test_lengths_of_vectors_count_for_dot_products_only(name: str) -> None:
    loss = CASES[name]
    vectors = loss.draw(2)
    if name == "neighbourhood":
        vectors["anchors"] = torch.nn.functional.normalize(
            vectors["anchors"], dim=-1
        )  # its neighbours are chosen by dot product
    base = float(loss(vectors))
    for key, tensor in vectors.items():
        factors = (
            torch.tensor(3.0)
            if name == "neighbourhood"
            else torch.linspace(0.1, 7, len(tensor)).view(-1, *[1] * (tensor.dim() - 1))
        )
        scaled = float(loss({**vectors, key: tensor * factors}))
        assert (scaled == pytest.approx(base, rel=1e-6)) == loss.cosine


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@every
def test_saturated_scores_stay_finite_and_near_float64(name: str, dtype: torch.dtype) -> None:
    loss = CASES[name]
    vectors = {key: (100 * tensor).to(dtype).requires_grad_() for key, tensor in loss.draw(3).items()}
    value = loss(vectors, temperature=0.01)
    exact = loss({key: tensor.detach().double() for key, tensor in vectors.items()}, temperature=0.01)
    assert value.dtype == torch.float32
    assert float(exact) > loss.wrong
    assert float(value.detach()) == pytest.approx(float(exact), rel=1e-4)
    assert all(torch.isfinite(gradient).all() for gradient in torch.autograd.grad(value, list(vectors.values())))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@every
def test_vectors_that_all_agree_stay_finite(name: str, dtype: torch.dtype) -> None:
    loss = CASES[name]
    vectors = {key: torch.ones(shape, dtype=dtype, requires_grad=True) for key, shape in loss.shapes.items()}
    value = loss(vectors, temperature=0.01)
    assert torch.isfinite(value)
    assert all(torch.isfinite(gradient).all() for gradient in torch.autograd.grad(value, list(vectors.values())))


@every
def test_tensors_that_do_not_fit_get_a_sentence(name: str) -> None:
    loss = CASES[name]
    vectors = loss.draw(4)
    for key, tensor in vectors.items():
        with pytest.raises(InputError, match=key):
            loss({**vectors, key: tensor.unsqueeze(0)})
    for key, tensor in list(vectors.items())[1:]:
        with pytest.raises(InputError, match=key):
            loss({**vectors, key: tensor[..., :-1]})
        free = ("queue", "noise", "concepts", *(["candidates"] if name == "chunked_contrast" else []))
        if key not in free:  # these have as many rows as they like
            with pytest.raises(InputError, match=r"anchors|negatives|" + key):
                loss({**vectors, key: tensor[:-1]})
    for key in {"labels", "weights", "neighbours"} & set(loss.given):
        with pytest.raises(InputError, match=f"{key} must be"):
            loss(vectors, **{key: loss.given[key][:-1]})


def test_the_sentence_names_what_was_found_and_what_was_expected() -> None:
    with pytest.raises(InputError) as caught:
        queue_nce(torch.ones(2, 8), torch.ones(2, 8), torch.ones(5, 4))
    assert str(caught.value) == "queue must be [K, d] with d = 8; a tensor of shape [5, 4] was given."


@every
def test_a_temperature_of_zero_is_refused(name: str) -> None:
    if not CASES[name].tempered:
        pytest.skip("no temperature")
    with pytest.raises(InputError, match="temperature must be above 0"):
        CASES[name](CASES[name].draw(5), temperature=0.0)


@every
def test_a_temperature_can_be_learned(name: str) -> None:
    """A tensor gives what the number gives, and its gradient is that of finite differences."""
    loss, vectors = CASES[name], CASES[name].draw(6)
    if not loss.tempered:
        pytest.skip("no temperature")
    learned = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    assert float(loss(vectors, learned).detach()) == pytest.approx(float(loss(vectors, 0.5)), rel=1e-12)
    assert torch.autograd.gradcheck(lambda temperature: loss(vectors, temperature), [learned])
    assert abs(float(torch.autograd.grad(loss(vectors, learned), learned)[0])) > 1e-6


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda x: supervised_contrast(x, LABELS, form="mid"), "one of in, out; 'mid' was given"),
        (lambda x: self_guided(x, x.unsqueeze(1), variant="opt4"), "base, opt1, opt2, opt3"),
        (lambda x: triplet(x, x, x, distance="manhattan"), "euclidean, cosine"),
        (lambda x: mined_triplets(x, LABELS, "hardest"), "batch-all, batch-hard, batch-semi-hard"),
    ],
)
def test_an_unknown_choice_lists_the_known_ones(call: Callable[[Tensor], Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        call(torch.ones(6, 4))
