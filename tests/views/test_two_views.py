"""Two edited views of a text: which edits they get, and that their chance is their own."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.views import edits as edits_module
from isotrope.views.edits import Compose, Crop, Delete
from isotrope.views.two_views import edited, parse_two_views


@pytest.fixture
def sequences(tokenizer):
    flat, _ = tokenizer.flat(["one two three four five six seven eight nine ten"])
    return [flat] * 50


def test_the_second_view_is_edited_as_the_first_one_but_by_other_chance(tokenizer, sequences):
    first, second = parse_two_views("delete:0.3,crop:0.6")(tokenizer)
    assert first == second == Compose((Delete(tokenizer.words, 0.3), Crop(tokenizer.words, 0.6)))
    rng = np.random.default_rng(0)
    views = [edited(sequences, edit, rng) for edit in (first, second)]
    assert any(not np.array_equal(a, b) for a, b in zip(*views, strict=True))


def test_each_view_may_have_edits_of_its_own(tokenizer):
    first, second = parse_two_views("delete:0.3", "crop:0.6")(tokenizer)
    assert (first, second) == (Delete(tokenizer.words, 0.3), Crop(tokenizer.words, 0.6))


@pytest.mark.parametrize("nothing", ["none", " None "])
def test_none_leaves_a_text_as_it_is(tokenizer, sequences, nothing):
    first, second = parse_two_views(nothing, "delete:0.9")(tokenizer)
    rng = np.random.default_rng(0)
    assert all(np.array_equal(a, b) for a, b in zip(edited(sequences, first, rng), sequences, strict=True))
    assert all(len(a) < len(b) for a, b in zip(edited(sequences, second, rng), sequences, strict=True))


@pytest.mark.parametrize(
    "views", [("shuffle:0.1", "same"), ("delete:0.1", "crop"), ("delete:0.1", ""), ("same", "same")]
)
def test_what_is_no_edit_is_refused_before_there_is_a_tokenizer(views):
    with pytest.raises(InputError, match="known"):
        parse_two_views(*views)


def test_wordnet_is_read_only_when_synonyms_are_asked_for(tokenizer, monkeypatch):
    asked = []
    monkeypatch.setattr(edits_module, "read_synonyms", lambda: asked.append(1) or {})
    parse_two_views("delete:0.1,crop:0.9")(tokenizer)
    assert not asked
    parse_two_views("delete:0.1", "synonyms:0.2")(tokenizer)
    assert asked == [1]
