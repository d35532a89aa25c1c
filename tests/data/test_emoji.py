"""Emoji as labels: which there are, what is left of the text, and that a text never stands on both sides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.data.corpus import Corpus, open_corpus
from isotrope.data.emoji import emoji_in, without_emoji
from isotrope.data.held_out import hold_out
from isotrope.errors import InputError

RECORD_TYPES = ("labelled", "emoji")
ENGLAND = (
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"  # a flag, and letters that nobody sees
)


def opened(source: object, tiny: Path) -> Corpus:
    tokenizer = isotrope.load(tiny, device="cpu").text_tokenizer
    return open_corpus(source, RECORD_TYPES, tokenizer)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "emoji", "rest"),
    [
        ("so fun 😂😂😂 at home", ["😂"], "so fun at home"),
        ("I love it ❤️ ❤", ["❤"], "I love it"),
        ("well done 👍🏽👍", ["👍"], "well done"),
        ("🔥hot😎 day", ["🔥", "😎"], "hot day"),
        ("we 👨‍👩‍👧 went 🤷🏽‍♀️", ["👨‍👩‍👧", "🤷‍♀"], "we went"),
        ("from 🇺🇸🇬🇧 here", ["🇺🇸", "🇬🇧"], "from here"),
        ("number 1️⃣ and ☀", ["1⃣", "☀"], "number and"),
        (f"go {ENGLAND} go", [ENGLAND], "go go"),
        ("© 2020 ™ → #1 5*3 é 漢字 🈚", ["🈚"], "© 2020 ™ → #1 5*3 é 漢字"),
        ("™️ is a picture", ["™"], "is a picture"),
        ("blood type 🅰️ or 🅱️", ["🅰", "🅱"], "blood type or"),
        ("♪ la la ♪ ☉ ❝so❞", [], "♪ la la ♪ ☉ ❝so❞"),
        ("\ufe0f left \u200d over", [], "left over"),
    ],
)  # fmt: skip
def test_what_is_found_and_what_is_left(text: str, emoji: list[str], rest: str) -> None:
    assert emoji_in(text) == emoji
    assert without_emoji(text) == rest


def test_a_text_with_two_emoji_is_two_records_and_one_without_is_none(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "tweets.txt"
    file.write_text("the chef 😂 bakes 🔥\nthe sailor steers\n❤️\nthe boat ❤️ ❤️\n", encoding="utf-8")
    corpus = opened(file, tiny)
    assert corpus.record_type.name == "emoji"
    assert [corpus.text(row) for row in range(len(corpus))] == ["the chef bakes", "the chef bakes", "the boat"]
    assert corpus.values == ["😂", "🔥", "❤"]
    assert corpus.counts.empty == 2
    assert corpus.tokens(0).tolist() == corpus.tokens(1).tolist()


def test_lists_and_tables_without_labels_are_read_alike_and_a_label_column_wins(tiny: Path, tmp_path: Path) -> None:
    table = tmp_path / "tweets.tsv"
    table.write_text("id\ttext\n1\tthe chef 😂\n2\tthe boat 🔥\n", encoding="utf-8")
    for source in (table, ["the chef 😂", "the boat 🔥"], [{"text": "the chef 😂"}, {"text": "the boat 🔥"}]):
        corpus = opened(source, tiny)
        assert (corpus.record_type.name, corpus.values, corpus.text(1)) == ("emoji", ["😂", "🔥"], "the boat")
    labelled = tmp_path / "labelled.tsv"
    labelled.write_text("label\tsentence\n7\tthe chef 😂\n3\tthe boat\n", encoding="utf-8")
    corpus = opened(labelled, tiny)
    assert (corpus.record_type.name, corpus.values, corpus.text(0)) == ("labelled", ["7", "3"], "the chef 😂")


def test_copies_of_a_text_are_held_out_together(samples: dict[str, Path], tiny: Path) -> None:
    corpus = opened(samples["emoji"], tiny)
    assert corpus.counts.duplicates > 50
    train, held = hold_out(corpus, 40, seed=1)
    assert len(held) >= 20
    assert not np.isin(corpus.keys[held], corpus.keys[train]).any()


@pytest.mark.parametrize("source", ["file", "list"])
def test_text_without_emoji_is_refused(source: str, sentences: Path, tiny: Path) -> None:
    given = sentences if source == "file" else ["the chef bakes", "the boat"]
    with pytest.raises(InputError, match=r"no emoji found in [0-9]+ texts.*columns text and label"):
        opened(given, tiny)
    with pytest.raises(InputError, match="no emoji found"):  # nothing half-built was left that would be found now
        opened(given, tiny)
