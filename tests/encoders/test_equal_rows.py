"""Texts with the same ids: computed once, each in its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.equal_rows import EqualRows


def test_every_text_finds_its_row_and_every_row_its_texts() -> None:
    texts = [[5, 6], [7], [5, 6], [], [7, 8, 9], [7, 8, 1], [5, 6], []]
    flat, lengths = np.concatenate([np.array(text, dtype=np.int64) for text in texts]), np.array([*map(len, texts)])
    equal = EqualRows(flat, lengths, room=2)  # the third id of a text is not read
    assert equal.firsts.tolist() == [0, 1, 3, 4]
    found, place = equal.texts(np.array([3, 0]))
    assert found.tolist() == [4, 5, 0, 2, 6]
    assert place.tolist() == [0, 0, 1, 1, 1]
    every = [equal.texts(np.array([row]))[0].tolist() for row in range(4)]
    assert sorted(text for row in every for text in row) == list(range(len(texts)))


@pytest.mark.parametrize("batch_size", [None, 1, 2])
def test_repeats_run_once_and_have_the_same_bits(
    tiny: Path, topics: list[str], batch_size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = isotrope.load(tiny)
    some = topics[:5]
    alone = encoder.encode(some, batch_size=batch_size)
    rows: list[int] = []
    plain = Encoder.forward
    monkeypatch.setattr(Encoder, "forward", lambda self, tokens: rows.append(len(tokens)) or plain(self, tokens))
    found = encoder.encode([*some, *reversed(some), some[2]], batch_size=batch_size)
    assert sum(rows) == 5
    np.testing.assert_allclose(found[:5], alone, atol=1e-5)
    assert np.array_equal(found[5:10], found[:5][::-1])
    assert np.array_equal(found[10], found[2])


def test_one_who_watches_sees_every_text(tiny: Path, topics: list[str]) -> None:
    encoder = isotrope.load(tiny)
    seen: list[int] = []
    hook = encoder.backbone.register_forward_hook(
        lambda module, inputs, named, output: seen.append(len(named["input_ids"])), with_kwargs=True
    )
    encoder.encode([topics[0], topics[0], topics[1]])
    hook.remove()
    assert sum(seen) == 3
