"""Sentences that follow each other have the ids of the running text, whatever the tokenizer does with blanks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from isotrope.data.corpus import Corpus, open_corpus, running_text
from isotrope.data.packing import files_of_documents, held_documents, pack
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.corruption import parse_noise
from isotrope.views.segments import ids_of

KINDS = ("tokenizer", "byte_tokenizer", "sentence_pieces")
DOCUMENTS = [
    ["The old dog eats.", "One fox sees the river.", "(It walks.)", "2 cats eat, and 'tis late."],
    ["the river", "The stone is old!"],
    ["cat"],
]


@pytest.fixture(params=KINDS)
def any_tokenizer(request: pytest.FixtureRequest) -> TextTokenizer:
    found: TextTokenizer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def corpus(any_tokenizer: TextTokenizer, tmp_path: Path) -> Corpus:
    path = tmp_path / "documents.txt"
    path.write_text("\n\n".join("\n".join(document) for document in DOCUMENTS) + "\n", encoding="utf-8")
    return open_corpus(path, ["documents"], any_tokenizer)


def ids(tokenizer: TextTokenizer, text: str) -> list[int]:
    return list(tokenizer.tokenizer(text, add_special_tokens=False)["input_ids"])


def test_a_whole_document_has_the_ids_of_its_text(corpus: Corpus, any_tokenizer: TextTokenizer) -> None:
    for start, document in zip(corpus.starts.tolist(), DOCUMENTS, strict=True):
        assert corpus.joined(start).tolist() == ids(any_tokenizer, " ".join(document))
    assert corpus.document_tokens().tolist() == [len(ids(any_tokenizer, " ".join(each))) for each in DOCUMENTS]


def test_a_run_of_sentences_begins_like_a_text(corpus: Corpus, any_tokenizer: TextTokenizer) -> None:
    for first in range(4):
        assert corpus.tokens(first).tolist() == ids(any_tokenizer, DOCUMENTS[0][first])
        for last in range(first + 1, 5):
            expected = ids(any_tokenizer, " ".join(DOCUMENTS[0][first:last]))
            assert ids_of(corpus, range(first, last)).tolist() == expected
            assert corpus.reach(first, len(expected)) == last - first
            assert corpus.reach(first, len(expected) + 1) == min(last - first + 1, 4 - first)


def test_sentences_that_change_places_are_joined_anew(corpus: Corpus, any_tokenizer: TextTokenizer) -> None:
    """BART's permutation: what came first stands behind another now, and needs its blank."""
    sentences = [corpus.sentence(row) for row in corpus.document(0)]
    assert running_text(sentences).tolist() == corpus.joined(0).tolist()
    corruptor = parse_noise("permute:1")(any_tokenizer)
    found = corruptor(sentences, np.random.default_rng(1)).tolist()
    texts = dict(zip(map(id, sentences), DOCUMENTS[0], strict=True))
    rng = np.random.default_rng(1)
    order = rng.choice(4, 4, replace=False)
    assert order.tolist() != [0, 1, 2, 3]
    assert found == ids(any_tokenizer, " ".join(texts[id(sentences[place])] for place in order))


def test_packed_rows_hold_the_running_text(any_tokenizer: TextTokenizer, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    documents = [DOCUMENTS[number % 2] for number in range(40)]
    path.write_text("\n\n".join("\n".join(document) for document in documents) + "\n", encoding="utf-8")
    packed = pack([path], any_tokenizer, 1, 2, 12)
    expected = [
        token
        for document, aside in zip(documents, held_documents(files_of_documents([path])), strict=True)
        for token in ([] if aside else [2, *ids(any_tokenizer, " ".join(document))])
    ]
    body = packed.train[:, 1:-1].flatten().tolist()
    assert body == expected[: len(body)]
    assert len(expected) - len(body) < 10


def test_only_byte_pairs_need_a_second_form(
    tokenizer: TextTokenizer, byte_tokenizer: TextTokenizer, sentence_pieces: TextTokenizer, tmp_path: Path
) -> None:
    assert [one.blanks_count for one in (tokenizer, byte_tokenizer, sentence_pieces)] == [False, True, False]
    corpora = [
        open_corpus([["the dog", "the cat"]], ["documents"], one)
        for one in (tokenizer, byte_tokenizer, sentence_pieces)
    ]
    assert [(corpus.folder / "running").is_file() for corpus in corpora] == [False, True, False]


def test_a_dummy_blank_of_the_normalizer_is_not_doubled(sentence_pieces: TextTokenizer) -> None:
    """Llama's tokenizer puts the blank before every text, blank or not: " B" would have two."""
    from tokenizers import Tokenizer, models, normalizers
    from transformers import PreTrainedTokenizerFast

    letters = {letter: number for number, letter in enumerate(["<unk>", "▁", *"abcdefghijklmnopqrstuvwxyzTO2"])}
    pieces = Tokenizer(models.BPE(letters, [], unk_token="<unk>"))
    pieces.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    own = TextTokenizer(PreTrainedTokenizerFast(tokenizer_object=pieces, unk_token="<unk>", pad_token="<unk>"))
    for first, second in pairwise(["the cat", "The dog", "One"]):
        joined = [*own.opening([first])[0].tolist(), *own.following([second])[0].tolist()]
        assert joined == ids(own, f"{first} {second}")
