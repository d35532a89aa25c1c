"""Edits: what they may touch, how much they touch, and that all chance comes from outside."""

from __future__ import annotations

from collections import Counter
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.errors import InputError
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views import edits as edits_module
from isotrope.views.edits import (
    KNOWN,
    Crop,
    Delete,
    DeleteOne,
    Mask,
    Reorder,
    Repeat,
    RepeatWords,
    Substitute,
    compose,
    one_of,
    parse_edits,
)

SYNONYMS = {"cat": ["kitten", "old fox"], "dog": ["hound"], "the": ["the", "one"], "foxdog": ["stone"]}
VOCABULARY = (
    "the cat dog fox walks eats river stone old one foxdog quickstone liquordog lazyriver boxes jumping over".split()
)
DRAWS = 4000


def ids_of(tokenizer: TextTokenizer, text: str) -> np.ndarray:
    return tokenizer.flat([text])[0]


def words_of(tokenizer: TextTokenizer, ids: np.ndarray) -> list[str]:
    """The words as the tokenizer spells them, found by a loop over the pieces."""
    words: list[str] = []
    for piece in tokenizer.tokenizer.convert_ids_to_tokens(ids.tolist()):
        if piece.startswith("##") and words:
            words[-1] += piece[2:]
        else:
            words.append(piece)
    return words


def spell(tokenizer: TextTokenizer, ids: np.ndarray) -> str:
    return " ".join(words_of(tokenizer, ids))


@pytest.fixture(scope="module")
def twenty(tokenizer) -> np.ndarray:
    """Twenty different words, some of several pieces."""
    text = " ".join([*VOCABULARY, "walking", "cats", "dogs"])
    ids = ids_of(tokenizer, text)
    assert words_of(tokenizer, ids) == text.split()  # the vocabulary can spell them all
    assert len(set(text.split())) == 20 < len(ids)
    return ids


@pytest.fixture(scope="module")
def make(tokenizer):
    """An edit by its name, for the fixture's tokenizer."""
    return lambda name, share: parse_edits(f"{name}:{share}" if KNOWN[name].takes_share else name, SYNONYMS)(tokenizer)


