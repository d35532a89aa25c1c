"""Hard negatives: near, never right by the data, the same for one seed, and counted where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.errors import InputError
from isotrope.measures import nearest_rows
from isotrope.measures.nearest_rows import top_rows
from isotrope.search import mining


@pytest.fixture(scope="module")
def encoder(tiny: Path) -> isotrope.Encoder:
    return isotrope.load(tiny)


@pytest.fixture(scope="module")
def pairs(topics: list[str]) -> list[tuple[str, str]]:
    """Every third anchor has two positives, and every fifth positive is an anchor too."""
    made = [(topics[i], topics[i + 1]) for i in range(0, 120, 2)]
    made += [(topics[i], f"{topics[i + 1]} again") for i in range(0, 120, 6)]
    return made + [(topics[i + 1], topics[i + 300]) for i in range(0, 120, 10)]


def ranked(encoder: isotrope.Encoder, anchor: str, pairs: list[tuple[str, str]]) -> list[tuple[str, float]]:
    """The slow way: every other text that stands second in some pair, the nearest first."""
    partners = {b for a, b in pairs if a == anchor} | {a for a, b in pairs if b == anchor} | {anchor}
    others = [text for text in dict.fromkeys(b for _, b in pairs) if text not in partners]
    scores = encoder.similarity(anchor, others)[0]
    return sorted(zip(others, scores.tolist(), strict=True), key=lambda found: -found[1])


def test_a_negative_stands_in_the_window_of_ranks(encoder: isotrope.Encoder, pairs: list[tuple[str, str]]) -> None:
    found = isotrope.mine(pairs, encoder, first=3, last=7)
    assert [triple[:2] for triple in found.triples] == pairs
    ranks = []
    for anchor, _, negative in found.triples:
        others = ranked(encoder, anchor, pairs)
        window = [text for text, score in others if others[6][1] - 1e-5 <= score <= others[2][1] + 1e-5]
        assert negative in window
        ranks.append([text for text, _ in others].index(negative))
    assert {2, 3, 4, 5, 6} <= set(ranks)  # all of the window has its turn


def test_no_partner_of_an_anchor_is_its_negative(encoder: isotrope.Encoder, pairs: list[tuple[str, str]]) -> None:
    found = isotrope.mine(pairs, encoder, first=1, last=3)
    known = set(pairs) | {(b, a) for a, b in pairs}
    assert not any((anchor, negative) in known or anchor == negative for anchor, _, negative in found.triples)


def test_with_a_margin_no_negative_comes_near_the_positive(
    encoder: isotrope.Encoder, pairs: list[tuple[str, str]]
) -> None:
    margin = 0.01
    found = isotrope.mine(pairs, encoder, last=20, margin=margin)
    kept = {triple[:2]: triple[2] for triple in found.triples}
    assert 0 < found.too_near < len(pairs)
    assert len(found.triples) + found.too_near == len(pairs)
    for anchor, positive in pairs:
        own = float(encoder.similarity(anchor, positive)[0, 0])
        window = ranked(encoder, anchor, pairs)[:20]
        if (anchor, positive) in kept:
            assert dict(window)[kept[anchor, positive]] <= own - margin + 1e-5
        else:
            assert all(score > own - margin - 1e-5 for _, score in window)
    assert found.negative_score < found.positive_score - margin


def test_filled_pairs_have_a_random_text_that_is_no_partner(
    encoder: isotrope.Encoder, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hard = isotrope.mine(pairs, encoder, last=20, margin=0.01)
    found = isotrope.mine(pairs, encoder, last=20, margin=0.01, fill=True)
    assert [triple[:2] for triple in found.triples] == pairs  # in the order of the file
    assert set(hard.triples) < set(found.triples)
    assert found.filled == len(pairs) - len(hard.triples) > 2
    assert (found.too_near, found.negative_score) == (hard.too_near, hard.negative_score)
    known = set(pairs) | {(b, a) for a, b in pairs}
    assert not any((anchor, negative) in known or anchor == negative for anchor, _, negative in found.triples)
    drawn = {negative for *pair, negative in found.triples if (*pair, negative) not in set(hard.triples)}
    assert len(drawn) > 1
    monkeypatch.setattr(mining, "QUERIES", 7)
    assert isotrope.mine(pairs, encoder, last=20, margin=0.01, fill=True).triples == found.triples


def test_every_text_that_may_be_drawn_is(encoder: isotrope.Encoder) -> None:
    """The sea has two positives and five other texts, fewer than the window begins with; the others have six."""
    rows = [("the sea", "a wave"), ("the sea", "a tide"), *((f"the chef {n}", f"a meal {n}") for n in range(5))]
    negatives = set()
    for seed in range(40):
        found = isotrope.mine(rows, encoder, first=6, last=6, fill=True, seed=seed)
        assert (len(found.triples), found.filled, found.too_few) == (7, 2, 2)
        negatives |= {negative for anchor, _, negative in found.triples if anchor == "the sea"}
    assert negatives == {f"a meal {n}" for n in range(5)}
    alone = isotrope.mine([*rows, *(("the sea", f"a meal {n}") for n in range(5))], encoder, first=6, last=6, fill=True)
    assert alone.too_few > alone.filled  # the sea is a partner of every text: there is none to draw


def test_one_seed_draws_alike_whatever_the_blocks_and_another_seed_does_not(
    encoder: isotrope.Encoder, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = isotrope.mine(pairs, encoder, seed=1)
    monkeypatch.setattr(mining, "QUERIES", 7)
    monkeypatch.setattr(nearest_rows, "BLOCK", 11)
    assert isotrope.mine(pairs, encoder, seed=1).triples == first.triples
    assert isotrope.mine(pairs, encoder, seed=2).triples != first.triples


def test_the_ranks_are_those_of_a_full_sort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_rows, "BLOCK", 8)
    queries, vectors = (torch.randn(rows, 5, generator=torch.Generator().manual_seed(rows)) for rows in (6, 50))
    scores, rows = top_rows(queries, vectors, 9)
    expected = np.argsort(-(queries @ vectors.T).numpy(), axis=1)[:, :9]
    assert np.array_equal(rows.numpy(), expected)
    assert torch.allclose(scores, (queries @ vectors.T).gather(1, rows))
    assert top_rows(queries, vectors[:3], 9)[0].shape == (6, 3)


def test_what_gives_no_triple_is_counted(encoder: isotrope.Encoder) -> None:
    many = [(f"the chef {number}", f"the sailor {number}") for number in range(12)]
    found = isotrope.mine([*many, ("", "x"), ("y", " "), *many[:3]], encoder, first=11, last=11)
    assert (found.pairs, found.empty, found.duplicates, found.too_few) == (17, 2, 3, 0)
    assert len(found.triples) == 12
    lonely = isotrope.mine(
        [*many, *[("the chef 0", f"the boat {number}") for number in range(3)]], encoder, first=14, last=14
    )
    assert lonely.too_few == 4  # the chef with four positives has eleven other texts
    assert len(lonely.triples) == 11
    with pytest.raises(InputError, match=r"none of the 12 pairs has a candidate of rank 12 to 20.*lower first"):
        isotrope.mine(many, encoder, first=12, last=20)
    with pytest.raises(InputError, match="lower margin"):
        isotrope.mine(many, encoder, margin=1.9)


def test_what_is_written_is_read_as_triples(
    encoder: isotrope.Encoder, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    source = tmp_path / "pairs.csv"
    source.write_text("query,answer\n" + "\n".join(f"{a},{b}" for a, b in pairs) + "\n", encoding="utf-8")
    found = isotrope.mine(source, encoder, tmp_path / "triples.tsv")
    assert [record.texts for record in read(tmp_path / "triples.tsv", record_type_named("triples"))] == found.triples


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"first": 0}, "window of ranks"),
        ({"first": 9, "last": 8}, "window of ranks"),
        ({"margin": -0.1}, "difference of cosines"),
        ({"margin": float("nan")}, "difference of cosines"),
        ({"output": "triples.jsonl"}, "written as .tsv"),
        ({"columns": ["a"]}, "pairs"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_encoded(
    settings: dict[str, object], said: str, tmp_path: Path
) -> None:
    source = tmp_path / "pairs.tsv"
    source.write_text("a\tb\nx\ty\n")
    with pytest.raises(InputError, match=said):
        isotrope.mine(source, "no such model", **settings)  # type: ignore[arg-type]


def test_no_pairs_are_refused(encoder: isotrope.Encoder) -> None:
    with pytest.raises(InputError, match="no pairs found"):
        isotrope.mine([("", "")], encoder)
