"""BART and TSDAE: the clean text is the target, all of it is asked, and nothing but the encoder is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import Records, running_text
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method_registry import find
from isotrope.methods.frame.settings import check

BOTH = ("bart", "tsdae")
Build = Callable[..., Any]
RUN = {"batch_size": 32, "learning_rate": 3e-3, "max_steps": 40, "eval_steps": 40, "held_out": 40, "max_length": 40}


def test_the_cards() -> None:
    assert (find("bart").card.needs, find("bart").card.year, find("bart").keeps) == ("documents", 2020, "last")
    assert (find("tsdae").card.needs, find("tsdae").card.year, find("tsdae").keeps) == ("sentences", 2021, "best")
    assert find("bart").Settings().noise == "permute:1,infill:0.3"  # type: ignore[attr-defined]
    assert find("tsdae").Settings().noise == "delete:0.6"  # type: ignore[attr-defined]
    assert find("tsdae").Settings().tie_weights  # type: ignore[attr-defined]
    assert find("tsdae").Settings().decoder_layers is None  # type: ignore[attr-defined]  # as deep as the encoder


@pytest.mark.parametrize("name", BOTH)
def test_the_target_is_the_clean_text_and_its_end(
    name: str, built: Build, batched: Callable[..., Batch], sentences: Path
) -> None:
    method = built(name, sentences)
    batch, corpus = batched(method, range(6)), method.corpus
    begin, end = method.encoder.text_tokenizer.prefix, method.encoder.text_tokenizer.suffix
    view = batch["target"]
    for row, length in enumerate(view.tokens.lengths):
        clean = [
            token for each in range(row, 8 if name == "bart" else row + 1) for token in corpus.tokens(each).tolist()
        ][:62]
        assert view.labels[row, :length].tolist() == clean + end
        assert view.tokens.ids[row, :length].tolist() == (begin + clean + end)[:length]
        assert (view.labels[row, length:] == -100).all()
        source = batch["source"]
        seen = source.ids[row, : source.lengths[row]].tolist()
        assert (seen[:1], seen[-1:]) == (begin, end)  # they stay in place under every noise
        assert seen[1:-1] != clean
        assert set(seen[1:-1]) <= {method.encoder.text_tokenizer.mask, *clean}
        assert batch["texts"].ids[row, : batch["texts"].lengths[row]].tolist() == begin + clean + end
    assert len(method.represent(batch)["target_losses"]) == int(view.tokens.lengths.sum())


def test_without_noise_the_source_is_the_text(built: Build, batched: Callable[..., Batch], sentences: Path) -> None:
    batch = batched(built("bart", sentences, noise="permute:0"))
    assert torch.equal(batch["source"].ids, batch["texts"].ids)


def test_whole_sentences_change_places(built: Build, sentences: Path) -> None:
    method = built("bart", sentences, noise="permute:1")
    text = method.text(method.corpus, 0)
    source, _ = method.example(text, np.random.default_rng(1))
    assert len(text) > 2
    assert source.tolist() != running_text(text).tolist()
    assert sorted(source.tolist()) == sorted(running_text(text).tolist())


def test_deletion_takes_its_share_and_leaves_a_word(built: Build, sentences: Path) -> None:
    method = built("tsdae", sentences)
    kept, total = 0, 0
    for row in range(400):
        (text,) = method.text(method.corpus, row)
        source, _ = method.example([text], np.random.default_rng(row))
        kept, total = kept + len(source), total + len(text.first)
    assert kept / total == pytest.approx(0.4, abs=0.03)
    assert all(len(method.example([text.cut(1)], np.random.default_rng(seed))[0]) for seed in range(20))


def test_texts_without_documents_are_single_sentences(built: Build, topics: list[str], tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text("\n".join(topics[:100]), encoding="utf-8")
    method = built("bart", file)
    assert method.text(method.corpus, 3)[0].first.tolist() == method.corpus.tokens(3).tolist()
    assert len(method.text(method.corpus, 3)) == 1
    assert "no empty line" in method.prepared.remarks[0]
    alone = built("bart", file, unit="sentence")
    assert alone.prepared.remarks == ()
    assert alone.corpus.record_type.name == "sentences"


def test_runs_stay_in_their_document_and_fit(built: Build, sentences: Path) -> None:
    method = built("bart", sentences)
    for row in (0, 5, 7):
        text = method.text(method.corpus, row)
        assert len(running_text(text)) <= method.room == 62
        assert len(text) <= 8 - row
    assert len(running_text(method.text(method.corpus, 0))) == 62


def test_the_decoder_of_tsdae_sees_the_vector_alone(
    built: Build, batched: Callable[..., Batch], sentences: Path
) -> None:
    method = built("tsdae", sentences).eval()
    batch = batched(method, range(4))
    memory, mask = method.memory(batch)
    assert mask is None
    assert torch.allclose(memory.squeeze(1), method.encoder.embed(batch["source"])[0])
    other = method.represent(Batch({**batch.views, "source": batched(method, range(8, 12))["source"]}, 4, 0))
    assert not torch.allclose(other["target_losses"], method.represent(batch)["target_losses"], atol=1e-4)
    assert built("tsdae", sentences, pooling="cls+mean").memory(batch)[0].shape == (4, 1, 64)


def test_tied_weights_learn_at_the_encoders_rate(built: Build, sentences: Path) -> None:
    method = built("tsdae", sentences)
    own, rates = {id(p) for p in method.encoder.parameters()}, Combined(method).rates(1.0)
    assert not own & set(rates)
    crossed = [p for name, p in method.named_parameters() if "crossattention" in name]
    assert {rates[id(p)] for p in crossed} == {10.0}
    apart = built("tsdae", sentences, tie_weights=False, decoder_layers=1)
    assert len(apart.tower["decoder"].module.model.encoder.layer) == 1


def test_a_uniform_guess_costs_the_logarithm_of_the_vocabulary(
    built: Build, batched: Callable[..., Batch], uniform: Callable[[int], torch.nn.Module], sentences: Path
) -> None:
    method = built("bart", sentences)
    batch, vocabulary = batched(method), method.encoder.text_tokenizer.vocabulary
    method.tower["words"].module._scores = uniform(vocabulary)
    found = method.represent(batch)
    assert float(method.loss(found, batch.generator())["bart"]) == pytest.approx(math.log(vocabulary))
    assert float(method.on_held_out(found)["bart_perplexity"]) == pytest.approx(vocabulary, rel=1e-4)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_training_lowers_the_perplexity_of_held_out_text_and_drops_the_decoder(
    name: str, tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    run = isotrope.train(name, sentences, tiny, tmp_path / "run", **RUN)
    before, after = (line["evaluation"][f"{name}_perplexity"] for line in run.history if "evaluation" in line)
    assert after < 0.2 * before
    kept = isotrope.load(tmp_path / "run" / "model").state_dict()
    assert kept.keys() == isotrope.load(tiny).state_dict().keys()
    assert not run.encoder.causal


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_added_masked_language_modelling_reads_the_clean_text(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {"batch_size": 8, "max_steps": 2, "eval_steps": 2, "logging_steps": 1, "held_out": 0, "mlm_weight": 0.5}
    run = isotrope.train("bart", sentences, tiny, tmp_path / "run", **settings)
    line = next(line for line in run.history if "loss" in line)
    assert line["loss"] == pytest.approx(line["bart"] + 0.5 * line["mlm"], rel=1e-5)


@pytest.mark.parametrize(
    ("name", "bad", "named"),
    [
        ("bart", {"noise": "blur:0.3"}, "Unknown noise"),
        ("bart", {"unit": "page"}, "unit"),
        ("bart", {"decoder_layers": 0}, "decoder_layers"),
        ("bart", {"decoder_rate": 0.0}, "decoder_rate"),
        ("bart", {"infill_length": 0.0}, "infill_length"),
        ("tsdae", {"noise": "delete:1"}, "not 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(name: str, bad: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        check(find(name).Settings(**bad))


def test_no_room_for_a_text_is_refused(built: Build, sentences: Path) -> None:
    method = built("bart", sentences)
    with pytest.raises(InputError, match="at least 3"):
        find("bart")(method.settings, method.encoder, 2, method.corpus)
    records = Records(method.corpus, [0])
    shortest = find("bart")(method.settings, method.encoder, 3, method.corpus).views(records, np.random.default_rng(0))
    assert shortest["target"].tokens.ids.shape == (1, 2)  # type: ignore[attr-defined]