def repeated(edit, ids: np.ndarray, draws: int = DRAWS, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [edit(ids, rng) for _ in range(draws)]


def is_subsequence(part: list, whole: list) -> bool:
    rest = iter(whole)
    return all(any(item == other for other in rest) for item in part)


def runs(flags: list[bool]) -> int:
    """How many runs of True."""
    return sum(flag and not before for flag, before in zip(flags, [False, *flags], strict=False))


# ---- laws of all


texts = st.lists(st.sampled_from([*VOCABULARY, "[SEP]", "北"]), min_size=1, max_size=15).map(" ".join)


@settings(max_examples=400, deadline=None)
@given(
    name=st.sampled_from(sorted(KNOWN)),
    text=texts,
    share=st.floats(0.01, 0.99),
    framed=st.booleans(),
    seed=st.integers(0, 999),
)
def test_every_edit_leaves_its_input_and_special_tokens_alone_and_never_empties_a_text(
    tokenizer, make, name, text, share, framed, seed
):
    ids = ids_of(tokenizer, text)
    if framed:
        ids = np.array([*tokenizer.prefix, *ids, *tokenizer.suffix], dtype=np.int32)
    before = ids.copy()
    ids.flags.writeable = False
    edited = make(name, share)(ids, np.random.default_rng(seed))
    assert np.array_equal(ids, before)
    assert edited.dtype == ids.dtype
    fixed = {tokenizer.tokenizer.cls_token_id, tokenizer.tokenizer.sep_token_id}
    assert [i for i in edited.tolist() if i in fixed] == [i for i in before.tolist() if i in fixed]
    if set(before.tolist()) - fixed:
        assert set(edited.tolist()) - fixed
    if framed:
        assert [edited[0], edited[-1]] == [before[0], before[-1]]


@settings(max_examples=300, deadline=None)
@given(
    name=st.sampled_from(["crop", "delete", "delete-one", "reorder", "repeat-words", "mask", "synonyms"]),
    text=texts,
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 999),
)
def test_only_whole_words_are_touched(tokenizer, make, name, text, share, seed):
    ids = ids_of(tokenizer, text)
    allowed = {*words_of(tokenizer, ids), "[MASK]", "kitten", "hound", "old", "fox", "one", "stone"}
    assert set(words_of(tokenizer, make(name, share)(ids, np.random.default_rng(seed)))) <= allowed


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_same_chance_gives_the_same_text(twenty, make, name):
    edit = make(name, 0.5)
    first, again, other = (np.concatenate(repeated(edit, twenty, 10, seed)).tolist() for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_a_text_without_words_comes_back_as_it_is(tokenizer, make, name):
    frame = np.array([*tokenizer.prefix, *tokenizer.suffix], dtype=np.int32)
    for ids in (frame, frame[:0]):
        assert make(name, 0.5)(ids, np.random.default_rng(0)).tolist() == ids.tolist()


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_one_word_stays_a_text(tokenizer, make, name):
    ids = ids_of(tokenizer, "liquordog")
    found = {spell(tokenizer, edited) for edited in repeated(make(name, 0.9), ids, 100)}
    if name == "mask":
        assert found == {"liquordog", " ".join(["[MASK]"] * len(ids))}
    elif name == "repeat-words":
        assert found == {"liquordog", "liquordog liquordog"}
    elif name != "repeat":
        assert found == {"liquordog"}


@pytest.mark.parametrize("name", sorted(name for name, edit in KNOWN.items() if edit.takes_share))
def test_the_share_that_changes_nothing(twenty, make, name):
    edit = make(name, 1 if name == "crop" else 0)
    assert all(edited.tolist() == twenty.tolist() for edited in repeated(edit, twenty, 200))


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.int64])
@pytest.mark.parametrize("name", sorted(KNOWN))
def test_any_width_of_integer_will_do(twenty, make, name, dtype):
    expected = np.concatenate(repeated(make(name, 0.5), twenty, 10))
    found = np.concatenate(repeated(make(name, 0.5), twenty.astype(dtype), 10))
    assert found.dtype == dtype
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["crop", "delete", "delete-one", "reorder", "repeat-words"])
def test_texts_of_bytes_are_edited_by_words_too(byte_tokenizer, name):
    edit = KNOWN[name](byte_tokenizer.words, 0.5)
    ids = ids_of(byte_tokenizer, "the lazyriver walks, (quickly) over one stone!")
    whole = {tuple(part) for part in np.split(ids, byte_tokenizer.words.split(ids)[0][1:])}
    assert max(map(len, whole)) > 1
    seen = set()
    for edited in repeated(edit, ids, 200):
        rest = edited.tolist()
        seen.add(tuple(rest))
        while rest:  # the result is put together of whole words
            word = next(word for word in sorted(whole, key=len, reverse=True) if tuple(rest[: len(word)]) == word)
            rest = rest[len(word) :]
    assert len(seen) > 5


# ---- delete


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_deletion_takes_its_share_of_words_and_keeps_the_order(tokenizer, twenty, share):
    words = words_of(tokenizer, twenty)
    kept = [words_of(tokenizer, edited) for edited in repeated(Delete(tokenizer.words, share), twenty)]
    assert all(is_subsequence(each, words) for each in kept)
    assert 1 - np.mean([len(each) for each in kept]) / 20 == pytest.approx(share, abs=0.008)
    counts = Counter(word for each in kept for word in each)
    assert min(counts[word] for word in words) > 0.9 * (1 - share) * DRAWS  # no word is favoured


def test_the_last_word_left_is_any_of_them(tokenizer):
    kept = Counter(
        spell(tokenizer, each)
        for each in repeated(Delete(tokenizer.words, 0.9999), ids_of(tokenizer, "cat dog liquordog"))
    )
    assert set(kept) >= {"cat", "dog", "liquordog"}
    assert all(kept[word] / DRAWS == pytest.approx(1 / 3, abs=0.04) for word in ("cat", "dog", "liquordog"))


# ---- crop


