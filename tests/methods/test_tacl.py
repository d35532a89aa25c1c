"""TaCL: what is compared, what is frozen, what is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

import isotrope
from isotrope.data.corpus import Corpus
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.methods.tacl import TaCL
from isotrope.objectives import token_contrast
from isotrope.training.state import TrainingWarning

Build = Callable[..., Any]


def states(module: Any, tokens: Any) -> torch.Tensor:
    segments = {} if tokens.segments is None else {"token_type_ids": tokens.segments}
    return module(input_ids=tokens.ids, attention_mask=tokens.mask, **segments).last_hidden_state


def test_hidden_tokens_are_compared_with_the_clean_sentence(
    built: Build, sentences: Path, batched: Callable[..., Batch]
) -> None:
    """The student reads the masked sentence, the teacher the clean one; the loss is the objective's, and MLM counts
    once.
    """
    method = built("tacl", sentences, temperature=0.1, contrast_weight=3.0, next_sentence_weight=0.0).eval()
    batch = batched(method)
    clean, view = batch["clean"], batch["masked"]
    assert torch.equal(torch.where(view.labels >= 0, view.labels, view.tokens.ids), clean.ids)
    assert not torch.equal(view.tokens.ids, clean.ids)
    student, teacher = states(method.encoder.backbone, view.tokens), states(method.encoder.backbone, clean)
    terms = method.loss(method.represent(batch), batch.generator())
    expected = token_contrast(student, teacher, clean.mask > 0, view.labels >= 0, 0.1)
    assert terms["token_contrast"].item() == pytest.approx(expected.item(), rel=1e-5)
    theirs = method.encoder.language_model(
        input_ids=view.tokens.ids, attention_mask=view.tokens.mask, labels=view.labels
    ).loss  # type: ignore[misc]
    assert terms["mlm"].item() == pytest.approx(theirs.item(), rel=1e-5)
    assert Combined(method).total(terms).item() == pytest.approx(3 * expected.item() + theirs.item(), rel=1e-5)


def test_with_documents_rows_are_two_segments_and_the_three_terms_have_equal_weights(
    built: Build, sentences: Path, batched: Callable[..., Batch]
) -> None:
    """One forward of the masked pair gives all three; the classifier reads its first token."""
    method = built("tacl", sentences, temperature=0.1).eval()
    batch = batched(method, range(0, 120, 10))
    clean, view, labels = batch["clean"], batch["masked"], batch["labels"].values
    separator = method.encoder.text_tokenizer.suffix[-1]
    assert ((clean.ids == separator).sum(dim=1) == 2).all()
    assert clean.segments is not None
    assert torch.equal(clean.segments, view.tokens.segments)
    student, teacher = states(method.encoder.backbone, view.tokens), states(method.encoder.backbone, clean)
    terms = method.loss(method.represent(batch), batch.generator())
    assert terms["token_contrast"].item() == pytest.approx(
        token_contrast(student, teacher, clean.mask > 0, view.labels >= 0, 0.1).item(), rel=1e-5
    )
    scores = method.tower["head"](student[:, 0])
    assert terms["next_sentence"].item() == pytest.approx(cross_entropy(scores, labels).item(), rel=1e-5)
    assert Combined(method).total(terms).item() == pytest.approx(sum(term.item() for term in terms.values()), rel=1e-5)
    assert set(terms) == {"token_contrast", "mlm", "next_sentence"}
    drawn = torch.cat([batched(method, range(0, 120, 2), seed=seed)["labels"].values for seed in range(10)])
    followed = torch.tensor([row + 1 not in set(method.corpus.starts) for row in range(0, 120, 2)]).repeat(10)
    assert drawn[~followed].tolist() == [1] * int((~followed).sum())  # the last sentence of a document
    assert drawn[followed].float().mean() == pytest.approx(0.5, abs=0.1)  # as BERT draws them


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_single_sentences_are_trained_without_it_and_the_run_says_so(
    tiny: Path, topics: list[str], sentences: Path, tmp_path: Path
) -> None:
    common = {"max_steps": 1, "batch_size": 8, "eval_steps": 1, "held_out": 40, "max_length": 32}
    with pytest.warns(TrainingWarning, match=r"no documents .* next-sentence prediction is left out"):
        plain = isotrope.train("tacl", topics[:400], tiny, tmp_path / "plain", **common)
    documents = isotrope.train("tacl", sentences, tiny, tmp_path / "documents", **common)
    first, second = (next(line for line in run.history if "loss" in line) for run in (plain, documents))
    assert "next_sentence" not in first
    assert second["loss"] == pytest.approx(second["token_contrast"] + second["mlm"] + second["next_sentence"], rel=1e-5)
    measured = [line["evaluation"] for line in documents.history if "evaluation" in line][-1]
    assert {"mlm_perplexity", "next_sentence_accuracy", "next_sentence_guess"} <= measured.keys()


def test_the_teacher_is_frozen_sees_no_dropout_and_gives_no_gradient(
    built: Build, sentences: Path, batched: Callable[..., Batch]
) -> None:
    method = built("tacl", sentences)
    batch = batched(method)
    assert torch.equal(states(method.tower["teacher"], batch["clean"]), states(method.tower["teacher"], batch["clean"]))
    assert not torch.equal(
        states(method.encoder.backbone, batch["clean"]), states(method.encoder.backbone, batch["clean"])
    )
    Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
    assert all(p.grad is None for p in method.tower["teacher"].parameters())
    assert method.encoder.backbone.get_input_embeddings().weight.grad.abs().sum() > 0


def test_the_contrast_stays_inside_a_sentence(built: Build, sentences: Path, batched: Any, tmp_path: Path) -> None:
    """Neither other sentences, nor the padding they bring, nor their order change the losses of a sentence's tokens."""
    mixed = tmp_path / "mixed.txt"
    mixed.write_text(
        "the chef bakes the bread\n" + sentences.read_text().splitlines()[0] + " and once more with salt and soup\n"
    )
    method = built("tacl", mixed, temperature=0.5).eval()
    view = batched(method, [0, 1])
    alone = [method.represent(view.chunks(1)[row])["contrast_losses"] for row in range(2)]
    assert torch.allclose(torch.cat(alone), method.represent(view)["contrast_losses"], atol=1e-5)


