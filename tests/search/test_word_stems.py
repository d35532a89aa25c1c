"""Stems: which texts have them, what they find, what is marked, and what an index keeps of the choice."""

from __future__ import annotations

import itertools
import json
import zlib
from pathlib import Path

import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.search.index_manifest import CHECK, read_manifest
from isotrope.search.index_place import MANIFEST
from isotrope.search.index_rows import Reading, scan
from isotrope.search.word_stems import SAMPLE, Sample, is_english, stemming

ENGLISH = [
    "The cats of the Cancelling office slept.",
    "A dog was barking at the gate.",
    "Orders are sent from this city.",
]
OTHERS = {
    "German": "Der Hund und die Katze schlafen, und das Haus ist nicht mit dem Garten verbunden.",
    "Dutch": "Het is een mooie dag om met de hond in het park te wandelen, en we zijn blij.",
    "Finnish": "Helsinki on kaunis kaupunki, ja he ovat talossa; hän on opettaja.",
    "Hungarian": "A kutya is a házban van, a macska is ott alszik, és ez a könyv is az enyém.",
    "Danish": "Det er en god dag for at gå i byen, og vi skal have kage i dag.",
    "Vietnamese": "Tôi không thể nói điều đó, nhưng nó có thể là một ngày đẹp trời.",
    "Chinese": "我喜欢你。",
    "codes": "X-100 X-200 Z",
}


@pytest.fixture
def english(tmp_path: Path) -> Path:
    path = tmp_path / "english.txt"
    path.write_text("\n".join(ENGLISH) + "\n", encoding="utf-8")
    return path


def found(place: Path, query: str) -> list[str]:
    with isotrope.open_index(place) as index:
        return [hit.text for hit in index.search(query, mode="lexical")[0]]


def test_only_english_is_taken_for_english() -> None:
    assert is_english(ENGLISH)
    assert [name for name, text in OTHERS.items() if is_english([text])] == []
    assert not is_english([])
    assert not is_english([ENGLISH[0], *OTHERS.values()])  # a sentence among others


def test_another_form_of_a_word_finds_and_is_marked(tiny: Path, english: Path, tmp_path: Path) -> None:
    made = isotrope.index(tiny, english, tmp_path / "index")
    assert made.stemmer == made.to_dict()["stemmer"] == "english"
    with isotrope.open_index(tmp_path / "index") as index:
        assert index.info()["stemmer"] == "english"
        (hit,) = index.search("a cat that was cancelled", 1, "lexical")[0]
    assert [hit.text[start:end] for start, end in hit.marks] == ["cats", "Cancelling"]
    assert hit.bm25 == pytest.approx(hit.score)


def test_hybrid_gives_a_row_that_only_vectors_found_the_same_weight(tiny: Path, english: Path, tmp_path: Path) -> None:
    isotrope.index(tiny, english, tmp_path / "index")
    with isotrope.open_index(tmp_path / "index") as index:
        words = {hit.line: hit.bm25 for hit in index.search("cat", mode="lexical")[0]}
        assert words
        assert {hit.line: hit.bm25 for hit in index.search("cat")[0] if hit.bm25} == pytest.approx(words)


def test_other_languages_and_none_are_compared_as_they_are(tiny: Path, english: Path, tmp_path: Path) -> None:
    isotrope.index(tiny, english, tmp_path / "plain", stemmer="none")
    assert found(tmp_path / "plain", "cat") == []
    assert found(tmp_path / "plain", "cats") == ENGLISH[:1]
    german = tmp_path / "german.txt"
    german.write_text(OTHERS["German"] + "\nZwei Hunde und der Mann.\n", encoding="utf-8")
    assert isotrope.index(tiny, german, tmp_path / "german").stemmer == "none"
    assert isotrope.index(tiny, german, tmp_path / "forced", stemmer="english").stemmer == "english"


def test_passages_and_their_whole_text_have_the_same_stems(tiny: Path, tmp_path: Path) -> None:
    text = tmp_path / "long.txt"
    text.write_text(" ".join(ENGLISH) + "\n", encoding="utf-8")
    isotrope.index(tiny, text, tmp_path / "index", passages=8)
    with isotrope.open_index(tmp_path / "index") as index:
        (hit,) = index.search("dogs barked", mode="lexical")[0]
    assert "dog was barking" in hit.text


def test_added_rows_follow_the_index_and_an_update_decides_again(tiny: Path, english: Path, tmp_path: Path) -> None:
    place, german = tmp_path / "index", tmp_path / "german.txt"
    german.write_text(OTHERS["German"] + "\n", encoding="utf-8")
    isotrope.index(tiny, english, place)
    assert isotrope.index(tiny, german, place, add=True).stemmer == "english"
    assert found(place, "cat") == ENGLISH[:1]
    for change in ({}, {"add": True}):
        with pytest.raises(InputError, match=r"stemmer english.*not none.*update"):
            isotrope.index(tiny, german if change else english, place, stemmer="none", **change)
    assert isotrope.index(tiny, english, place, stemmer="none", update=True).stemmer == "none"
    assert found(place, "cat") == []
    assert isotrope.index(tiny, english, place, update=True).stemmer == "english"


def test_an_index_of_before_stays_readable_and_is_searched_by_whole_words(
    tiny: Path, english: Path, tmp_path: Path
) -> None:
    place = tmp_path / "index"
    isotrope.index(tiny, english, place, stemmer="none")
    facts = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
    del facts["stemmer"], facts[CHECK]
    facts[CHECK] = zlib.crc32(json.dumps(facts, sort_keys=True).encode())
    (place / MANIFEST).write_text(json.dumps(facts), encoding="utf-8")
    assert read_manifest(place).stemmer == "none"
    assert found(place, "cats") == ENGLISH[:1]
    assert found(place, "cat") == []


def test_an_unknown_stemmer_is_refused(tiny: Path, english: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Unknown stemmer 'englisch'.*english"):
        isotrope.index(tiny, english, tmp_path / "index", stemmer="englisch")
    assert not (tmp_path / "index").exists()


def test_the_sample_is_spread_over_all_texts_and_small(tmp_path: Path) -> None:
    sample = Sample()
    for number in range(10_000):
        sample.see(str(number))
    numbers = [int(text) for text in sample.texts]
    assert SAMPLE / 2 <= len(numbers) <= SAMPLE
    assert len({second - first for first, second in itertools.pairwise(numbers)}) == 1
    assert numbers[-1] > 9_000
    text = tmp_path / "mixed.txt"  # English comes first only
    text.write_text("\n".join([*ENGLISH, *(OTHERS["German"] for _ in range(500))]) + "\n", encoding="utf-8")
    assert not is_english(scan([text], Reading()).sample)


def test_a_stem_is_the_library_s() -> None:
    stem = stemming("english")
    assert [stem(word) for word in ("cancelled", "ponies", "k8s", "東")] == ["cancel", "poni", "k8s", "東"]
    assert stemming("none")("cats") == "cats"