@pytest.mark.parametrize("share", [0.12, 0.6, 0.9])
def test_a_crop_keeps_a_run_of_its_share(tokenizer, twenty, share):
    words = words_of(tokenizer, twenty)
    crops = [words_of(tokenizer, edited) for edited in repeated(Crop(tokenizer.words, share), twenty)]
    starts = [words.index(crop[0]) for crop in crops]
    assert all(crop == words[start : start + len(crop)] for crop, start in zip(crops, starts, strict=True))
    lengths = np.array([len(crop) for crop in crops])
    assert lengths.mean() / 20 == pytest.approx(share, abs=0.005)
    assert lengths.max() - lengths.min() <= 1  # rounding, and nothing else
    places = Counter(start for start, length in zip(starts, lengths, strict=True) if length == lengths[0])
    assert sorted(places) == list(range(20 - lengths[0] + 1))  # every place a run of this length can have
    assert min(places.values()) > 0.6 * max(places.values())


def test_a_crop_keeps_special_tokens_outside_of_it(tokenizer):
    ids = ids_of(tokenizer, "cat dog [SEP] fox stone")
    found = {spell(tokenizer, edited) for edited in repeated(Crop(tokenizer.words, 0.5), ids, 200)}
    assert found == {"cat dog [SEP]", "dog [SEP] fox", "[SEP] fox stone"}


# ---- reorder


@pytest.mark.parametrize(("share", "length"), [(0.01, 2), (0.3, 6), (1, 20)])
def test_a_run_is_shuffled_and_nothing_is_lost(tokenizer, twenty, share, length):
    words = words_of(tokenizer, twenty)
    moved = []
    for edited in repeated(Reorder(tokenizer.words, share), twenty):
        after = words_of(tokenizer, edited)
        assert Counter(after) == Counter(words)
        places = [i for i in range(20) if after[i] != words[i]]
        assert not places or places[-1] - places[0] < length
        moved.append(len(places))
    assert np.mean(moved) == pytest.approx(length - 1, abs=0.1)  # a random permutation leaves one in place on average
    assert max(moved) == length


def test_special_tokens_keep_their_place_between_words(tokenizer):
    ids = ids_of(tokenizer, "cat liquordog [SEP] quickstone dog")
    found = {spell(tokenizer, edited) for edited in repeated(Reorder(tokenizer.words, 1), ids, 500)}
    assert len(found) == 24
    assert all(each.split()[2] == "[SEP]" for each in found)


# ---- repeat


@pytest.mark.parametrize(("share", "most"), [(0.01, 2), (0.32, 6), (1, 20)])
@pytest.mark.parametrize("kind", [Repeat, RepeatWords])
def test_the_number_of_repetitions_is_drawn_evenly_from_none_to_the_most(tokenizer, twenty, kind, share, most):
    words = words_of(tokenizer, twenty)
    ids = twenty if kind is RepeatWords else ids_of(tokenizer, " ".join(words[:10] * 2))[:20]
    count = (lambda each: len(words_of(tokenizer, each))) if kind is RepeatWords else len
    added = Counter(count(each) - 20 for each in repeated(kind(tokenizer.words, share), ids))
    assert sorted(added) == list(range(most + 1))
    assert all(number / DRAWS == pytest.approx(1 / (most + 1), abs=0.025) for number in added.values())


def test_repeated_words_stand_side_by_side_and_none_thrice(tokenizer, twenty):
    words = words_of(tokenizer, twenty)
    doubled = Counter()
    for edited in repeated(RepeatWords(tokenizer.words, 0.5), twenty):
        after = words_of(tokenizer, edited)
        assert [word for word, before in zip(after, [None, *after], strict=False) if word != before] == words
        counts = Counter(after)
        assert max(counts.values()) <= 2
        doubled.update(word for word in words if counts[word] == 2)
    assert min(doubled.values()) > 0.7 * max(doubled.values())  # no word is favoured


def test_pieces_are_repeated_one_by_one(tokenizer):
    ids = ids_of(tokenizer, "liquordog")
    assert len(set(ids.tolist())) > 3
    found = {tuple(each.tolist()) for each in repeated(Repeat(tokenizer.words, 0.1), ids)}
    assert found >= {(*ids[: i + 1], *ids[i:]) for i in range(len(ids))}
    assert max(map(len, found)) == len(ids) + 2


# ---- mask


