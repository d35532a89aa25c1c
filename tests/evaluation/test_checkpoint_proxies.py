"""Proxies of a checkpoint: each against a naive computation, and what degenerate encoders get."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.checkpoint_proxies import (
    NAMES,
    agreement,
    measure_proxies,
    noisy_vectors,
    other_view,
    pair_cosines,
    pseudo_sts,
    spread,
)
from isotrope.evaluation.proxy_material import STRENGTHS, make_edits, make_material


@pytest.fixture
def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(7, 4)), rng.normal(size=(7, 4)), rng.normal(size=(9, 4))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def test_other_view_is_the_mrr_among_partners_and_distractors(drawn: tuple[np.ndarray, ...]) -> None:
    first, second, others = drawn
    total = 0.0
    for a, b in zip(first, second, strict=True):
        better = sum(cosine(a, c) > cosine(a, b) for c in [*second, *others])
        total += 1 / (1 + better)
    assert other_view(first, second, others) == pytest.approx(total / 7)
    assert other_view(first, first, others) == 1
    constant = other_view(np.ones((5, 3)), np.ones((5, 3)), np.ones((4, 3)))
    assert constant == pytest.approx(1 / 5)  # in the middle of nine
    broken = np.full((5, 3), np.nan)
    assert other_view(broken, broken, broken) == pytest.approx(1 / 10)


def test_spread_is_minus_alignment_minus_uniformity(drawn: tuple[np.ndarray, ...]) -> None:
    first, second, others = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in drawn)
    align = np.mean([((a - b) ** 2).sum() for a, b in zip(first, second, strict=True)])
    close = [np.exp(-2 * ((a - b) ** 2).sum()) for i, a in enumerate(others) for b in others[:i]]
    assert spread(*drawn) == pytest.approx(-(align + np.log(np.mean(close))), abs=1e-5)


def test_pair_cosines_and_agreement(drawn: tuple[np.ndarray, ...]) -> None:
    vectors = drawn[2]
    pairs = np.array([[0, 1], [2, 5], [8, 3], [4, 4]])
    found = pair_cosines(vectors, pairs)
    assert found == pytest.approx([cosine(vectors[a], vectors[b]) for a, b in pairs])
    assert agreement(found, np.exp(found)) == pytest.approx(1)
    assert agreement(found, -found) == pytest.approx(-1)
    assert agreement(found, np.zeros(4)) == 0  # nothing is ranked


def test_pseudo_sts_is_perfect_where_the_angle_is_the_strength() -> None:
    strengths = np.array([0.1, 0.5, 0.25, 0.75])
    originals = np.tile([1.0, 0.0], (4, 1))
    copies = np.stack([np.cos(strengths), np.sin(strengths)], axis=1)
    assert pseudo_sts(originals, copies, strengths) == pytest.approx(1)
    assert pseudo_sts(originals, copies, -strengths) == pytest.approx(-1)
    assert pseudo_sts(originals, originals, strengths) == 0


def test_edits_replace_as_many_words_as_they_say() -> None:
    texts = [" ".join(f"w{number}x{place}" for place in range(12)) for number in range(6)]
    edits = make_edits(texts, np.random.default_rng(0))
    assert len(edits.copies) == len(STRENGTHS) * 6
    for original, copy, strength in zip(edits.originals, edits.copies, edits.strengths, strict=True):
        a, b = original.split(), copy.split()
        assert len(a) == len(b)
        assert sum(x != y for x, y in zip(a, b, strict=True)) == round(strength * 12)


def test_dropout_vectors_hang_on_the_seed_and_leave_the_encoder_as_it_was(tiny: Path, topics: list[str]) -> None:
    encoder = isotrope.load(tiny, device="cpu")
    before = torch.random.get_rng_state()
    one, same, other = (noisy_vectors(encoder, topics[:20], seed) for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.allclose(one, other)
    assert not any(part.training for part in encoder.modules())
    assert torch.equal(before, torch.random.get_rng_state())


def test_all_proxies_of_an_encoder(tiny: Path, topics: list[str]) -> None:
    encoder, material = isotrope.load(tiny, device="cpu"), make_material(topics[:120])
    assert not set(material.distractors) & set(material.second)
    found = measure_proxies(encoder, material)
    assert set(found.values) == set(NAMES) - {"step_agreement"}
    again = measure_proxies(encoder, material, found.cosines)
    assert again.values["step_agreement"] == pytest.approx(1)  # it stood still
    assert {name: again.values[name] for name in found.values} == found.values
    assert all(np.isfinite(value) for value in again.values.values())


def test_too_few_sentences_are_refused() -> None:
    with pytest.raises(InputError, match="1 sentences of six words"):
        make_material(["one two three four five six", "too short"])


def test_the_table_of_the_recipe_is_regret_below_the_best_checkpoint() -> None:
    recipe = runpy.run_path(str(Path(__file__).parents[2] / "recipes" / "development" / "proxies.py"))
    tests = [40.0, 50.0, 60.0, 58.0]  # the first is the start, which cannot be chosen
    good, bad, dev = [9.0, 0.1, 0.3, 0.2], [0.0, 3.0, 1.0, 2.0], [0.0, 1.0, 3.0, 2.0]
    trail = [
        {"step": step, "good": a, "bad": b, "dev": c, "tests": test}
        for step, (a, b, c, test) in enumerate(zip(good, bad, dev, tests, strict=True))
    ]
    found = recipe["choices"](trail)
    assert found["good"] == pytest.approx((1, 0))
    assert found["bad"] == pytest.approx((-1, 10))
    assert found["dev"] == pytest.approx((1, 0))
    assert found["last"] == pytest.approx((0.5, 2))
    assert found["any"] == pytest.approx((0, 4))
    written = recipe["table"]([{"trail": trail, "method": "simcse", "text": "wiki.txt"}] * 2)
    assert "| last | +0.50 | 2.00 | 2.00 | 2.00 |" in written
    assert written.index("| good |") < written.index("| bad |")