def test_what_is_logged(built: Build, sentences: Path) -> None:
    method = built("tacl", sentences)
    losses = {"token_losses": torch.tensor([1.0, 3.0]), "contrast_losses": torch.tensor([0.5, 0.7, 0.69, 4.0])}
    measures = method.measures(losses)
    assert measures["perplexity"].item() == pytest.approx(math.exp(2))
    assert measures["found"].item() == 0.5  # log 2 = 0.693
    assert method.candidates(losses) == 0


def test_training_lowers_both_terms_and_the_head_is_kept(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {"max_steps": 40, "batch_size": 32, "learning_rate": 5e-3, "eval_steps": 40, "held_out": 40}
    run = isotrope.train("tacl", sentences, model=tiny, output=tmp_path / "run", temperature=0.5, **settings)
    lines = [line for line in run.history if "mlm" in line]
    assert lines[-1]["mlm"] < 0.8 * lines[0]["mlm"]
    assert lines[-1]["token_contrast"] < lines[0]["token_contrast"] - 0.1
    assert lines[-1]["perplexity"] < lines[0]["perplexity"]
    again = isotrope.load(run.folder / "model", language_head=True)
    assert run.encoder.language_model is not None
    assert again.language_model is not None
    for (name, kept), saved in zip(
        run.encoder.language_model.named_parameters(), again.language_model.parameters(), strict=True
    ):
        assert torch.equal(kept, saved), name
    assert np.allclose(again.encode("the chef bakes"), run.encoder.encode("the chef bakes"), atol=1e-6)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"contrast_weight": -1.0}, "contrast_weight"),
        ({"next_sentence_weight": -1.0}, "next_sentence_weight"),
        ({"mask_rate": 1.0}, "mask_rate"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check(TaCL.Settings(**bad))


def test_a_model_without_a_head_is_refused(tiny: Path) -> None:
    with pytest.raises(InputError, match="masked-language head"):
        TaCL(TaCL.Settings(), isotrope.load(tiny), 64)


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_no_segment_goes_on_into_held_out_text(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two long documents, so that sentences in the midst of them are held out."""
    lines = [f"The guard of house {n} sold seven coats." for n in range(400)]
    text = "\n".join(lines[:200]) + "\n\n" + "\n".join(lines[200:]) + "\n"
    (tmp_path / "long.txt").write_text(text, encoding="utf-8")
    read: list[range] = []
    plain = Corpus.stretch

    def watched(self: Corpus, rows: range) -> Any:
        read.append(rows)
        return plain(self, rows)

    monkeypatch.setattr(Corpus, "stretch", watched)
    settings = {"max_steps": 4, "eval_steps": 4, "batch_size": 32, "held_out": 40, "next_sentence_weight": 1.0}
    run = isotrope.train("tacl", tmp_path / "long.txt", model=tiny, output=tmp_path / "run", **settings)
    held = {*run.held.tolist()}
    assert len(held) >= 20
    assert len(read) > 100
    assert any(len(rows) > 1 for rows in read)
    assert not [rows for rows in read if 0 < len(held & {*rows}) < len(rows)]