@pytest.mark.parametrize("share", [0.02, 0.15, 0.5])
def test_a_run_of_words_is_hidden_piece_by_piece(tokenizer, twenty, share):
    starts = tokenizer.words.split(twenty)[0]
    counts = []
    for edited in repeated(Mask(tokenizer.words, share), twenty):
        assert len(edited) == len(twenty)
        hidden = edited == tokenizer.mask
        assert np.array_equal(edited[~hidden], twenty[~hidden])
        by_word = [part.tolist() for part in np.split(hidden, starts[1:])]
        assert all(len(set(part)) == 1 for part in by_word)  # a word is hidden whole or not at all
        flags = [part[0] for part in by_word]
        assert runs(flags) <= 1
        counts.append(sum(flags))
    assert np.mean(counts) / 20 == pytest.approx(share, abs=0.005)
    assert max(counts) - min(counts) <= 1


def test_special_tokens_within_a_run_are_not_hidden(tokenizer):
    hidden = Mask(tokenizer.words, 1)(ids_of(tokenizer, "cat [SEP] dog"), np.random.default_rng(0))
    assert spell(tokenizer, hidden) == "[MASK] [SEP] [MASK]"


def test_nothing_can_be_hidden_without_a_mask_token(tokenizer):
    with pytest.raises(InputError, match="no mask token"):
        Mask(replace(tokenizer.words, mask=None), 0.1)


# ---- substitute


@pytest.mark.parametrize("share", [0.1, 0.7])
def test_words_of_the_table_are_replaced_with_the_probability_asked_for(tokenizer, share):
    ids = ids_of(tokenizer, "dog walks foxdog over fox")
    edit = Substitute.of(tokenizer, share, SYNONYMS)
    found = Counter(spell(tokenizer, each) for each in repeated(edit, ids))
    both, neither = share**2, (1 - share) ** 2
    assert set(found) == {f"{a} walks {b} over fox" for a in ("dog", "hound") for b in ("foxdog", "stone")}
    assert found["hound walks stone over fox"] / DRAWS == pytest.approx(both, abs=0.03)
    assert found["dog walks foxdog over fox"] / DRAWS == pytest.approx(neither, abs=0.03)


def test_synonyms_are_drawn_evenly_and_may_have_more_words(tokenizer):
    found = Counter(
        spell(tokenizer, each) for each in repeated(Substitute.of(tokenizer, 1, SYNONYMS), ids_of(tokenizer, "cat the"))
    )
    assert set(found) == {"kitten one", "old fox one"}  # "the" is no synonym of itself
    assert found["kitten one"] / DRAWS == pytest.approx(0.5, abs=0.04)


def test_a_part_of_a_word_is_not_that_word(tokenizer):
    ids = ids_of(tokenizer, "cats foxcat dogs")
    assert all(
        each.tolist() == ids.tolist()
        for each in repeated(Substitute.of(tokenizer, 1, {"cat": ["dog"], "fox": ["dog"]}), ids, 20)
    )


# ---- composition


def test_composed_edits_follow_each_other(tokenizer, twenty):
    delete, repeat = Delete(tokenizer.words, 0.3), RepeatWords(tokenizer.words, 0.3)
    for seed in range(20):
        rng, same = np.random.default_rng(seed), np.random.default_rng(seed)
        assert compose(delete, repeat)(twenty, rng).tolist() == repeat(delete(twenty, same), same).tolist()


def test_one_of_draws_anew_for_each_text(tokenizer, twenty):
    plain = [lambda ids, rng: ids[:1], lambda ids, rng: ids[:2], lambda ids, rng: ids[:3]]
    found = Counter(len(each) for each in repeated(one_of(*plain), twenty))
    assert sorted(found) == [1, 2, 3]
    assert all(number / DRAWS == pytest.approx(1 / 3, abs=0.03) for number in found.values())


def test_compositions_nest(tokenizer, twenty):
    drop, hide = Delete(tokenizer.words, 0.5), Mask(tokenizer.words, 1)
    edit = compose(one_of(drop, hide), RepeatWords(tokenizer.words, 0.3))
    hidden = [tokenizer.mask in each.tolist() for each in repeated(edit, twenty, 400)]
    assert 0.4 < np.mean(hidden) < 0.6


@pytest.mark.parametrize("combine", [compose, one_of])
def test_nothing_cannot_be_combined(combine):
    with pytest.raises(InputError, match="at least one edit"):
        combine()


# ---- settings


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", [Crop, Delete, Mask, Reorder, Repeat, RepeatWords])
def test_a_share_lies_between_0_and_1(tokenizer, kind, share):
    with pytest.raises(InputError, match=f"{kind.name} takes a share from 0 to 1"):
        kind(tokenizer.words, share)


