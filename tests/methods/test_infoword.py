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
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.methods.infoword import InfoWord, hide_ngrams
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.tokens.text_tokenizer import TextTokenizer

Build = Callable[..., Any]


def drawn(count: int = 4) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    vectors = {
        name: torch.randn(count, 5, generator=generator, dtype=torch.float64) for name in ("sentences", "ngrams")
    }
    return {**vectors, "keys": torch.arange(count), "token_losses": torch.tensor([1.0, 3.0])}


def test_a_sentence_with_its_ngram_hidden_is_compared_with_the_ngram(
    built: Build, sentences: Path, batched: Callable[..., Batch]
) -> None:
    method = built("infoword", sentences).eval()
    batch = batched(method)
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
def test_the_loss_is_the_formula(built: Build, sentences: Path, similarity: str, temperature: float) -> None:
    method = built("infoword", sentences, similarity=similarity, temperature=temperature, ngram_weight=0.4)
    given = drawn()
    losses = []
    for i in range(4):
        scores = []
        for j in range(4):
            a, b = given["sentences"][i], given["ngrams"][j]
            norm = float(a.norm() * b.norm()) if similarity == "cosine" else 1.0
            scores.append(float(a @ b) / norm / temperature)
        losses.append(math.log(sum(map(math.exp, scores))) - scores[i])
    terms = method.loss(given, torch.Generator())
    assert terms["contrastive"].item() == pytest.approx(sum(losses) / 4, rel=1e-9)
    assert terms["mlm"].item() == 2.0
    assert Combined(method).total(terms).item() == pytest.approx(0.4 * sum(losses) / 4 + 2.0, rel=1e-6)
    assert method.candidates(given) == 4


@pytest.mark.parametrize(("similarity", "expected"), [("dot", math.sqrt(32)), ("cosine", 0.05)])
def test_scores_are_scaled_to_what_a_softmax_can_tell(
    built: Build, sentences: Path, batched: Callable[..., Batch], similarity: str, expected: float
) -> None:
    """Vectors behind a layer norm are about √d long: divided by √d, their dot products start out a few apart."""
    method = built("infoword", sentences, similarity=similarity)
    assert method.temperature == pytest.approx(expected)
    found = method.represent(batched(method, range(24)))
    assert float(method.loss(found, torch.Generator())["contrastive"].detach()) < 1.5 * math.log(24)
    assert built("infoword", sentences, similarity=similarity, temperature=2.0).temperature == 2.0


def test_golden_values(built: Build, sentences: Path) -> None:
    """Orthonormal rows: log(1 + (N − 1)/e); one sentence alone has no other candidate."""
    method = built("infoword", sentences, temperature=1.0)
    units = {**drawn(), "sentences": torch.eye(4), "ngrams": torch.eye(4)}
    assert method.loss(units, torch.Generator())["contrastive"].item() == pytest.approx(0.743668, abs=1e-6)
    one = {**drawn(1), "token_losses": torch.ones(2)}
    assert method.loss(one, torch.Generator())["contrastive"].item() == pytest.approx(0, abs=1e-12)


def test_the_same_ngram_in_another_sentence_is_no_negative(built: Build, sentences: Path, batched: Any) -> None:
    method = built("infoword", sentences)
    twice = {**drawn(), "keys": torch.tensor([7, 1, 7, 2])}
    twice["sentences"].requires_grad_()
    loss = method.loss(twice, torch.Generator())["contrastive"]
    scores = method.similarities({**twice, "keys": torch.arange(4)})
    rows = [torch.tensor(kept) for kept in ([0, 1, 3], [0, 1, 2, 3], [1, 2, 3], [0, 1, 2, 3])]
    expected = torch.stack([scores[i, kept].logsumexp(0) - scores[i, i] for i, kept in enumerate(rows)]).mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    loss.backward()
    assert torch.isfinite(twice["sentences"].grad).all()
    encoder_keys = batched(method, [0, 1, 2])["keys"].values
    assert len(set(encoder_keys.tolist())) == 3


def test_equal_ngrams_have_equal_keys(built: Build, batched: Any, tmp_path: Path) -> None:
    file = tmp_path / "same.txt"
    file.write_text("salt soup\nsalt bread\nsoup salt\n", encoding="utf-8")
    method = built("infoword", file, ngram_length=1.0, ngram_spread=0.0, longest=1)
    batch = batched(method, [0, 1, 2])
    keys, ids = batch["keys"].values, batch["ngrams"].ids
    for i in range(3):
        for j in range(3):
            assert bool(keys[i] == keys[j]) == bool((ids[i] == ids[j]).all())


