"""A model with a prompt is trained as it encodes: the prompt stands before each text, and nothing edits it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import Records, open_corpus
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.method_registry import find
from isotrope.tokens.padded import Tokens
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.masking import mask_tokens

PROMPTS = ("chef: ", "the sailor", "")
TEXTS = ["the chef bakes the bread", "salt and soup", "2 boats"]


@pytest.fixture
def prompted(tiny: Path, tmp_path: Path) -> Path:
    """The tiny encoder with a default prompt."""
    encoder = load(tiny, device="cpu", language_head=True)
    encoder.prompt = "the sailor : "
    encoder.save(tmp_path / "prompted")
    return tmp_path / "prompted"


@pytest.fixture
def seen_by_encode(monkeypatch: pytest.MonkeyPatch) -> Callable[[Encoder, list[str]], list[list[int]]]:
    """The rows of ids that ``encode`` gives to the backbone, by text."""

    def rows(encoder: Encoder, texts: list[str]) -> list[list[int]]:
        found, plain = [], Encoder.forward
        with monkeypatch.context() as patch:
            patch.setattr(Encoder, "forward", lambda self, tokens: (found.append(tokens), plain(self, tokens))[1])
            for text in texts:
                encoder.encode(text)
        return [ids for tokens in found for ids in unpadded(tokens)]

    return rows


def unpadded(tokens: Tokens) -> Iterator[list[int]]:
    return (row[:length] for row, length in zip(tokens.ids.tolist(), tokens.lengths.tolist(), strict=True))


@pytest.mark.parametrize("kind", ["tokenizer", "byte_tokenizer", "sentence_pieces"])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_prompt_and_text_make_up_the_ids_of_both(kind: str, prompt: str, request: pytest.FixtureRequest) -> None:
    plain: TextTokenizer = request.getfixturevalue(kind)
    tokenizer = TextTokenizer(plain.tokenizer, prompt)
    ids, lengths = tokenizer.opening(TEXTS)
    framed = tokenizer.frame(np.split(ids, np.cumsum(lengths)[:-1]), 100)
    expected = [tokenizer.tokenizer(prompt + text)["input_ids"] for text in TEXTS]
    assert list(unpadded(framed)) == expected
    assert (tokenizer.fingerprint() == plain.fingerprint()) == (prompt == "")


def test_a_text_that_grows_into_the_prompt_is_taken_alone(byte_tokenizer: TextTokenizer) -> None:
    tokenizer = TextTokenizer(byte_tokenizer.tokenizer, "fox:")
    assert len(tokenizer.prompt_ids) > 1
    assert tokenizer.opening(["dog"])[0].tolist() == byte_tokenizer.flat(["dog"])[0].tolist()


@pytest.mark.parametrize(
    ("method", "kind", "views"),
    [
        ("simcse", "sentences", {"first": "text"}),
        ("simcse-supervised", "triples", {"anchor": "anchor", "positive": "positive", "negative": "negative"}),
        ("cosent", "scored-pairs", {"first": "sentence1", "second": "sentence2"}),
        ("clm", "sentences", {"texts": "text"}),
    ],
)
@pytest.mark.parametrize("max_length", [None, 12])
def test_views_have_the_ids_that_encode_uses(
    method: str,
    kind: str,
    views: dict[str, str],
    max_length: int | None,
    prompted: Path,
    samples: dict[str, Path],
    seen_by_encode: Any,
) -> None:
    method_class = find(method)
    encoder = load(prompted, "mean", "cpu", method_class.language_head)
    encoder.max_length = max_length or encoder.max_length
    chosen = method_class.Settings()
    corpus = open_corpus(samples[kind], method_class.record_types(chosen), encoder.text_tokenizer)
    built: Any = method_class(chosen, encoder, None, corpus)
    records = Records(corpus, [3, 0, 7])
    found = built.views(records, np.random.default_rng(0))
    for view, field in zip(views, records.fields, strict=True):
        assert list(unpadded(found[view])) == seen_by_encode(encoder, records.texts(field)), views[view]
    assert all(
        ids[: len(encoder.text_tokenizer.prefix)] == encoder.text_tokenizer.prefix for ids in unpadded(found[view])
    )


def test_no_edit_and_no_mask_touches_the_prompt(prompted: Path, samples: dict[str, Path]) -> None:
    encoder = load(prompted, "mean", "cpu", language_head=True)
    prefix = torch.tensor(encoder.text_tokenizer.prefix)
    assert len(prefix) == 4  # [CLS] and three tokens
    for name, settings in (("simclr", {}), ("moco", {}), ("mlm", {}), ("rtd", {}), ("tsdae", {}), ("infoword", {})):
        method_class = find(name)
        chosen = method_class.Settings(**settings)
        corpus = open_corpus(samples["sentences"], method_class.record_types(chosen), encoder.text_tokenizer)
        views = method_class(chosen, encoder, 24, corpus).views(Records(corpus, range(40)), np.random.default_rng(0))
        texts = [getattr(view, "tokens", view) for part, view in views.items() if part not in ("target", "words")]
        rows = [view.ids for view in texts if isinstance(view, Tokens)]
        assert rows
        assert all(bool((ids[:, : len(prefix)] == prefix).all()) for ids in rows), name
    masked = mask_tokens(encoder.tokenize(TEXTS), encoder.text_tokenizer, np.random.default_rng(0), rate=0.99)
    assert not bool((masked.labels[:, :4] >= 0).any())
    assert bool((masked.labels[:, 4:] >= 0).any())


def test_pairs_in_one_row_have_no_prompt_and_are_masked_from_the_first_token(prompted: Path) -> None:
    tokenizer = load(prompted, device="cpu").text_tokenizer
    ids = tokenizer.flat(["the chef bakes"])[0]
    pairs = tokenizer.frame_pairs([ids], [ids])
    assert pairs.ids[0, 1 : 1 + len(ids)].tolist() == ids.tolist()
    masked = mask_tokens(pairs, tokenizer, np.random.default_rng(0), rate=0.999)
    assert bool((masked.labels[0, 1 : 1 + len(ids)] >= 0).all())


def test_a_trained_model_keeps_its_prompt(prompted: Path, sentences: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_steps": 2, "batch_size": 8, "eval_steps": 2}
    run = isotrope.train("simcse", sentences, model=prompted, output=tmp_path / "run", **settings)
    again = isotrope.load(tmp_path / "run" / "model", device="cpu")
    assert again.prompt == "the sailor : "
    assert np.allclose(again.encode(TEXTS), run.encoder.encode(TEXTS), atol=1e-5)


def test_the_prompt_is_given_to_a_causal_model_and_not_asked_of_it(prompted: Path, samples: dict[str, Path]) -> None:
    method_class = find("clm")
    encoder = load(prompted, "mean", "cpu", language_head=True)
    corpus = open_corpus(samples["sentences"], ["sentences"], encoder.text_tokenizer)
    method: Any = method_class(method_class.Settings(), encoder, None, corpus)
    batch = Batch(method.views(Records(corpus, [0, 1]), np.random.default_rng(0)), 2, 0)
    expected = sum(len(corpus.tokens(row)) + 1 for row in (0, 1))  # the text and the token that ends it
    assert len(method.represent(batch)["next_losses"]) == expected