def test_a_share_of_synonyms_too(tokenizer):
    with pytest.raises(InputError, match="synonyms takes a share from 0 to 1; 2 was given"):
        Substitute.of(tokenizer, 2, SYNONYMS)


@pytest.mark.parametrize(("kind", "share"), [(Delete, 1), (Crop, 0)])
def test_a_share_that_leaves_nothing_is_refused(tokenizer, kind, share):
    with pytest.raises(InputError, match=f"but not {share}; {share} was given"):
        kind(tokenizer.words, share)


def test_edits_are_frozen_and_equal_by_value(tokenizer):
    edit = Delete(tokenizer.words, 0.1)
    with pytest.raises(FrozenInstanceError):
        edit.share = 0.2
    assert edit == Delete(tokenizer.words, 0.1) != Delete(tokenizer.words, 0.2)
    assert edit != Repeat(tokenizer.words, 0.1)
    assert compose(edit) == compose(Delete(tokenizer.words, 0.1))


def test_a_setting_names_edits(tokenizer):
    words = tokenizer.words
    assert parse_edits("delete:0.1")(tokenizer) == Delete(words, 0.1)
    assert parse_edits("delete:0.1,crop:0.6")(tokenizer) == compose(Delete(words, 0.1), Crop(words, 0.6))
    assert parse_edits(" mask:.2 / reorder:1 , repeat:0.32")(tokenizer) == compose(
        one_of(Mask(words, 0.2), Reorder(words, 1.0)), Repeat(words, 0.32)
    )
    assert parse_edits("repeat-words:0.3/delete:0")(tokenizer) == one_of(RepeatWords(words, 0.3), Delete(words, 0.0))


@pytest.mark.parametrize("text", ["delte:0.1", "", "delete:0.1,", "crop:0.5/,delete:0.1", "delete:0.1,Crop:0.5", "0.1"])
def test_an_unknown_name_is_answered_with_the_known_ones(text):
    with pytest.raises(
        InputError,
        match=r"Unknown edit '.*'; known: crop, delete, delete-one, mask, reorder, repeat, repeat-words, synonyms",
    ):
        parse_edits(text)


@pytest.mark.parametrize("text", ["delete", "delete:", "delete:much", "crop:0.5,delete:0.1:0.2"])
def test_a_name_without_a_share_says_how_to_write_it(text):
    with pytest.raises(InputError, match=r"write it as delete:0.1 \(known: crop, delete"):
        parse_edits(text)


@pytest.mark.parametrize("text", ["delete:1", "crop:0", "synonyms:1.5", "repeat:-1", "mask:nan"])
def test_shares_are_checked_before_there_is_a_tokenizer(text):
    with pytest.raises(InputError, match="takes a share from 0 to 1"):
        parse_edits(text)


def test_synonyms_come_from_wordnet_where_no_table_is_given(tokenizer, monkeypatch):
    monkeypatch.setattr(edits_module, "read_synonyms", lambda: {"dog": ["fox"]})
    ids = ids_of(tokenizer, "the dog")
    assert spell(tokenizer, parse_edits("synonyms:1")(tokenizer)(ids, np.random.default_rng(0))) == "the fox"
    assert (
        spell(tokenizer, parse_edits("synonyms:1", SYNONYMS)(tokenizer)(ids, np.random.default_rng(0))) == "one hound"
    )


def test_delete_one_takes_exactly_one_word_and_each_as_often(tokenizer, twenty):
    words = words_of(tokenizer, twenty)
    gone = Counter()
    for edited in repeated(parse_edits("delete-one")(tokenizer), twenty):
        left = words_of(tokenizer, edited)
        assert len(left) == 19
        assert is_subsequence(left, words)
        gone.update(set(words) - set(left))
    assert gone.keys() == set(words)
    assert all(abs(count - DRAWS / 20) < 5 * (DRAWS / 20) ** 0.5 for count in gone.values())


def test_delete_one_is_written_without_a_share(tokenizer):
    assert parse_edits("delete-one,crop:0.9")(tokenizer) == compose(
        DeleteOne(tokenizer.words, 0.0), Crop(tokenizer.words, 0.9)
    )
    with pytest.raises(InputError, match="delete-one takes no share; write it as delete-one"):
        parse_edits("delete-one:0.1")
