"""The map and the words: golden values on vectors made by hand, and laws over the served model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra serve is not installed")

from isotrope.serving.carrying_words import WordsLeftOut, carried
from isotrope.serving.text_map import duplicates, grouped, named, placed, text_map


def test_a_words_weight_is_what_the_cosine_loses_without_it() -> None:
    first, second = WordsLeftOut.of("red, car"), WordsLeftOut.of("car")
    assert first.variants == (", car", "red,")
    assert second.variants == ()  # nothing would be left
    vectors = np.array([[1, 0], [0.6, 0.8], [0.6, 0.8], [0, 1]], dtype=np.float32)
    found = carried(first, second, vectors)
    assert found["similarity"] == 0.6
    assert found["first"] == [
        {"text": "red", "weight": -0.4},  # without it the texts are equal
        {"text": ", ", "weight": None},
        {"text": "car", "weight": -0.2},
    ]
    assert found["second"] == [{"text": "car", "weight": None}]


@pytest.mark.parametrize(
    "text", ["a b", "  don't stop!  ", "猫が好き", "no-words …", "🍞 bread", "x" * 300, "a " * 100]
)
def test_pieces_put_together_are_the_text(text: str) -> None:
    words = WordsLeftOut.of(text)
    pieces = words.pieces(np.zeros(len(words.spans)))
    assert "".join(piece["text"] for piece in pieces) == text
    assert all(variant.strip() for variant in words.variants)


def test_letters_are_the_words_where_no_blanks_are_written() -> None:
    assert len(WordsLeftOut.of("猫が好き").spans) == 4
    assert len(WordsLeftOut.of("it’s fine").spans) == 2


def test_groups_and_duplicates_of_two_clouds() -> None:
    rng = np.random.default_rng(0)
    centres = np.repeat(np.eye(8)[:2], [6, 4], axis=0)
    vectors = (centres + rng.normal(0, 0.15, centres.shape)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[3] = vectors[1]
    lines = [f"bread number {n}" if n < 6 else f"a boat {n}" for n in range(10)]
    lines[9] = lines[6].upper()
    assert grouped(vectors.astype(float)).tolist() == [0] * 6 + [1] * 4
    groups = np.array([0] * 6 + [1] * 4)
    assert named(lines, groups) == ["number, bread", "boat"]
    found = {tuple(one["lines"]): one for one in duplicates(lines, vectors)}
    assert any({1, 3} <= set(rows) for rows in found)
    assert any({6, 9} <= set(rows) for rows in found)


@pytest.mark.parametrize("count", [2, 3, 5, 6, 30])
def test_points_lie_in_the_unit_circle_and_equal_lines_share_theirs(count: int) -> None:
    vectors = np.random.default_rng(count).normal(size=(count, 16))
    vectors[-1] = vectors[0]
    points = placed(vectors)
    assert points.shape == (count, 2)
    assert np.isfinite(points).all()
    assert np.linalg.norm(points, axis=1).max() <= 1 + 1e-9
    assert np.array_equal(points[0], points[-1])


def test_the_same_lines_give_the_same_map(server: Any) -> None:
    lines = [f"the chef bakes bread {n}" for n in range(5)] + [f"the pilot lands the rocket {n}" for n in range(5)]
    first, again = (server.ask("/map", {"lines": lines}) for _ in range(2))
    assert first.status == 200
    assert first.body == again.body
    assert len(first.body["points"]) == len(first.body["groups"]) == 10
    assert text_map(lines, np.asarray(server.vectors(lines), dtype=np.float32))["groups"] == first.body["groups"]


def test_comparing_a_text_with_itself_is_one_and_order_turns_it_around(server: Any) -> None:
    first, second = "the chef bakes bread", "the sailor steers a boat"
    assert server.ask("/compare", {"first": first, "second": first}).body["similarity"] == 1.0
    there = server.ask("/compare", {"first": first, "second": second}).body
    back = server.ask("/compare", {"first": second, "second": first}).body
    assert there["similarity"] == pytest.approx(back["similarity"], abs=1e-4)
    weights = lambda pieces: [piece["weight"] for piece in pieces if piece["weight"] is not None]  # noqa: E731
    assert weights(there["first"]) == pytest.approx(weights(back["second"]), abs=2e-4)
