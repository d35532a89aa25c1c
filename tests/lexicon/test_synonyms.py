"""WordNet's files → a table of words → a table of ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.lexicon.relations import Related, related_words
from isotrope.lexicon.synonyms import read_synonyms, tokenize_synonyms
from isotrope.lexicon.wordnet import WORDNET, Entry, Synset
from isotrope.views.edits import Substitute

LICENCE = "  1 This software and database is being provided to you, the LICENSEE\n  2 0000 words of licence\n"
MANY = [f"word{number}" for number in range(16)]
DATA = {
    "noun": [
        '00000001 05 n 03 dog 0 domestic_dog 0 Canis_familiaris 0 001 @ 00000002 n 0000 | a pet; "the dog barked"',
        "00000002 06 n 02 andiron 0 dog 3 000 | a metal support",
        "00000003 10 n 02 Associate_in_Nursing 0 AN 0 000 | a degree",
        f"00000004 10 n 10 {' 0 '.join(MANY)} 0 000 | sixteen words",
        "00000005 10 n 01 hermit 0 000 | alone",
    ],
    "verb": ["00000001 38 v 02 chase 0 dog 0 001 ! 00000009 v 0101 01 + 08 00 | go after"],
    "adj": ["00000001 00 s 02 handy 0 ready_to_hand(p) 0 000 | easy to reach"],
    "adv": ["00000001 02 r 02 quickly 0 rapidly 0 000 | with speed"],
}
INDEX = {
    "noun": [
        "an n 1 0 1 0 00000003",
        "andiron n 1 1 @ 1 0 00000002",
        "associate_in_nursing n 1 0 1 0 00000003",
        "dog n 2 2 @ ~ 2 1 00000001 00000002",
        "domestic_dog n 1 1 @ 1 0 00000001",
        "hermit n 1 0 1 0 00000005",
        *(f"{word} n 1 0 1 0 00000004" for word in MANY),
    ],
    "verb": ["chase v 1 0 1 1 00000001", "dog v 1 0 1 0 00000001"],
    "adj": ["handy a 1 0 1 0 00000001", "ready_to_hand a 1 0 1 0 00000001"],
    "adv": ["quickly r 1 0 1 1 00000001", "rapidly r 1 0 1 1 00000001"],
}


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    for table, files in (("data", DATA), ("index", INDEX)):
        for part, lines in files.items():
            (tmp_path / f"{table}.{part}").write_text(
                LICENCE + "".join(f"{line}  \n" for line in lines), encoding="utf-8"
            )
    return tmp_path


def test_the_first_sense_of_each_part_of_speech(wordnet):
    table = read_synonyms(wordnet)
    assert table["dog"] == ["Canis familiaris", "chase", "domestic dog"]
    assert table["andiron"] == ["dog"]
    assert table["quickly"] == ["rapidly"]


def test_all_senses(wordnet):
    assert read_synonyms(wordnet, senses=None)["dog"] == ["Canis familiaris", "andiron", "chase", "domestic dog"]


def test_blanks_notes_and_hexadecimal_counts_are_read(wordnet):
    table = read_synonyms(wordnet)
    assert table["ready to hand"] == ["handy"]
    assert table["handy"] == ["ready to hand"]
    assert table["word3"] == sorted({*MANY} - {"word3"})


def test_names_and_symbols_are_no_everyday_words_and_lonely_ones_have_no_entry(wordnet):
    assert {"an", "AN", "associate in nursing", "hermit"}.isdisjoint(read_synonyms(wordnet))


@pytest.mark.parametrize("name", ["data.noun", "index.adv"])
def test_a_missing_file_names_the_package(wordnet, name):
    (wordnet / name).unlink()
    with pytest.raises(InputError, match=rf"{name} is missing.*wordnet-base"):
        read_synonyms(wordnet)


@pytest.mark.parametrize(
    ("name", "line"), [("data.verb", "no synset"), ("data.verb", "1 2 v zz a 0"), ("index.verb", "dog v")]
)
def test_a_file_of_something_else_is_named_with_its_line(wordnet, name, line):
    (wordnet / name).write_text(f"{LICENCE}{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"{name}:3: no line of a WordNet"):
        read_synonyms(wordnet)


@pytest.mark.skipif(not WORDNET.is_dir(), reason="the package wordnet-base is not on this machine")
def test_the_real_wordnet():
    table = read_synonyms(WORDNET)
    assert len(table) > 50_000
    assert table["big"] == ["large"]
    assert "an" not in table


# ---- in ids


def spelled(tokenizer, table: dict[str, list[str]]) -> dict[str, list[str]]:
    entries = tokenize_synonyms(table, tokenizer)
    decode = tokenizer.tokenizer.decode
    return {
        decode(np.frombuffer(key, dtype=np.int32)): [decode(value) for value in values]
        for key, values in entries.items()
    }


def test_what_cannot_be_used_is_left_out(tokenizer):
    table = {
        "dog": ["hound", "北", "", "Dog", "old fox"],
        "domestic dog": ["cat"],
        "box-jug": ["cat"],
        "北": ["cat"],
        "fox": ["Fox"],
        "": ["a"],
    }
    assert spelled(tokenizer, table) == {"dog": ["hound", "old fox"]}


def test_a_key_of_several_words_is_left_out_however_it_is_written(byte_tokenizer):
    assert spelled(byte_tokenizer, {"box-jug": ["cat"], "cat's": ["dog"], "cat": ["box-jug"]}) == {
        "cat": ["box-jug"],
        " cat": [" box-jug"],
    }


def test_words_that_look_alike_to_the_tokenizer_share_an_entry(tokenizer):
    assert spelled(tokenizer, {"dog": ["hound"], "DOG": ["cat"]}) == {"dog": ["hound", "cat"]}


def test_an_empty_table_replaces_nothing(tokenizer):
    assert tokenize_synonyms({}, tokenizer) == {}


def test_the_first_word_of_a_text_and_later_ones_are_found_and_written_alike(byte_tokenizer):
    edit = Substitute.of(byte_tokenizer, 1, {"dog": ["old fox"], "cat": ["stone"]})
    edited = edit(byte_tokenizer.flat(["dog sees cat, dog"])[0], np.random.default_rng(0))
    assert edited.tolist() == byte_tokenizer.flat(["old fox sees stone, old fox"])[0].tolist()


def test_blank_lines_are_passed_over_and_bytes_that_are_no_text_are_named(wordnet):
    for name in ("data.noun", "index.noun"):
        with (wordnet / name).open("ab") as more:
            more.write(b"\n  \n")
    assert read_synonyms(wordnet)["andiron"] == ["dog"]
    lines = (wordnet / "data.verb").read_text(encoding="utf-8").count("\n")
    with (wordnet / "data.verb").open("ab") as more:
        more.write(b"\xff\xfe\n")
    with pytest.raises(InputError, match=rf"data.verb:{lines + 1}: not UTF-8"):
        read_synonyms(wordnet)


def test_a_synonym_is_no_hypernym_and_no_antonym_besides():
    above, against = Synset(("hound", "animal"), (), (), ()), Synset(("hound", "cat"), (), (), ())
    dog = Synset(("dog", "hound"), ((0, "1"),), (("dog", 0, "2", 0), ("dog", 0, "2", 1)), ())

    class Three:
        def entries(self, senses):
            return [Entry(0, "dog", [dog])]

        def find(self, part, offset):
            return {"1": above, "2": against}[offset]

    assert related_words(Three())[0, "dog"] == Related(("hound",), ("animal",), ("cat",))
