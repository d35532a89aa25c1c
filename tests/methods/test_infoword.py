"""InfoWord: what is compared, what is no candidate, what falls together, what is kept."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope.data.corpus import Records, open_corpus
from isotrope.errors import InputError
from isotrope.methods.frame.method import Batch
from isotrope.methods.infoword import InfoWord
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.training.loop import make_accelerator
from isotrope.training.settings import LoopSettings
from isotrope.training.step import compute_gradient


def build(tiny: Path, source: Path, **settings: Any) -> InfoWord:
    chosen = InfoWord.Settings(**settings)
    InfoWord.check(chosen)
    encoder = isotrope.load(tiny, device="cpu", language_head=True)
    tokenizer = encoder.text_tokenizer
    corpus = open_corpus(source, ("sentences",), tokenizer)
    return InfoWord(chosen, encoder, 64, corpus).train()


def batch_of(method: InfoWord, rows: range | list[int] = range(8)) -> Batch:
    assert method.corpus is not None
    return Batch(method.views(Records(method.corpus, list(rows)), np.random.default_rng(0)), len(rows), 7)


def drawn(count: int = 4) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    vectors = {
        name: torch.randn(count, 5, generator=generator, dtype=torch.float64) for name in ("sentences", "ngrams")
    }
    return {**vectors, "keys": torch.arange(count), "token_losses": torch.tensor([1.0, 3.0])}


def test_a_sentence_with_its_ngram_hidden_is_compared_with_the_ngram(tiny: Path, sentences: Path) -> None:
    method = build(tiny, sentences).eval()
    batch = batch_of(method)
    hidden, ngrams = batch["sentences"], batch["ngrams"]
    mask = method.encoder.text_tokenizer.mask
    for row in range(8):
        shown = ngrams.ids[row, 1 : int(ngrams.lengths[row]) - 1].tolist()
        assert int((hidden.ids[row] == mask).sum()) == len(shown)
        assert mask not in shown
    found = method.represent(batch)
    for name in ("sentences", "ngrams"):
        (expected,) = method.encoder.embed(batch[name])
        assert torch.allclose(found[name], expected, atol=1e-5)


@pytest.mark.parametrize(("similarity", "temperature"), [("dot", 1.0), ("dot", 2.0), ("cosine", 0.1)])
def test_the_loss_is_the_formula(tiny: Path, sentences: Path, similarity: str, temperature: float) -> None:
    method = build(tiny, sentences, similarity=similarity, temperature=temperature, ngram_weight=0.4)
    given = drawn()
    losses = []
    for i in range(4):
        scores = []
        for j in range(4):
            a, b = given["sentences"][i], given["ngrams"][j]
            norm = float(a.norm() * b.norm()) if similarity == "cosine" else 1.0
            scores.append(float(a @ b) / norm / temperature)
        losses.append(math.log(sum(map(math.exp, scores))) - scores[i])
    terms = method.loss(given, None)  # type: ignore[arg-type]
    assert terms["contrastive"].item() == pytest.approx(sum(losses) / 4, rel=1e-9)
    assert terms["mlm"].item() == 2.0
    assert method.total(terms).item() == pytest.approx(0.4 * sum(losses) / 4 + 2.0, rel=1e-6)
    assert method.candidates(given) == 4


def test_golden_values(tiny: Path, sentences: Path) -> None:
    """Orthonormal rows:

    log(1 + (N − 1)/e), specs/3, appendix A; one sentence alone has nothing to be told apart from.
    """
    method = build(tiny, sentences)
    units = {**drawn(), "sentences": torch.eye(4), "ngrams": torch.eye(4)}
    assert method.loss(units, None)["contrastive"].item() == pytest.approx(0.743668, abs=1e-6)  # type: ignore[arg-type]
    one = {**drawn(1), "token_losses": torch.ones(2)}
    assert method.loss(one, None)["contrastive"].item() == pytest.approx(0, abs=1e-12)  # type: ignore[arg-type]


def test_the_same_ngram_in_another_sentence_is_no_negative(tiny: Path, sentences: Path) -> None:
    method = build(tiny, sentences)
    twice = {**drawn(), "keys": torch.tensor([7, 1, 7, 2])}
    twice["sentences"].requires_grad_()
    loss = method.loss(twice, None)["contrastive"]  # type: ignore[arg-type]
    scores = method.similarities({**twice, "keys": torch.arange(4)})
    rows = [torch.tensor(kept) for kept in ([0, 1, 3], [0, 1, 2, 3], [1, 2, 3], [0, 1, 2, 3])]
    expected = torch.stack([scores[i, kept].logsumexp(0) - scores[i, i] for i, kept in enumerate(rows)]).mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    loss.backward()
    assert torch.isfinite(twice["sentences"].grad).all()  # type: ignore[arg-type]
    encoder_keys = batch_of(method, [0, 1, 2])["keys"].values
    assert len(set(encoder_keys.tolist())) == 3


def test_equal_ngrams_have_equal_keys(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "same.txt"
    file.write_text("salt soup\nsalt bread\nsoup salt\n", encoding="utf-8")
    method = build(tiny, file, ngram_length=1.0, ngram_spread=0.0, longest=1)
    batch = batch_of(method, [0, 1, 2])
    keys, ids = batch["keys"].values, batch["ngrams"].ids
    for i in range(3):
        for j in range(3):
            assert bool(keys[i] == keys[j]) == bool((ids[i] == ids[j]).all())


def test_without_its_weight_it_is_masked_language_modelling(tiny: Path, sentences: Path) -> None:
    method = build(tiny, sentences, ngram_weight=0.0).eval()
    plain = MaskedLanguageModel(MLMSettings(), method.encoder, 64).eval()
    batch = batch_of(method)
    terms = method.loss(method.represent(batch), batch)
    alone = plain.loss(plain.represent(batch), batch)["mlm"]
    assert method.total(terms).item() == pytest.approx(alone.item(), rel=1e-6)


def test_what_is_logged(tiny: Path, sentences: Path) -> None:
    given = {**drawn(), "sentences": torch.eye(4), "ngrams": torch.eye(4)[[0, 1, 3, 2]]}
    measures = build(tiny, sentences).measures(given)
    assert measures["ngram_found"].item() == 0.5
    assert measures["perplexity"].item() == pytest.approx(math.exp(2))


def test_neither_order_nor_padding_matters(tiny: Path, sentences: Path) -> None:
    method = build(tiny, sentences).eval()
    batch = batch_of(method)
    whole = method.represent(batch)
    parts = [method.represent(part) for part in batch.chunks(1)]
    for name in whole:
        assert torch.allclose(torch.cat([part[name] for part in parts]), whole[name], atol=1e-4), name
    order = torch.tensor([3, 1, 0, 2, 7, 6, 5, 4])
    moved = {name: tensor[order] if len(tensor) == 8 else tensor for name, tensor in whole.items()}
    first, second = (method.loss(each, batch)["contrastive"].item() for each in (whole, moved))
    assert first == pytest.approx(second, abs=1e-5)


def test_chunks_give_the_gradient_of_the_whole_batch(tiny: Path, sentences: Path) -> None:
    found = []
    for chunk in (None, 3):
        method = build(tiny, sentences).eval()
        compute_gradient(method, batch_of(method), make_accelerator(LoopSettings()), (1, 2, 0), chunk)
        found.append({key: p.grad for key, p in method.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    assert max(float(gradient.abs().max()) for gradient in found[0].values()) > 1e-2
    for key, gradient in found[0].items():
        assert torch.allclose(gradient, found[1][key], atol=1e-5), key


@pytest.mark.filterwarnings("ignore::isotrope.training.loop.TrainingWarning")
def test_resume_equals_an_uninterrupted_run(sentences: Path, resume_agrees: Callable[..., None]) -> None:
    resume_agrees("infoword", sentences)


@pytest.mark.filterwarnings("ignore::isotrope.training.loop.TrainingWarning")
def test_training_finds_the_ngram_and_the_head_is_kept(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {"max_steps": 40, "batch_size": 32, "learning_rate": 5e-3, "eval_steps": 40, "held_out": 40}
    run = isotrope.train("infoword", sentences, model=tiny, output=tmp_path / "run", **settings)
    lines = [line for line in run.history if "mlm" in line]
    assert lines[-1]["mlm"] < 0.9 * lines[0]["mlm"]
    assert lines[-1]["contrastive"] < 0.9 * lines[0]["contrastive"]
    assert isotrope.load(run.folder / "model", language_head=True).language_model is not None


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"ngram_weight": -1.0}, "ngram_weight"),
        ({"ngram_spread": -1.0}, "ngram_spread"),
        ({"ngram_length": 0.5}, "ngram_length"),
        ({"ngram_length": 12.0}, "between 1 and longest"),
        ({"longest": 0}, "longest"),
        ({"similarity": "euclid"}, "dot, cosine"),
        ({"mask_rate": 1.0}, "mask_rate"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        InfoWord.check(InfoWord.Settings(**bad))


def test_a_model_without_a_head_is_refused(tiny: Path) -> None:
    with pytest.raises(InputError, match="masked-language head"):
        InfoWord(InfoWord.Settings(), isotrope.load(tiny), 64)


def test_how_often_the_ngram_is_found_is_told_of_held_out_text(tiny: Path, sentences: Path) -> None:
    held = build(tiny, sentences).on_held_out(
        {**drawn(4), "sentences": torch.eye(4) * 3, "ngrams": torch.eye(4)[[0, 1, 3, 2]]}
    )
    assert held["ngram_found"].item() == 0.5
    assert held["mlm_perplexity"].item() == pytest.approx(math.exp(2))
