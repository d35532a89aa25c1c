"""WordNet's relations, inflection and parts of speech → sentences with synonyms and antonyms, in ids, with their
labels.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from isotrope.encoders.fresh import fresh_encoder
from isotrope.errors import InputError
from isotrope.lexicon.english import WORD
from isotrope.lexicon.inflection import EnglishInflection, with_ending, with_s
from isotrope.lexicon.relations import related_words
from isotrope.lexicon.replacements import knows_words, make_lexicon, open_lexicon
from isotrope.lexicon.spelling import Spelling
from isotrope.lexicon.word_table import PARTS, WordTable
from isotrope.lexicon.wordnet import ADJECTIVE, ADVERB, NOUN, VERB, WordNet
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.masking import label_tokens
from isotrope.views.meaning_changes import KEEPING, draw_antonyms, draw_synonyms

TEXTS = [
    "the sailors saw an old boat and walked quickly to the warm house",
    "a cook bakes bread in the kitchen day and night",
    "they cook it on the bigger boat , with a café crème near it",
    "of the and to",
    "",
    "the loud person plays",
]


@pytest.fixture(scope="module")
def table(small_wordnet: Path) -> WordTable:
    return make_lexicon(small_wordnet)


@pytest.fixture(scope="module")
def pieces() -> TextTokenizer:
    """Pieces of words, few enough that many words are several."""
    lines = [*TEXTS, "quick brown foxes jump over lazy dogs with fuzzy vexing waltz"]
    return fresh_encoder(lines, vocabulary=120, layers=1, width=8, heads=1, max_length=32).text_tokenizer


def sequences(tokenizer: TextTokenizer, texts: list[str]) -> list[np.ndarray]:
    flat, lengths = tokenizer.flat(texts)
    return np.split(flat, lengths.cumsum()[:-1])


def slot(table: WordTable, text: str, word: str) -> tuple[str, set[str], set[str]]:
    """Part of speech of a word in a text, what keeps the meaning, what turns it."""
    words = WORD.findall(text)
    numbers = np.array([table.number.get(each, len(table.words)) for each in words])
    found = table.slots(numbers, np.zeros_like(numbers))[words.index(word)]
    if found < 0:
        return "none", set(), set()
    kept, turned = (
        {table.words[w] for name in names for w in _listed(table, name, found)}
        for names in (KEEPING[:2], ("antonyms",))
    )
    return ("noun", "verb", "adj", "adv")[found % PARTS], kept, turned


def _listed(table: WordTable, name: str, slot: int) -> list[int]:
    choices = table.choices[name]
    return choices.words[choices.starts[slot] : choices.starts[slot + 1]].tolist()


def test_relations_are_those_of_the_word_itself(small_wordnet: Path) -> None:
    found = related_words(WordNet(small_wordnet))
    assert found[ADJECTIVE, "big"].synonyms == ("large",)
    assert found[ADJECTIVE, "big"].antonyms == ("little",)
    assert found[ADJECTIVE, "large"].antonyms == ()  # its synonym's
    assert found[NOUN, "boat"].hypernyms == ("thing",)
    assert found[VERB, "land"].antonyms == ("take off",)


@pytest.mark.parametrize(
    ("word", "ending", "form"),
    [
        ("walk", "ed", "walked"), ("make", "ing", "making"), ("try", "ed", "tried"), ("try", "ing", "trying"),
        ("stop", "ed", "stopped"), ("visit", "ing", "visiting"), ("die", "ing", "dying"), ("see", "ing", "seeing"),
        ("free", "ed", "freed"), ("fix", "ing", "fixing"), ("play", "ed", "played"), ("large", "er", "larger"),
        ("hot", "est", "hottest"), ("happy", "er", "happier"),
    ],
)  # fmt: skip
def test_endings(word: str, ending: str, form: str) -> None:
    assert with_ending(word, ending) == form


def test_inflection_by_rule_and_by_exception(small_wordnet: Path) -> None:
    forms = EnglishInflection(WordNet(small_wordnet)).forms
    assert [with_s(word) for word in ("boat", "box", "city", "day", "church")] == [
        "boats",
        "boxes",
        "cities",
        "days",
        "churches",
    ]
    assert forms(VERB, "see") == ("see", "sees", "seeing", "saw", "seen")
    assert forms(VERB, "go") == ("go", "goes", "going", "went", "gone")
    assert forms(VERB, "put")[3:] == ("put", "put")
    assert forms(VERB, "take off") == ("take off", "takes off", "taking off", "took off", "taken off")
    assert forms(NOUN, "mariner of the sea")[1] == "mariner of the seas"
    assert forms(NOUN, "man") == ("man", "men")
    assert forms(ADJECTIVE, "big") == ("big", "bigger", "biggest")
    assert forms(ADJECTIVE, "beautiful") == ("beautiful", None, None)
    assert forms(ADVERB, "quickly") == ("quickly", None, None)


def test_the_neighbours_decide_the_part_of_speech(table: WordTable) -> None:
    assert slot(table, "the cook is here", "cook")[:2] == ("noun", {"chef", "person"})
    assert slot(table, "they cook it", "cook")[:2] == ("verb", {"bake"})
    assert slot(table, "the saw is on a boat", "saw")[0] == "noun"
    assert slot(table, "they saw it", "saw")[:2] == ("verb", {"beheld"})
    assert slot(table, "they cook it", "they")[0] == "none"  # function words are left alone


def test_what_is_put_in_is_inflected_alike(table: WordTable) -> None:
    assert slot(table, "the boats", "boats")[1] == {"vessels", "things"}
    assert slot(table, "a bigger boat", "bigger") == ("adj", {"larger"}, {"littler"})
    assert slot(table, "they walked here", "walked")[1] == {
        "strolled"
    }  # "went" is past, "gone" is participle; "walked" may be both
    assert slot(table, "they landed it", "landed")[1:] == ({"set down"}, set())  # neither took off nor taken off
    assert slot(table, "it lands", "lands")[1:] == ({"sets down"}, {"takes off"})
    assert slot(table, "the colder night", "colder")[2] == {"warmer"}


def replaced(
    table: WordTable, tokenizer: TextTokenizer, seed: int = 0, share: float = 1.0, texts: list[str] = TEXTS
) -> tuple:
    spelling = Spelling(table, tokenizer)
    spelled = spelling.read(sequences(tokenizer, texts))
    slots = table.slots(spelled.numbers, spelled.texts)
    rng = np.random.default_rng(seed)
    drawn = (
        draw_synonyms(table, slots, spelled.texts, share, rng),
        draw_antonyms(table, slots, spelled.texts, share, rng),
    )
    return spelled, *drawn, *(spelling.write(spelled, each) for each in drawn)


@pytest.mark.parametrize("fixture", ["pieces", "byte_tokenizer"])
def test_labels_line_up_with_the_tokens_that_changed(
    table: WordTable, fixture: str, request: pytest.FixtureRequest
) -> None:
    """Marked tokens spell the new words, the others are the old ones; several pieces and letters of two bytes too."""
    tokenizer = request.getfixturevalue(fixture)
    capitals = [text.capitalize() for text in TEXTS] if fixture == "byte_tokenizer" else TEXTS
    for seed in range(5):
        spelled, synonyms, antonyms, *written = replaced(table, tokenizer, seed, 0.5, capitals)
        for chosen, (texts, new) in zip((synonyms, antonyms), written, strict=True):
            assert (chosen >= 0).sum() >= 5
            for number, (ids, flags, text) in enumerate(zip(texts, new, capitals, strict=True)):
                mine = chosen[spelled.texts == number]
                assert len(ids) == len(flags)
                assert tokenizer.tokenizer.decode(ids[~flags]).lower().split() != [] or not text or flags.all()
                put = "".join(table.words[word] for word in mine if word >= 0).replace(" ", "")
                marked = tokenizer.tokenizer.decode(ids[flags]).lower().replace(" ", "").replace("##", "")
                assert marked == put
                old = np.append(spelled.starts[1:], len(spelled.ids))[spelled.texts == number]
                kept = [
                    spelled.ids[a:b]
                    for a, b, w in zip(spelled.starts[spelled.texts == number], old, mine, strict=True)
                    if w < 0
                ]
                assert ids[~flags].tolist() == [token for word in kept for token in word.tolist()]


def test_a_new_word_is_written_as_the_old_one_was(table: WordTable, byte_tokenizer: TextTokenizer) -> None:
    """With its capital and its blank: the ids are those of the new text."""
    texts = ["Old boats and a boat", "The old boat"]
    spelling = Spelling(table, byte_tokenizer)
    spelled = spelling.read(sequences(byte_tokenizer, texts))
    others = {"old": "new", "boats": "things", "boat": "vessel"}
    words = [word for text in texts for word in text.lower().split()]
    chosen = np.array([table.number[others[word]] if word in others else -1 for word in words])
    written, _ = spelling.write(spelled, chosen)
    expected = sequences(byte_tokenizer, ["New things and a vessel", "The new vessel"])
    assert [ids.tolist() for ids in written] == [ids.tolist() for ids in expected]


def test_only_words_with_a_part_of_speech_change_and_those_without_candidates_stay(
    table: WordTable, pieces: TextTokenizer
) -> None:
    spelled, synonyms, antonyms, (kept, new), _ = replaced(table, pieces)
    originals = sequences(pieces, TEXTS)
    for empty in (3, 4):
        assert kept[empty].tolist() == originals[empty].tolist()
        assert not new[empty].any()
    changed = {table.words[word] for word in spelled.numbers[(synonyms >= 0) | (antonyms >= 0)]}
    assert changed.isdisjoint({"the", "a", "an", "and", "to", "of", "in", "on", "they", "with", "it", ","})
    assert {"boat", "bigger", "walked"} <= changed


def test_the_shares(table: WordTable, pieces: TextTokenizer) -> None:
    texts = ["old boat warm house big kitchen new day loud night"] * 200
    for share in (0.2, 0.4):
        _, synonyms, antonyms, *_ = replaced(table, pieces, 1, share, texts)
        assert (synonyms >= 0).mean() == pytest.approx(share, abs=0.02)
        assert (antonyms >= 0).mean() == pytest.approx(share, abs=0.02)
    _, synonyms, antonyms, *_ = replaced(table, pieces, 1, 1e-6, texts)
    assert (synonyms >= 0).sum() == (antonyms >= 0).sum() == 200  # one at least


def test_synonyms_hypernyms_and_inflections_are_equally_likely(table: WordTable, pieces: TextTokenizer) -> None:
    spelled = Spelling(table, pieces).read(sequences(pieces, ["the boat"] * 3000))
    slots = table.slots(spelled.numbers, spelled.texts)
    drawn = draw_synonyms(table, slots, spelled.texts, 0.4, np.random.default_rng(0))
    found = [table.words[word] for word in drawn[drawn >= 0]]
    shares = {word: found.count(word) / 3000 for word in set(found)}
    assert shares == pytest.approx({"vessel": 1 / 3, "thing": 1 / 3, "boats": 1 / 3}, abs=0.04)


def test_antonyms_come_first_and_random_words_fill_up(table: WordTable, pieces: TextTokenizer) -> None:
    spelling = Spelling(table, pieces)
    spelled = spelling.read(sequences(pieces, ["the old boat and the saw"] * 100))
    slots = table.slots(spelled.numbers, spelled.texts)
    words = np.array([table.words[number] for number in spelled.numbers])
    one = draw_antonyms(table, slots, spelled.texts, 1e-6, np.random.default_rng(0))
    assert set(words[one >= 0]) == {"old"}
    assert {table.words[word] for word in one[one >= 0]} == {"new"}
    everything = draw_antonyms(table, slots, spelled.texts, 1.0, np.random.default_rng(0))
    drawn = {table.words[word] for word in everything[(words == "boat") & (everything >= 0)]}
    assert {table.words[word] for word in everything[words == "old"]} == {"new"}
    assert drawn >= {"house"}
    assert "boat" not in drawn
    assert {slot(table, f"the {word} is", word)[0] for word in drawn} == {"noun"}
    without = draw_antonyms(table, slots, spelled.texts, 1.0, np.random.default_rng(0), fill=False)
    assert set(words[without >= 0]) == {"old"}


def test_the_same_seed_gives_the_same_texts_and_another_gives_others(table: WordTable, pieces: TextTokenizer) -> None:
    first, again, other = (replaced(table, pieces, seed) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(first[3][0] + first[4][0], again[3][0] + again[4][0], strict=True))
    assert not all(
        np.array_equal(a, b) for a, b in zip(first[3][0] + first[4][0], other[3][0] + other[4][0], strict=True)
    )


def test_labels_are_cut_as_the_text_is(pieces: TextTokenizer) -> None:
    tokens = pieces.frame([np.arange(10, 16), np.arange(10, 12)], 6)
    view = label_tokens(tokens, [np.array([0, 1, 0, 1, 1, 1]), np.array([-100, -100])], 1, 1)
    assert view.labels.tolist() == [[-100, 0, 1, 0, 1, -100], [-100] * 6]
    assert view.asked.tolist() == [1, 2, 3, 4]


def test_the_table_is_kept_and_found_again(
    small_wordnet: Path, table: WordTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path))
    open_lexicon.cache_clear()
    open_lexicon(small_wordnet)
    open_lexicon.cache_clear()
    monkeypatch.setattr("isotrope.lexicon.replacements.make_lexicon", lambda *_: pytest.fail("made twice"))
    found = open_lexicon(small_wordnet)
    open_lexicon.cache_clear()
    assert found.words == table.words
    for name in ("prior", "left", "right", "form", "weights"):
        assert np.array_equal(getattr(found, name), getattr(table, name))
    assert np.array_equal(found.choices["antonyms"].words, table.choices["antonyms"].words)


@pytest.mark.parametrize("name", ["arrays.npz", "words.json", "facts.json"])
@pytest.mark.parametrize("change", [lambda raw: b"", lambda raw: raw[: len(raw) // 2], lambda raw: raw[:-3] + b"xyz"])
def test_a_damaged_table_is_made_again(
    small_wordnet: Path,
    table: WordTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    change: Callable[[bytes], bytes],
) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path))
    caplog.set_level("INFO", "isotrope")
    open_lexicon.cache_clear()
    open_lexicon(small_wordnet)
    (file,) = tmp_path.rglob(name)
    file.write_bytes(change(file.read_bytes()))
    for _ in range(2):
        open_lexicon.cache_clear()
        found = open_lexicon(small_wordnet)
        assert found.words == table.words
        assert np.array_equal(found.prior, table.prior)
    open_lexicon.cache_clear()
    assert caplog.text.count(f"The table of words of {small_wordnet} is damaged ({name} ") == 1


def test_the_table_is_the_same_in_every_process(small_wordnet: Path) -> None:
    """The order of a set of words is another one in each process."""
    script = (
        "import sys, pathlib; from isotrope.lexicon.replacements import make_lexicon; "
        "print(make_lexicon(pathlib.Path(sys.argv[1])).words)"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script, str(small_wordnet)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_foreign_text_is_recognised(table: WordTable) -> None:
    assert knows_words(table, "An old BOAT!")
    assert not knows_words(table, "Der Koch und das 东西")


@pytest.mark.parametrize(
    ("name", "line"), [("cntlist.rev", "dog%9:1 1 2"), ("data.adj", "00000001 00 a 01 big 0 001 ! 00000002 a")]
)
def test_a_file_of_something_else_is_named(small_wordnet: Path, tmp_path: Path, name: str, line: str) -> None:
    for file in small_wordnet.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / name).write_text(line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"{name}:1: no line of"):
        make_lexicon(tmp_path)
