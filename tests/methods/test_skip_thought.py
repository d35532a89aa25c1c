"""Skip-Thought: which sentences are written, from what, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method_registry import find

Build = Callable[..., Any]
SkipThought = find("skip-thought")
SHORT = {"batch_size": 16, "held_out": 0, "eval_steps": 2, "max_steps": 2}


def test_the_card() -> None:
    assert (SkipThought.card.needs, SkipThought.card.year, SkipThought.keeps) == ("documents", 2015, "best")
    assert SkipThought.card.accepts == ("dialogues",)


def test_neighbours_of_the_same_document_are_the_targets(
    built: Build, batched: Callable[..., Batch], sentences: Path
) -> None:
    method = built("skip-thought", sentences)
    batch, corpus = batched(method, range(16)), method.corpus
    begin, end = method.encoder.text_tokenizer.prefix, method.encoder.text_tokenizer.suffix
    for row in range(16):
        for side, step in (("before", -1), ("after", 1)):
            view = batch[side]
            length = int(view.tokens.lengths[row])
            found = view.labels[row, :length].tolist()
            if (row + step) // 8 != row // 8:  # documents of eight
                assert found == [-100]
                assert (view.labels[row] == -100).all()
            else:
                clean = corpus.tokens(row + step).tolist()
                assert found == clean + end
                assert view.tokens.ids[row, :length].tolist() == begin + clean
    represented = method.represent(batch)
    for side in ("before", "after"):
        asked = int((batch[side].labels >= 0).sum())
        assert len(represented[side]) == asked
        assert float(method.loss(represented, batch.generator())[side].detach()) == pytest.approx(
            float(represented[side].mean().detach())
        )
    held = method.on_held_out(represented)["skip_thought_perplexity"]
    assert float(held.detach()) == pytest.approx(
        float(torch.cat(list(represented.values())).mean().exp().detach()), rel=1e-5
    )


def test_without_a_vector_both_decoders_are_plain_language_models(
    built: Build, batched: Callable[..., Batch], sentences: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = built("skip-thought", sentences).eval()
    batch = batched(method, range(1, 7))
    other = Batch({**batch.views, "source": batched(method, range(41, 47))["source"]}, 6, 0)
    for silent in (False, True):
        if silent:
            monkeypatch.setattr(method, "memory", lambda batch: (torch.zeros(6, 1, 32), None))
        mine, theirs = method.represent(batch), method.represent(other)
        assert all(torch.allclose(mine[side], theirs[side], atol=1e-6) is silent for side in mine)


def test_the_decoders_are_two_with_one_head_and_both_teach_the_encoder(
    built: Build, batched: Callable[..., Batch], sentences: Path
) -> None:
    method = built("skip-thought", sentences).eval()
    assert set(method.tower) == {"words", "before", "after"}
    own = {id(p) for p in (*method.encoder.parameters(), *method.tower["words"].parameters())}
    before, after = ({id(p) for p in method.tower[side].parameters()} - own for side in ("before", "after"))
    assert before
    assert not before & after
    batch = batched(method, range(1, 7))
    for side in ("before", "after"):
        method.zero_grad()
        memory, mask = method.memory(batch)
        memory.retain_grad()
        method.target_losses(side, batch[side], memory, mask).mean().backward()
        assert float(memory.grad.abs().max()) > 1e-5
    assert not {id(p) for p in method.export().parameters()} & (before | after)


def test_a_batch_without_a_neighbour_on_one_side_costs_nothing_there(
    built: Build, batched: Callable[..., Batch], sentences: Path
) -> None:
    method = built("skip-thought", sentences)
    batch = batched(method, [0, 8, 16])  # the first sentences of their documents
    found = method.represent(batch)
    terms = method.loss(found, batch.generator())
    assert len(found["before"]) == 0
    assert float(terms["before"].detach()) == 0
    Combined(method).total(terms).backward()
    assert all(torch.isfinite(p.grad).all() for p in method.parameters() if p.grad is not None)


def test_sentences_alone_in_their_document_are_left_out(built: Build, topics: list[str], tmp_path: Path) -> None:
    file = tmp_path / "mixed.txt"
    file.write_text(
        "\n\n".join([topics[0], "\n".join(topics[1:5]), topics[5], "\n".join(topics[6:8])]), encoding="utf-8"
    )
    method = built("skip-thought", file)
    assert method.prepared.select(np.arange(8)).tolist() == [1, 2, 3, 4, 6, 7]
    assert "2 of 4 documents" in method.prepared.remarks[0]


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_training_lowers_the_perplexity_of_held_out_text(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {"batch_size": 32, "learning_rate": 3e-3, "max_steps": 40, "eval_steps": 40, "held_out": 40}
    run = isotrope.train("skip-thought", sentences, tiny, tmp_path / "run", **settings)
    before, after = (line["evaluation"]["skip_thought_perplexity"] for line in run.history if "evaluation" in line)
    assert after < 0.2 * before
    assert isotrope.load(tmp_path / "run" / "model").state_dict().keys() == isotrope.load(tiny).state_dict().keys()


def test_text_without_documents_is_refused(tiny: Path, topics: list[str], tmp_path: Path) -> None:
    for text, named in (
        ("\n".join(topics[:200]), "one document.*empty line"),
        ("\n\n".join(topics[:200]), "single sentence"),
    ):
        file = tmp_path / "text.txt"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=named):
            isotrope.train("skip-thought", file, tiny, tmp_path / "run", **SHORT)
        assert not (tmp_path / "run").exists()
