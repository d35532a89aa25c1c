"""The sentence splitter: English, Chinese, both at once; nothing but white space is ever lost."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isotrope.data.sentences import split_sentences

# A bar marks where the splitter must cut, so that each case reads as text.
ENGLISH = [
    "It rains.| We stay in.",
    "Is it late?| Yes!| Then go.",
    "Dr. Smith met Mrs. Jones on Jan. 5 at Acme Inc. Ltd. offices.| They spoke.",
    "Use a knife, e.g. a sharp one, i.e. not this.| Or scissors etc. if you like.",
    "J. R. R. Tolkien and J.R.R. Tolkien are one man.| So is George W. Bush.",
    "The U.S. economy grew at 5 p.m. Friday.| Markets rose.",
    "Pi is 3.14 or so.| Version 2.0.1 is out.| It costs $1.50.",
    "See Fig. 3 and No. 5 in vol. 2.| It is clear.",
    "He said no.| She left.",
    "The cat sat.| The dog looked at the sun.| Night fell.",
    "It was I.| Nobody else came.",
    'He said "Stop."| Then he left.',
    "“It is over.”| She wept.",
    "(It was cold.)| We went home.",
    "'Is it?'| She nodded.",
    '"Are you well?" she asked.| He was.',
    "“Stop!” he cried.| Nobody did.",
    "Well... maybe not.| Wait...| What was that?",
    "Well… maybe not.| Wait…| What was that?",
    "What?!| No way!!| Fine.",
    "visit example.com or mail a.b@c.org today.| Thanks.",
    "the end. of it is here",
    "no stop at the end.| None",
    "It cost 5.| 7 came later.",
]
CHINESE = [
    "今天下雨。|我们在家。",
    "你好吗？|很好！|走吧。",
    "真的吗？！|太好了！！！|走。",
    "他说：“今天下雨。”|我没有回答。",
    "「好的。」|『真的？』|（是的。）|走吧",
    "我想……|算了。",
    "我想……，还是算了。|好。",
    "他说：“也许……”|然后走了。",
    "价格是3.14元。|版本2.0好用！",
    "没有句号",
]
MIXED = [
    "我用Python 3.10。|It works well.| 很好！|Thanks.",
    "Dr. Wang说：“可以。”|Then he left.| 再见。",
    "他在U.S. Steel工作。|No. 5号楼。",
]


@pytest.mark.parametrize("marked", ENGLISH + CHINESE + MIXED)
def test_text_is_cut_at_the_marks_and_nowhere_else(marked: str) -> None:
    assert split_sentences(marked.replace("|", "")) == [part.strip() for part in marked.split("|")]


def test_a_blank_line_always_ends_a_sentence() -> None:
    assert split_sentences("A title\n\nthe text goes\non here\r\n \r\nthe end") == [
        "A title",
        "the text goes on here",
        "the end",
    ]


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\u3000\n"])
def test_white_space_holds_no_sentence(text: str) -> None:
    assert split_sentences(text) == []


def test_white_space_is_folded() -> None:
    assert split_sentences(" It \t rains.\n We   stay. ") == ["It rains.", "We stay."]


# Letters alone would hardly ever meet a stop, so most of the alphabet is stops, quotes and spaces.
tricky = st.lists(
    st.sampled_from([*".!?。！？…\"'”’」）)]“‘「（([ \n\u3000", *"aAI1中", "Mr", "e.g", "No"]), max_size=40
).map("".join)


@given(st.one_of(tricky, st.text(max_size=60)))
@example("a…”。”… b")
@example("Mr.\n\n.")
@settings(deadline=None)
def test_nothing_but_white_space_is_lost(text: str) -> None:
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence and sentence == " ".join(sentence.split()) for sentence in sentences)


@pytest.mark.parametrize("sentence", ["it went on. ", "It went on. ", "他走了。"])
def test_a_book_in_one_line_is_cut(sentence: str) -> None:
    # Looking at all the text before or behind each stop would take a minute here.
    found = split_sentences(sentence * 100_000)
    assert "".join(found).replace(" ", "") == (sentence * 100_000).replace(" ", "")


@pytest.mark.parametrize("line", ["See" + "." * 400_000 + "x now. Then", "…" * 400_000 + ", so", "!?" * 200_000 + "x."])
def test_a_line_of_stops_is_looked_at_once(line: str) -> None:
    # From each stop to the end of its run would take twenty minutes.
    assert "".join(split_sentences(line)).replace(" ", "") == line.replace(" ", "")
