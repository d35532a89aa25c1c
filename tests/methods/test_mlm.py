"""Masked language modelling: at masked positions only, alone and beside another method."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import Records, open_corpus
from isotrope.errors import InputError
from isotrope.methods.frame.auxiliary import Beside
from isotrope.methods.frame.method import Batch
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.methods.simcse import SimCSE, SimCSESettings


@pytest.fixture
def method(tiny: Path) -> MaskedLanguageModel:
    return MaskedLanguageModel(MLMSettings(), isotrope.load(tiny, language_head=True), 64).eval()


def records_of(method: MaskedLanguageModel, source: Path) -> Records:
    tokenizer = method.encoder.text_tokenizer
    corpus = open_corpus(source, ("sentences",), tokenizer)
    return Records(corpus, list(range(6)))


def test_equal_to_the_full_softmax_of_transformers(method: MaskedLanguageModel, sentences: Path) -> None:
    batch = Batch(method.views(records_of(method, sentences), np.random.default_rng(0)), 6, 0)
    ours = method.loss(method.represent(batch), batch)["mlm"]
    view = batch["masked"]
    theirs = method.encoder.language_model(
        input_ids=view.tokens.ids, attention_mask=view.tokens.mask, labels=view.labels
    ).loss  # type: ignore[misc]
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)


def test_beside_simcse_it_adds_its_weighted_term_and_leaves_the_other_alone(tiny: Path, sentences: Path) -> None:
    encoder = isotrope.load(tiny, pooling="cls", language_head=True)
    own = SimCSE(SimCSESettings(dropout=0.0), encoder, 64)
    mlm = MaskedLanguageModel(MLMSettings(), encoder, 64)
    joined = Beside(own, mlm, 0.1)
    batch = Batch(joined.views(records_of(mlm, sentences), np.random.default_rng(0)), 6, 0)
    terms = joined.loss(joined.represent(batch), batch)
    alone = own.loss(own.represent(batch), batch)["contrastive"]
    assert terms["contrastive"].item() == pytest.approx(alone.item(), rel=1e-5)
    assert joined.total(terms).item() == pytest.approx((terms["contrastive"] + 0.1 * terms["mlm"]).item(), rel=1e-6)
    joined.total(terms).backward()
    decoder = encoder.language_model.cls.predictions.transform.dense  # type: ignore[union-attr]
    assert decoder.weight.grad.abs().sum() > 0
    assert set(map(id, joined.parameters())) >= set(map(id, own.parameters()))


def test_training_lowers_its_loss_and_keeps_the_head(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    run = isotrope.train(
        "mlm",
        sentences,
        model=tiny,
        output=tmp_path / "run",
        max_steps=40,
        batch_size=32,
        learning_rate=5e-3,
        eval_steps=40,
        held_out=40,
    )
    losses = [line["mlm"] for line in run.history if "mlm" in line]
    assert losses[-1] < 0.8 * losses[0]
    again = isotrope.load(run.folder / "model", language_head=True)
    trained = run.encoder.language_model
    assert trained is not None
    assert again.language_model is not None
    for (name, kept), saved in zip(trained.named_parameters(), again.language_model.parameters(), strict=True):
        assert torch.equal(kept, saved), name


def test_a_model_without_a_head_is_refused(tiny: Path) -> None:
    with pytest.raises(InputError, match="masked-language head"):
        MaskedLanguageModel(MLMSettings(), isotrope.load(tiny), 64)


def test_a_weight_beside_itself_is_refused(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mlm has Masked language modelling among its own terms"):
        isotrope.train("mlm", sentences, tiny, tmp_path / "run", mlm_weight=0.1)
    assert not (tmp_path / "run").exists()
