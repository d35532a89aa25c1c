"""Three tokenizers: pieces of words, pieces of bytes with blanks that count, and a SentencePiece."""

from __future__ import annotations

import pytest

from isotrope.encoders.fresh import fresh_encoder
from isotrope.tokens.text_tokenizer import TextTokenizer

LINES = [
    f"the {a} {b} sees one {c} over the old {a}"
    for a in "cat dog fox".split()
    for b in "walks eats".split()
    for c in "river stone".split()
]
LETTERS = ["the quick brown fox jumps over the lazy dog", "pack my box with five dozen liquor jugs"]


@pytest.fixture(scope="session")
def tokenizer() -> TextTokenizer:
    return fresh_encoder(LINES + LETTERS, vocabulary=200, layers=1, width=8, heads=1, max_length=32).text_tokenizer


@pytest.fixture(scope="session")
def byte_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    from tokenizers import ByteLevelBPETokenizer
    from transformers import AutoTokenizer, RobertaConfig

    folder = tmp_path_factory.mktemp("bytes")
    pieces = ByteLevelBPETokenizer()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces.train_from_iterator(LINES, vocab_size=320, min_frequency=1, special_tokens=specials, show_progress=False)
    pieces.save_model(str(folder))
    RobertaConfig().save_pretrained(folder)  # by the config AutoTokenizer knows the class, on every transformers 5
    return TextTokenizer(AutoTokenizer.from_pretrained(folder))


@pytest.fixture(scope="session")
def sentence_pieces() -> TextTokenizer:
    """A unigram model that puts a blank before every text by itself, as XLM-R, ALBERT and T5 do."""
    from tokenizers import Regex, SentencePieceUnigramTokenizer
    from tokenizers.normalizers import Replace
    from transformers import PreTrainedTokenizerFast

    pieces = SentencePieceUnigramTokenizer()
    pieces.normalizer = Replace(Regex(" {2,}"), " ")
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    pieces.train_from_iterator(
        [*LINES, *LETTERS], vocab_size=120, special_tokens=specials, unk_token="<unk>", show_progress=False
    )
    return TextTokenizer(
        PreTrainedTokenizerFast(
            tokenizer_object=pieces._tokenizer, pad_token="<pad>", unk_token="<unk>", mask_token="<mask>"
        )
    )
