"""SNCSE: what is compared, where the negation stands, what is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.methods.sncse import SNCSE
from isotrope.objectives import bidirectional_margin, info_nce
from isotrope.views.negation import negation

Build = Callable[..., Any]
Law = Callable[..., Any]
pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
TEXTS = ["the chef bakes the bread", "a", "", "the [MASK] steers the boat"]


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    return lambda pooling="mask", **settings: built("sncse", sentences, pooling=pooling, **settings)


def test_the_card_and_the_papers_values() -> None:
    settings = SNCSE.Settings()
    assert SNCSE.card.read_out == "mask"
    assert (settings.temperature, settings.least_margin, settings.most_margin) == (0.05, 0.1, 0.3)
    assert settings.margin_weight == 1e-3


def test_the_negation_stands_in_the_template_of_the_positive(build: Build, batched: Build) -> None:
    method = build()
    batch = batched(method)
    second, tokenizer = method.second, method.encoder.text_tokenizer
    texts = [method.corpus.text(row, "") for row in range(8)]
    for name, frame, written in (
        ("first", tokenizer, texts),
        ("second", second, texts),
        ("negated", second, [negation(text)[0] for text in texts]),
    ):
        flat, lengths = tokenizer.flat(written)
        expected = frame.framed(flat, lengths, method.max_length)
        assert torch.equal(batch[name].ids, expected.ids), name
        assert ((batch[name].ids == tokenizer.mask).sum(dim=1) == 1).all()


def test_the_loss_is_the_contrast_and_the_margin(build: Build, batched: Build) -> None:
    """Negations are no candidates: without the margin's weight they change nothing."""
    method = build(temperature=0.2, least_margin=0.2, most_margin=0.25, margin_weight=0.5)
    batch = batched(method)
    found = method.represent(batch)
    first, second, negated = (found[name] for name in ("first", "second", "negated"))
    terms = method.loss(found, batch.generator())
    contrastive, margin = info_nce(first, second, 0.2), bidirectional_margin(first, second, negated, 0.2, 0.25)
    assert torch.allclose(terms["contrastive"], contrastive)
    assert torch.allclose(terms["margin"], margin)
    assert torch.allclose(Combined(method).total(terms), contrastive + 0.5 * margin)
    assert method.candidates(found) == 8
    gap = torch.cosine_similarity(first, negated) - torch.cosine_similarity(first, second)
    assert torch.allclose(method.measures(found)["negation_gap"], gap.mean())


def test_inference_reads_the_mask_here_and_elsewhere(build: Build, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    kept = build().export().eval()
    assert kept.pooling.name == "mask"
    assert not len(kept.parts)
    vectors = kept.encode(TEXTS)
    kept.save(tmp_path / "model")
    np.testing.assert_allclose(load(tmp_path / "model", device="cpu").encode(TEXTS), vectors, atol=1e-6)
    elsewhere = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(elsewhere.encode(TEXTS), vectors, atol=1e-5)


def test_a_run_says_how_many_texts_have_a_negation(build: Build) -> None:
    method = build()
    (said,) = method.prepared.remarks
    found = [negation(method.corpus.text(row, ""))[1] for row in range(len(method.corpus))]
    assert "of the first 400 texts are negated at a verb" in said
    assert "English" in said
    assert f"{np.mean(found):.0%}" in said
    assert "no template is used" in build("mean").prepared.remarks[0]


def test_settings_are_checked(build: Build) -> None:
    with pytest.raises(InputError, match="least_margin must be at most most_margin"):
        build(least_margin=0.4)
    with pytest.raises(InputError, match=r"one \[X\] for the text"):
        build(second_template="nothing")


def test_chunks_give_the_same_gradient(build: Build, chunks_agree: Law, chunks_equal_whole: Law) -> None:
    chunks_agree(build(margin_weight=1.0), build(margin_weight=1.0))
    # By the mean: at the mask of a model with random weights all texts are nearly alike.
    chunks_equal_whole(*(build("mean", dropout=0.0, margin_weight=1.0) for _ in range(2)))
