"""Paraphrases by a language model: which words give way, to what, and that the batch has no say in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import isotrope
from isotrope.encoders import paraphrase
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.paraphrase import Paraphraser, is_word, shaped
from isotrope.errors import InputError

TEXTS = [
    "The cat sees a DOG near the river.",
    "the old house",
    "We'll eat bread, often!",
    "12, 13 & 14",
    "北京 cat",
    "xylophone",
]


def changed(before: str, after: str) -> list[tuple[str, str]]:
    return [(a, b) for a, b in zip(before.split(), after.split(), strict=True) if a != b]


def test_every_known_word_is_replaced_and_the_rest_stays(fresh: Callable[[], Encoder]) -> None:
    found = dict(Paraphraser(fresh(), share=1.0).pairs(TEXTS))
    first = found["The cat sees a DOG near the river."]
    assert first is not None
    words = first.split()
    assert words[3] == "a"  # a single letter is no word
    assert words[4].isupper()
    assert words[0][0].isupper()
    assert first.endswith(".")
    assert len(changed("The cat sees a DOG near the river.", first)) == 7
    assert found["12, 13 & 14"] is None
    assert found["北京 cat"] is not None
    assert found["北京 cat"].startswith("北京 ")  # what the vocabulary cannot spell stays
    assert "'ll " in (found["We'll eat bread, often!"] or "")


def test_one_word_at_least_and_a_share_on_average(fresh: Callable[[], Encoder]) -> None:
    text = " ".join(["cat dog river stone bread"] * 4)
    counts = [len(changed(text, other or text)) for _, other in Paraphraser(fresh(), share=0.2).pairs([text] * 200)]
    assert min(counts) >= 1
    assert sum(counts) / 200 == pytest.approx(4, abs=0.4)
    scarce = [len(changed(text, other or text)) for _, other in Paraphraser(fresh(), share=1e-9).pairs([text] * 20)]
    assert set(scarce) == {1}


def test_the_word_itself_is_never_drawn_and_only_whole_words_are(fresh: Callable[[], Encoder]) -> None:
    encoder = fresh()
    whole = {word for word in encoder.tokenizer.get_vocab() if is_word(word)}
    drawn = {other for _, other in Paraphraser(encoder, share=1.0).pairs(["cat"] * 300)}
    assert None not in drawn
    assert "cat" not in drawn
    assert drawn <= whole
    assert 2 <= len(drawn) <= paraphrase.CHOICES


def test_the_likeliest_words_of_the_language_head_are_drawn(fresh: Callable[[], Encoder]) -> None:
    encoder = fresh()
    model = encoder.language_model
    assert model is not None
    tokens = encoder.frame([encoder.text_tokenizer.flat(["the cat walks"])[0]])
    with torch.no_grad():
        scores = model.eval()(input_ids=tokens.ids, attention_mask=tokens.mask).logits[0, 2]  # after [CLS] and "the"
    order = [encoder.tokenizer.convert_ids_to_tokens(int(number)) for number in scores.argsort(descending=True)]
    expected = [word for word in order if is_word(word) and word != "cat"][: paraphrase.CHOICES]
    drawn = set()
    for _, other in Paraphraser(encoder, share=0.5).pairs(["the cat walks"] * 400):
        assert other is not None
        drawn |= {after for before, after in changed("the cat walks", other) if before == "cat"}
    assert drawn <= set(expected)
    assert len(drawn) > 5


def test_neither_the_batch_nor_the_block_matters_but_the_seed_does(
    fresh: Callable[[], Encoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = TEXTS * 5
    whole = list(Paraphraser(fresh(), share=0.5).pairs(texts))
    assert [text for text, _ in whole] == texts
    monkeypatch.setattr(paraphrase, "BLOCK", 7)
    monkeypatch.setitem(paraphrase.TOKEN_BUDGET, "cpu", 16)
    assert list(Paraphraser(fresh(), share=0.5).pairs(texts)) == whole
    assert list(Paraphraser(fresh(), share=0.5, seed=1).pairs(texts)) != whole


def test_a_text_longer_than_the_model_reads_is_changed_in_the_part_it_reads(fresh: Callable[[], Encoder]) -> None:
    text = " ".join(["cat"] * 60)  # of 48 positions two are taken
    ((_, other),) = Paraphraser(fresh(), share=1.0).pairs([text])
    assert other is not None
    assert "cat" not in other.split()[:46]
    assert other.split()[46:] == ["cat"] * 14


def test_vocabularies_that_count_blanks_will_do(roberta: Path) -> None:
    encoder = isotrope.load(roberta, language_head=True, device="cpu")
    ((_, other),) = Paraphraser(encoder, share=1.0).pairs(["near the Cat, the old house often sees winter"])
    assert other is not None
    assert other.split()[2].endswith(",")
    assert "  " not in other
    assert len(changed("near the Cat, the old house often sees winter", other)) >= 6


def test_the_capitals_of_the_word_that_was_there() -> None:
    assert [shaped("dog", like) for like in ("cat", "Cat", "CAT", "A")] == ["dog", "Dog", "DOG", "Dog"]


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_that_cannot_be_is_refused(fresh: Callable[[], Encoder], share: float) -> None:
    with pytest.raises(InputError, match="share"):
        Paraphraser(fresh(), share)


def test_a_model_without_its_head_is_refused(bert: Path) -> None:
    with pytest.raises(InputError, match="masked-language head"):
        Paraphraser(isotrope.load(bert, device="cpu"))
