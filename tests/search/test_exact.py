"""Exact search with vectors stored next to the text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.search.exact import index_file


def test_a_sentence_finds_itself_first(tiny: Path, sentences: Path) -> None:
    encoder = isotrope.load(tiny)
    index = index_file(encoder, sentences)
    for row in (0, 123, 399):
        (hits,) = index.search([index.texts[row]], top=3)
        assert hits[0].text == index.texts[row]
        assert hits[0].score == pytest.approx(1, abs=1e-5)
        assert hits[0].line == index.lines[row]
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_results_equal_a_full_sort_by_cosine(tiny: Path, sentences: Path) -> None:
    encoder = isotrope.load(tiny)
    index = index_file(encoder, sentences)
    cosines = encoder.similarity("the pilot plays a sonata", index.texts)[0]
    (hits,) = index.search(["the pilot plays a sonata"], top=10)
    assert [hit.score for hit in hits] == pytest.approx(np.sort(cosines)[::-1][:10].tolist(), abs=1e-5)


def test_vectors_are_made_once_and_again_when_text_or_model_changes(
    tiny: Path, sentences: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = isotrope.load(tiny)
    encoded: list[int] = []
    plain = type(encoder).encode

    def counting(self: isotrope.Encoder, texts: object, *rest: object, **named: object) -> object:
        encoded.append(len(texts))  # type: ignore[arg-type]
        return plain(self, texts, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(encoder), "encode", counting)
    index_file(encoder, sentences)
    index_file(encoder, sentences)
    assert encoded == [400]
    assert sentences.with_name("sentences.txt.isotrope.npz").is_file()
    sentences.write_text(sentences.read_text(encoding="utf-8") + "one more sentence\n", encoding="utf-8")
    assert len(index_file(encoder, sentences).texts) == 401
    index_file(isotrope.load(tiny, pooling="cls"), sentences)
    assert encoded == [400, 401, 401]


def test_a_damaged_cache_is_ignored(tiny: Path, sentences: Path) -> None:
    sentences.with_name("sentences.txt.isotrope.npz").write_bytes(b"PK\x03\x04 not an archive")
    assert len(index_file(isotrope.load(tiny), sentences).texts) == 400


def test_equal_texts_are_given_once(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("the chef\nthe chef\nthe sailor\n", encoding="utf-8")
    (hits,) = index_file(isotrope.load(tiny), file).search(["the chef"], top=5)
    assert [hit.text for hit in hits] == ["the chef", "the sailor"]


def test_empty_queries_and_no_results_are_refused(tiny: Path, sentences: Path) -> None:
    index = index_file(isotrope.load(tiny), sentences)
    with pytest.raises(InputError, match="empty"):
        index.search(["  "])
    with pytest.raises(InputError, match="at least 1"):
        index.search(["x"], top=0)
