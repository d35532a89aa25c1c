"""The index that a search keeps next to a text: one for each model, brought up to date line by line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.search.kept_index import kept_index


def lines(path: Path) -> list[str]:
    return [" ".join(line.split()) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("mode", ["hybrid", "dense"])
def test_a_sentence_finds_itself_first(tiny: Path, sentences: Path, mode: str) -> None:
    index, texts = kept_index(isotrope.load(tiny), sentences), lines(sentences)
    assert len(index) == 400
    for row in (0, 123, 399):
        text = [each for each in texts if each][row]
        (hits,) = index.search([text], top=3, mode=mode)
        assert hits[0].text == text
        assert hits[0].cosine == pytest.approx(1, abs=1e-5)
        assert texts[hits[0].line - 1] == text
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_dense_results_equal_a_full_sort_by_cosine(tiny: Path, sentences: Path) -> None:
    encoder, texts = isotrope.load(tiny), [*dict.fromkeys(line for line in lines(sentences) if line)]
    cosines = encoder.similarity("the pilot plays a sonata", texts)[0]
    (hits,) = kept_index(encoder, sentences).search("the pilot plays a sonata", top=10, mode="dense")
    assert [hit.score for hit in hits] == pytest.approx(np.sort(cosines)[::-1][:10].tolist(), abs=1e-5)


def test_only_new_lines_are_encoded_and_each_model_keeps_its_own_index(
    tiny: Path, sentences: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, other = isotrope.load(tiny), isotrope.load(tiny, pooling="cls")
    encoded: list[int] = []
    plain = type(encoder).encode

    def counting(self: isotrope.Encoder, texts: object, *rest: object, **named: object) -> object:
        encoded.append(len(texts))  # type: ignore[arg-type]
        return plain(self, texts, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(encoder), "encode", counting)
    different = len({line for line in lines(sentences) if line})
    for one in (encoder, encoder, other, encoder, other):
        kept_index(one, sentences)
    assert encoded == [different, different]
    text = sentences.read_text(encoding="utf-8")
    sentences.write_text("a line before all others\n" + text, encoding="utf-8")
    index = kept_index(encoder, sentences)
    assert (len(index), encoded[2:]) == (401, [1])
    assert index.search("a line before all others", top=1)[0][0].line == 1
    encoded.clear()
    sentences.write_text(text, encoding="utf-8")
    assert (len(kept_index(encoder, sentences)), encoded) == (400, [])


def test_a_damaged_index_is_made_again(tiny: Path, sentences: Path) -> None:
    encoder = isotrope.load(tiny)
    kept_index(encoder, sentences)
    for name, content in (
        ("rows.arrow", b"not Arrow"),
        ("vectors.npy", b""),
        ("index.json", b"{"),
        ("words.json", b""),
    ):
        (file,) = sentences.with_name("sentences.txt.isotrope").rglob(name)
        file.write_bytes(content)
        assert len(kept_index(encoder, sentences)) == 400
        assert kept_index(encoder, sentences).search("the pilot", top=1)[0]


def test_equal_texts_are_given_once(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("the chef\n" * 300 + "the sailor\n", encoding="utf-8")
    (hits,) = kept_index(isotrope.load(tiny), file).search(["the chef"], top=5)
    assert [(hit.text, hit.line) for hit in hits] == [("the chef", 1), ("the sailor", 301)]


def test_a_folder_that_cannot_be_written_is_no_obstacle(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))
    sentences.with_name("sentences.txt.isotrope").write_text("in the way", encoding="utf-8")
    assert len(kept_index(isotrope.load(tiny), sentences)) == 400
    assert list((tmp_path / "cache").rglob("index.json"))


def test_empty_queries_and_no_results_are_refused(tiny: Path, sentences: Path) -> None:
    index = kept_index(isotrope.load(tiny), sentences)
    for query, said in (("  ", "empty"), ("x" * 100_001, "longer than 100,000")):
        with pytest.raises(InputError, match=said):
            index.search([query])
    with pytest.raises(InputError, match="at least 1"):
        index.search(["x"], top=0)
    with pytest.raises(InputError, match="Unknown mode 'dens'; did you mean 'dense'"):
        index.search(["x"], mode="dens")
