"""Causal language modelling: nobody sees what comes, every token is asked once, the mask is saved with the model."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import Records
from isotrope.encoders.causal import make_causal, sees_only_the_past
from isotrope.errors import InputError
from isotrope.methods.clm import CausalLanguageModel, before_the_last
from isotrope.methods.frame.batch import Batch
from isotrope.tokens.padded import Tokens

Build = Callable[..., Any]
TEXTS = ["the chef bakes", "the sailor steers the boat across the windy bay", "salt"]


def test_the_card() -> None:
    card = CausalLanguageModel.card
    assert (card.name, card.needs, card.year, CausalLanguageModel.keeps) == ("clm", "sentences", 2018, "last")


@pytest.mark.parametrize("padding", [0, 3])
def test_changing_a_token_changes_nothing_before_it(built: Build, sentences: Path, padding: int) -> None:
    """With padding the mask is a tensor, without it is a flag of the attention: both ways must be causal."""
    method = built("clm", sentences).eval()
    ids = torch.arange(10, 20).repeat(2, 1)
    for place in range(10):
        other = ids.clone()
        other[1, place] = 55
        mask = torch.ones_like(ids)
        mask[1, 10 - padding :] = 0
        mask[0] = mask[1]
        tokens = Tokens(other, mask, np.full(2, 10 - padding))
        with torch.no_grad():
            scores = method.scores(method.encoder.states(tokens))
        assert torch.equal(scores[0, :place], scores[1, :place])
        if place < 10 - padding:
            assert not torch.allclose(scores[0, place], scores[1, place])


def test_without_the_mask_it_would_see_what_comes(tiny: Path) -> None:
    encoder = isotrope.load(tiny, device="cpu")
    assert not sees_only_the_past(encoder.backbone)
    assert not encoder.causal
    fingerprint = encoder.fingerprint()
    make_causal(encoder)
    assert sees_only_the_past(encoder.backbone)
    assert encoder.causal
    assert encoder.fingerprint() != fingerprint


def test_each_token_but_the_first_is_asked_once(built: Build, sentences: Path, batched: Callable[..., Batch]) -> None:
    """Against a loop that shows the model nothing but what came before."""
    method = built("clm", sentences).eval()
    batch = batched(method, range(3))
    found = method.represent(batch)["next_losses"]
    tokens = batch["texts"]
    expected = []
    for ids, length in zip(tokens.ids, tokens.lengths, strict=True):
        for place in range(1, int(length)):
            shown = ids[:place].unsqueeze(0)
            states = method.encoder.states(Tokens(shown, torch.ones_like(shown), np.array([place])))
            expected.append(-torch.log_softmax(method.scores(states[0, -1]), dim=0)[ids[place]])
    assert torch.allclose(found, torch.stack(expected), atol=1e-4)
    assert len(found) == int((tokens.lengths - 1).sum())
    assert float(method.loss({"next_losses": found}, batch.generator())["clm"].detach()) == pytest.approx(
        float(found.mean().detach())
    )


def test_positions_that_another_token_follows() -> None:
    assert before_the_last(np.array([3, 1, 2]), 4).tolist() == [0, 1, 8]


def test_a_uniform_guess_costs_the_logarithm_of_the_vocabulary(
    built: Build, sentences: Path, batched: Callable[..., Batch], uniform: Callable[[int], torch.nn.Module]
) -> None:
    method = built("clm", sentences)
    batch = batched(method)
    vocabulary = method.encoder.text_tokenizer.vocabulary
    method.scores = uniform(vocabulary)
    found = method.represent(batch)
    assert float(method.loss(found, batch.generator())["clm"]) == pytest.approx(math.log(vocabulary))
    assert float(method.on_held_out(found)["clm_perplexity"]) == pytest.approx(vocabulary, rel=1e-4)


@pytest.mark.parametrize("pooling", ["mean", "lasttoken", "weightedmean"])
def test_a_saved_model_is_causal_wherever_it_is_loaded(
    built: Build, sentences: Path, pooling: str, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    exported = built("clm", sentences, pooling=pooling).export().eval()
    expected = exported.encode(TEXTS)
    exported.save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))["is_decoder"] is True
    assert json.loads((tmp_path / "model" / "isotrope.json").read_text(encoding="utf-8"))["causal"] is True
    for head in (False, True):
        again = isotrope.load(tmp_path / "model", device="cpu", language_head=head)
        assert sees_only_the_past(again.backbone)
        assert np.allclose(again.encode(TEXTS), expected, atol=1e-5)
    assert np.allclose(SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(TEXTS), expected, atol=1e-5)
    # Without the word in config.json the vectors would be others: the check above can fail.
    shutil.copytree(tmp_path / "model", tmp_path / "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "other" / "config.json").write_text(json.dumps({**config, "is_decoder": False}), encoding="utf-8")
    assert np.abs(isotrope.load(tmp_path / "other", device="cpu").encode(TEXTS) - expected).max() > 1e-4


def test_a_plain_model_says_nothing_of_a_mask(tiny: Path, tmp_path: Path) -> None:
    isotrope.load(tiny, device="cpu").save(tmp_path / "plain")
    assert "causal" not in json.loads((tmp_path / "plain" / "isotrope.json").read_text(encoding="utf-8"))


def test_padding_does_not_matter_to_the_encoder(built: Build, sentences: Path) -> None:
    for pooling in ("mean", "lasttoken"):
        encoder = built("clm", sentences, pooling=pooling).export()
        assert np.allclose(encoder.encode(TEXTS), np.stack([encoder.encode(text) for text in TEXTS]), atol=1e-5)


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_training_lowers_the_perplexity_of_held_out_text_and_the_model_stays_causal(
    tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    settings = {"batch_size": 32, "learning_rate": 5e-3, "max_steps": 40, "eval_steps": 40, "held_out": 40}
    run = isotrope.train("clm", sentences, tiny, tmp_path / "run", **settings)
    before, after = (line["evaluation"]["clm_perplexity"] for line in run.history if "evaluation" in line)
    assert after < 0.3 * before
    assert sees_only_the_past(run.encoder.backbone)
    assert not isotrope.load(tiny).causal


def test_added_masked_language_modelling_keeps_a_term_of_its_own(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {"batch_size": 8, "max_steps": 2, "eval_steps": 2, "logging_steps": 1, "held_out": 0, "mlm_weight": 0.5}
    run = isotrope.train("clm", sentences, tiny, tmp_path / "run", **settings)
    line = next(line for line in run.history if "loss" in line)
    assert line["loss"] == pytest.approx(line["clm"] + 0.5 * line["mlm"], rel=1e-5)


def test_models_and_poolings_that_cannot_work_are_refused(tiny: Path, sentences: Path, built: Build) -> None:
    from transformers import DistilBertConfig, DistilBertForMaskedLM

    for pooling in ("cls", "cls+mean"):
        with pytest.raises(InputError, match="first token sees no other"):
            built("clm", sentences, pooling=pooling)
    encoder = isotrope.load(tiny, device="cpu")
    with pytest.raises(InputError, match="language head"):
        CausalLanguageModel(CausalLanguageModel.Settings(), encoder, 64)
    config = DistilBertConfig(
        vocab_size=encoder.text_tokenizer.vocabulary,
        dim=32,
        n_layers=1,
        n_heads=2,
        hidden_dim=64,
        max_position_embeddings=64,
    )
    model = DistilBertForMaskedLM(config)
    plain = isotrope.Encoder(model.distilbert, encoder.tokenizer, language_model=model)
    with pytest.raises(InputError, match="no causal form"):
        CausalLanguageModel(CausalLanguageModel.Settings(), plain, 64)


def test_records_are_texts_of_one_row(built: Build, sentences: Path) -> None:
    method = built("clm", sentences)
    view = method.views(Records(method.corpus, [0, 1]), np.random.default_rng(0))["texts"]
    assert view.ids[0, 1 : view.lengths[0] - 1].tolist() == method.corpus.tokens(0).tolist()