def test_without_its_weight_it_is_masked_language_modelling(built: Build, sentences: Path, batched: Any) -> None:
    method = built("infoword", sentences, ngram_weight=0.0).eval()
    plain = MaskedLanguageModel(MLMSettings(), method.encoder, 64).eval()
    batch = batched(method)
    terms = method.loss(method.represent(batch), batch.generator())
    alone = plain.loss(plain.represent(batch), batch.generator())["mlm"]
    assert Combined(method).total(terms).item() == pytest.approx(alone.item(), rel=1e-6)


def test_what_is_logged(built: Build, sentences: Path) -> None:
    given = {**drawn(), "sentences": torch.eye(4), "ngrams": torch.eye(4)[[0, 1, 3, 2]]}
    measures = built("infoword", sentences).measures(given)
    assert measures["ngram_found"].item() == 0.5
    assert measures["perplexity"].item() == pytest.approx(math.exp(2))


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
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
        check(InfoWord.Settings(**bad))


def test_a_model_without_a_head_is_refused(tiny: Path) -> None:
    with pytest.raises(InputError, match="masked-language head"):
        InfoWord(InfoWord.Settings(), isotrope.load(tiny), 64)


def test_how_often_the_ngram_is_found_is_measured_on_held_out_text(built: Build, sentences: Path) -> None:
    held = built("infoword", sentences).on_held_out(
        {**drawn(4), "sentences": torch.eye(4) * 3, "ngrams": torch.eye(4)[[0, 1, 3, 2]]}
    )
    assert held["ngram_found"].item() == 0.5
    near, far = 3 / math.sqrt(32), math.log(math.exp(3 / math.sqrt(32)) + 3)  # two of four find their own
    assert held["ngram_information"].item() == pytest.approx(math.log(4) - (far - near / 2), abs=1e-6)
    assert held["mlm_perplexity"].item() == pytest.approx(math.exp(2))


@pytest.fixture(scope="module")
def encoder(tiny: Path) -> isotrope.Encoder:
    return isotrope.load(tiny, device="cpu")


def test_the_visible_tokens_and_the_ngram_make_up_the_sentence(encoder: isotrope.Encoder, topics: list[str]) -> None:
    tokens = encoder.tokenize([*topics[:50], "salt", "the chef"], max_length=16)
    hidden, ngrams = hide_ngrams(tokens, encoder.text_tokenizer, np.random.default_rng(0))
    mask = encoder.text_tokenizer.mask
    for row, (before, after, ngram) in enumerate(zip(tokens.ids, hidden.ids, ngrams, strict=True)):
        places = (after == mask).nonzero().squeeze(1)
        assert len(places) == len(ngram) >= 1
        assert places.tolist() == list(range(int(places[0]), int(places[0]) + len(places)))  # no gap
        assert before[places].tolist() == ngram.tolist()
        assert bool((before == after)[after != mask].all())
        inner = int(tokens.lengths[row]) - 2
        assert int(places[0]) >= 1
        assert int(places[-1]) <= inner
        assert len(ngram) < inner or inner == 1
    assert not bool((tokens.ids == mask).any())  # what was given is left as it was


def test_lengths_have_their_mean_their_spread_and_their_ends(encoder: isotrope.Encoder, topics: list[str]) -> None:
    tokens = encoder.tokenize(topics, max_length=64)
    rng = np.random.default_rng(1)
    sizes = np.array([len(ngram) for ngram in hide_ngrams(tokens, encoder.text_tokenizer, rng)[1]])
    assert sizes.mean() == pytest.approx(5.0, abs=0.1)
    assert sizes.std() == pytest.approx(np.sqrt(1 + 1 / 12), abs=0.1)  # rounding adds a twelfth
    wide = np.array([len(ngram) for ngram in hide_ngrams(tokens, encoder.text_tokenizer, rng, 5.0, 9.0, 8)[1]])
    assert set(wide) == set(range(1, 9))


def test_a_text_without_tokens_has_an_empty_ngram(encoder: isotrope.Encoder) -> None:
    tokens = encoder.frame([np.array([], dtype=np.int64)])
    hidden, ngrams = hide_ngrams(tokens, encoder.text_tokenizer, np.random.default_rng(0))
    assert hidden.ids.tolist() == tokens.ids.tolist()
    assert len(ngrams[0]) == 0


def test_a_prompt_is_never_hidden(tokenizer: TextTokenizer) -> None:
    prompted = TextTokenizer(tokenizer.tokenizer, "the old cat walks ")
    tokens = prompted.frame([np.arange(10, 16)] * 50, 64)
    before = len(prompted.prefix)
    assert before > len(prompted.start)
    hidden, ngrams = hide_ngrams(tokens, prompted, np.random.default_rng(0))
    assert torch.equal(hidden.ids[:, :before], tokens.ids[:, :before])
    assert all(len(ngram) for ngram in ngrams)
