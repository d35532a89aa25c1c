"""T5's spans: a sentinel in the source for each one in the target, and neither is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import isotrope
from isotrope.data.corpus import running_text
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method_registry import find
from isotrope.methods.frame.settings import check
from isotrope.methods.t5_spans import SENTINELS

Build = Callable[..., Any]
T5 = find("t5-spans")


def test_the_card() -> None:
    settings: Any = T5.Settings()
    assert (T5.card.needs, T5.card.year, T5.keeps) == ("documents", 2020, "last")
    assert (settings.density, settings.span_length, settings.roll, SENTINELS) == (0.15, 3.0, False, 100)


@pytest.mark.parametrize("roll", [False, True])
def test_splicing_restores_the_text(roll: bool, built: Build, batched: Callable[..., Batch], sentences: Path) -> None:
    method = built("t5-spans", sentences, roll=roll)
    batch, tokenizer = batched(method, range(24)), method.encoder.text_tokenizer
    size, top = tokenizer.vocabulary, tokenizer.vocabulary + SENTINELS - 1
    firsts = set()
    for row in range(24):
        source = batch["source"].ids[row, 1 : batch["source"].lengths[row] - 1].tolist()
        wanted = batch["target"].labels[row, : batch["target"].tokens.lengths[row]].tolist()
        assert wanted[-1:] == tokenizer.suffix
        spans: dict[int, list[int]] = {}
        for token in wanted[:-1]:
            if token >= size:
                mark = token
                spans[mark] = []
            else:
                spans[mark].append(token)
        assert list(spans) == list(range(top, top - len(spans), -1)) == [token for token in source if token >= size]
        clean = running_text(method.text(method.corpus, row)).tolist()
        assert [piece for token in source for piece in spans.get(token, [token])] == clean
        hidden = sum(map(len, spans.values()))
        assert hidden == min(max(round(0.15 * len(clean)), 1), len(clean) - 1)
        if not roll:
            assert len(spans) == max(1, round(hidden / 3))
            assert source[-1] >= size > source[0]
        firsts.add(source[0] >= size)
    assert firsts == ({False, True} if roll else {False})


def test_a_full_row_is_filled_by_what_is_left_of_a_longer_text(
    built: Build, batched: Callable[..., Batch], sentences: Path
) -> None:
    method = built("t5-spans", sentences)
    batch = batched(method, [0, 8])
    assert batch["source"].lengths.tolist() == [64, 64]
    assert len(running_text(method.text(method.corpus, 0))) == method.longest() > method.room


def test_sentinels_differ_and_the_encoders_table_does_not_grow(
    built: Build, batched: Callable[..., Batch], sentences: Path
) -> None:
    method = built("t5-spans", sentences).eval()
    size = method.encoder.text_tokenizer.vocabulary
    assert method.encoder.backbone.get_input_embeddings().num_embeddings == size
    batch = batched(method)
    plain = method.represent(batch)["target_losses"]
    method.words.extra.weight.data[-1] += torch.randn(32)
    assert not torch.allclose(method.represent(batch)["target_losses"], plain, atol=1e-4)
    Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
    assert float(method.words.extra.weight.grad[-1].abs().max()) > 0
    assert float(method.words.extra.weight.grad[:50].abs().max()) == 0  # no text has so many spans
    states = method.encoder.states(batch["texts"])  # without a sentinel the vectors are the encoder's own
    embedded = method.encoder.backbone(
        inputs_embeds=method.words.embed(batch["texts"].ids), attention_mask=batch["texts"].mask
    )
    assert torch.allclose(states, embedded.last_hidden_state, atol=1e-5)


def test_resume_equals_uninterrupted(resume_agrees: Callable[..., None], sentences: Path) -> None:
    # Masks are those of the clean text: sentinels are no tokens of the encoder.
    resume_agrees("t5-spans", sentences, mlm_weight=0.1)


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_training_lowers_the_perplexity_of_held_out_text_and_drops_the_sentinels(
    tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    settings = {
        "batch_size": 32,
        "learning_rate": 3e-3,
        "max_steps": 40,
        "eval_steps": 40,
        "held_out": 40,
        "max_length": 32,
    }
    run = isotrope.train("t5-spans", sentences, tiny, tmp_path / "run", **settings)
    before, after = (line["evaluation"]["t5_spans_perplexity"] for line in run.history if "evaluation" in line)
    assert after < 0.2 * before
    kept, given = isotrope.load(tmp_path / "run" / "model").state_dict(), isotrope.load(tiny).state_dict()
    assert {name: value.shape for name, value in kept.items()} == {name: value.shape for name, value in given.items()}


@pytest.mark.parametrize(
    ("bad", "named"),
    [({"density": 0.0}, "density"), ({"density": 1.0}, "density"), ({"span_length": 0.5}, "span_length")],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        check(T5.Settings(**bad))
