"""Negation by rule: where "not" goes, where it is taken out, and what happens to the rest."""

from __future__ import annotations

import pytest

from isotrope.views.negation import base_of_past, base_of_third_person, negation

PROPER = {
    "The sky is blue.": "The sky is not blue.",
    "The sky is not blue.": "The sky is blue.",
    "Not all birds fly.": "all birds fly.",
    "I don't know.": "I do know.",
    "It won't rain.": "It will rain.",
    "He can't swim.": "He can swim.",
    "They cannot swim.": "They can swim.",
    "She isn’t here.": "She is here.",
    "It's late.": "It's not late.",
    "We'll see.": "We'll not see.",
    "Is it late?": "Is not it late?",
    "They have seen it.": "They have not seen it.",
    "They have two dogs.": "They do not have two dogs.",
    "He has a dog.": "He does not have a dog.",
    "She had a dog.": "She did not have a dog.",
    "Nobody said that she was ill.": "Nobody did not say that she was ill.",
    "He also worked in Rome.": "He also did not work in Rome.",
    "The band released it in May.": "The band did not release it in May.",
    "It contains two parts.": "It does not contain two parts.",
    "We edit them.": "We do not edit them.",
    "The listed man walked home.": "The listed man did not walk home.",
    "A film directed by him was shown.": "A film directed by him was not shown.",
}


@pytest.mark.parametrize("text", PROPER)
def test_a_rule_finds_the_place(text: str) -> None:
    assert negation(text) == (PROPER[text], True)


@pytest.mark.parametrize("text", ["Thank you!", "A cat on a mat.", "", "Ein Satz ohne Regel."])
def test_the_rest_has_not_in_front(text: str) -> None:
    assert negation(text) == (f"Not {text}", False)


def test_a_negation_is_another_text() -> None:
    for text in [*PROPER, "Thank you!"]:
        assert negation(text)[0] != text


BASES = {
    "walked": "walk", "released": "release", "stopped": "stop", "tried": "try", "called": "call", "passed": "pass",
    "included": "include", "visited": "visit", "created": "create", "entered": "enter", "managed": "manage",
    "handled": "handle", "moved": "move", "treated": "treat", "announced": "announce",
}  # fmt: skip


@pytest.mark.parametrize(("past", "base"), BASES.items())
def test_the_base_of_a_past(past: str, base: str) -> None:
    assert base_of_past(past) == base


@pytest.mark.parametrize(
    ("form", "base"), [("says", "say"), ("tries", "try"), ("watches", "watch"), ("includes", "include"), ("goes", "go")]
)
def test_the_base_of_a_third_person(form: str, base: str) -> None:
    assert base_of_third_person(form) == base
