"""Replaced-token detection: what is drawn, what is asked, which gradient goes where; alone and as an auxiliary loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from transformers import BertConfig, BertModel

import isotrope
from isotrope.data.corpus import Records
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Added, Combined
from isotrope.methods.frame.settings import check
from isotrope.methods.rtd import ReplacedTokenDetection, RTDSettings
from isotrope.objectives.detection import sample_tokens
from isotrope.tokens.padded import Tokens
from isotrope.towers.generator import Generator
from isotrope.training.step import compute_gradient

Build = Callable[..., Any]


def watched(method: Any, batch: Batch) -> tuple[Tokens, torch.Tensor]:
    """The corrupted rows that the encoder is shown, and the labels."""
    seen: list[Any] = []
    plain = method.detect
    method.detect = lambda *given: (seen.append(given), plain(*given))[1]
    method.represent(batch)
    del method.detect
    return seen[0]


def test_only_asked_tokens_are_replaced_and_a_lucky_draw_is_not_one(
    built: Build, sentences: Path, batched: Any
) -> None:
    method = built("rtd", sentences)
    batch = batched(method)
    view = batch["asked"]
    original = torch.where(view.labels >= 0, view.labels, view.tokens.ids)
    tokens, replaced = watched(method, batch)
    assert torch.equal(replaced, tokens.ids != original)
    assert bool((view.labels[replaced] >= 0).all())
    assert bool(replaced.any())
    assert not bool((tokens.ids == method.encoder.text_tokenizer.mask).all(dim=1).any())
    # A generator that knows the text: it gives all its probability to the token that stood there.
    right = (
        torch.nn.functional.one_hot(view.labels.flatten()[view.asked], method.encoder.text_tokenizer.vocabulary) * 1e4
    )
    method.tower["generator"].forward = lambda *_: right.float()  # type: ignore[method-assign]
    tokens, replaced = watched(method, batch)
    assert torch.equal(tokens.ids, original)
    assert not replaced.any()


def test_the_masks_are_electras(built: Build, sentences: Path) -> None:
    """15 % are asked for, of these 85 % hidden and the rest as they were; special tokens and padding never."""
    method = built("rtd", sentences)
    assert method.corpus is not None
    view: Any = method.views(Records(method.corpus, list(range(400))), np.random.default_rng(3))["asked"]
    specials = torch.tensor(sorted(method.encoder.text_tokenizer.specials))
    ordinary = (view.tokens.mask > 0) & ~torch.isin(
        torch.where(view.labels >= 0, view.labels, view.tokens.ids), specials
    )
    asked = view.labels >= 0
    assert not bool((asked & ~ordinary).any())
    count = int(ordinary.sum())
    assert float(asked.sum() / count) == pytest.approx(0.15, abs=3 * math.sqrt(0.15 * 0.85 / count) + 0.01)
    kept = view.tokens.ids[asked] == view.labels[asked]
    assert float(kept.float().mean()) == pytest.approx(0.15, abs=3 * math.sqrt(0.15 * 0.85 / len(kept)))
    assert bool((view.tokens.ids[asked][~kept] == method.encoder.text_tokenizer.mask).all())


def test_what_is_put_in_follows_the_generators_probabilities(built: Build, sentences: Path) -> None:
    """Of many texts, the tokens that are drawn have the mean log-probability that the generator's entropy says."""
    method = built("rtd", sentences).eval()
    assert method.corpus is not None
    batch = Batch(method.views(Records(method.corpus, list(range(400))), np.random.default_rng(0)), 400, 0)
    view = batch["asked"]
    with torch.no_grad():
        tokens, _ = watched(method, batch)
        scores = method.tower["generator"](view.tokens.ids, view.tokens.mask, view.asked)
    logs = torch.log_softmax(scores.double() * 3, dim=1)  # sharper: a fresh generator is all but uniform
    own = sample_tokens(scores.double() * 3, batch["dice"].values[:, : view.tokens.mask.shape[1]].flatten()[view.asked])
    found, entropy = logs.gather(1, own.unsqueeze(1)).mean(), (logs.exp() * logs).sum(1).mean()
    spread = (logs.exp() * logs.pow(2)).sum(1) - (logs.exp() * logs).sum(1).pow(2)
    assert found.item() == pytest.approx(entropy.item(), abs=4 * math.sqrt(float(spread.mean()) / len(own)))
    plain = sample_tokens(scores, batch["dice"].values[:, : view.tokens.mask.shape[1]].flatten()[view.asked])
    assert torch.equal(tokens.ids.flatten()[view.asked], plain)


def test_the_loss_counts_every_token_but_padding(built: Build, sentences: Path, batched: Any) -> None:
    method = built("rtd", sentences).eval()
    batch = batched(method)
    terms = method.loss(method.represent(batch), batch.generator())
    tokens, replaced = watched(method, batch)
    states = method.encoder.backbone(input_ids=tokens.ids, attention_mask=tokens.mask).last_hidden_state
    scores = method.tower["detector"](states).squeeze(-1)[tokens.mask > 0]
    expected = torch.nn.functional.binary_cross_entropy_with_logits(scores, replaced[tokens.mask > 0].float())
    assert terms["detection"].item() == pytest.approx(expected.item(), rel=1e-5)
    view = batch["asked"]
    model = method.tower["generator"].module.model  # type: ignore[union-attr]
    theirs = model(input_ids=view.tokens.ids, attention_mask=view.tokens.mask, labels=view.labels).loss  # type: ignore[operator]
    assert terms["generator"].item() == pytest.approx(theirs.item(), rel=1e-5)
    assert Combined(method).total(terms).item() == pytest.approx(theirs.item() + 50 * expected.item(), rel=1e-5)


def test_detection_teaches_the_generator_nothing_but_the_embeddings(
    built: Build, sentences: Path, batched: Any
) -> None:
    method = built("rtd", sentences)
    batch = batched(method)
    shared = {id(p) for p in method.encoder.parameters()}
    own = [p for p in method.tower["generator"].parameters() if id(p) not in shared]
    table = method.encoder.backbone.get_input_embeddings().weight
    terms = method.loss(method.represent(batch), batch.generator())
    terms["detection"].backward(retain_graph=True)
    assert all(p.grad is None for p in own)
    assert table.grad.abs().sum() > 0
    method.zero_grad()
    terms["generator"].backward()
    assert sum(float(p.grad.abs().sum()) for p in own if p.grad is not None) > 0
    assert table.grad.abs().sum() > 0
    assert all(p.grad is None for p in method.tower["detector"].parameters())


def test_the_generator_is_small_and_reads_the_encoders_table(tiny: Path) -> None:
    encoder = isotrope.load(tiny, device="cpu")
    generator = Generator(encoder, 0.5)
    assert generator.width == 16
    assert generator.model.config.num_hidden_layers == encoder.backbone.config.num_hidden_layers
    assert generator.model.electra.embeddings.shared is encoder.backbone.embeddings
    assert generator.model.generator_lm_head.weight is encoder.backbone.get_input_embeddings().weight
    ids, mask = torch.tensor([[2, 30, 31, 3]]), torch.ones(1, 4, dtype=torch.int64)
    assert generator(ids, mask, torch.tensor([1, 2])).shape == (2, encoder.text_tokenizer.vocabulary)


def test_the_generator_of_a_base_model_has_electras_shape(tiny: Path) -> None:
    """A third of 768: width 256, heads of 64, a feed-forward four times as wide."""
    encoder = isotrope.load(tiny, device="cpu")
    sizes = {"hidden_size": 768, "num_hidden_layers": 1, "num_attention_heads": 12, "intermediate_size": 3072}
    encoder.backbone = BertModel(BertConfig(vocab_size=50, **sizes))
    generator = Generator(encoder, RTDSettings().generator_size)
    config = generator.model.config
    assert (generator.width, config.hidden_size, config.num_attention_heads, config.intermediate_size) == (
        256, 256, 4, 1024,
    )  # fmt: skip


@pytest.mark.parametrize("added", [False, True])
def test_chunks_give_the_gradient_of_the_whole_batch(
    built: Build, sentences: Path, batched: Any, accelerator: Accelerator, added: bool
) -> None:
    """The same tokens are drawn however the batch is cut."""
    found = []
    for chunk in (None, 3):
        method = built("simcse" if added else "rtd", sentences)
        auxiliary = ReplacedTokenDetection(RTDSettings(), method.encoder, 64)
        combined = Combined(method, [Added(auxiliary, 0.05)] if added else []).eval()
        compute_gradient(combined, batched(combined), accelerator, (1, 2, 0), chunk)
        found.append({key: p.grad for key, p in combined.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    assert max(float(gradient.abs().max()) for gradient in found[0].values()) > 1e-3
    for key, gradient in found[0].items():
        assert torch.allclose(gradient, found[1][key], atol=1e-5), key


def test_what_is_logged(built: Build, sentences: Path) -> None:
    counts = torch.tensor([[10, 2, 3, 1], [6, 1, 0, 0]])  # 16 tokens, 3 replaced, 3 taken for it, 1 both
    measures = built("rtd", sentences).measures(
        {"generator_losses": torch.tensor([1.0, 3.0]), "detection_counts": counts}
    )
    assert measures["generator_perplexity"].item() == pytest.approx(math.exp(2))
    assert measures["replaced"].item() == pytest.approx(3 / 16)
    assert measures["replaced_f1"].item() == pytest.approx(2 / 6)
    found = {
        "generator_losses": torch.tensor([1.0, 3.0]),
        "detection_counts": counts.float(),
        "detection_losses": torch.tensor([3.0, 1.0]),
    }
    held = built("rtd", sentences).on_held_out(found)
    for name, value in (("f1", 2 / 6), ("precision", 1 / 3), ("recall", 1 / 3), ("guess", 2 * 3 / (3 + 16))):
        assert held[f"replaced_{name}"].item() == pytest.approx(value), name
    assert held["detection"].item() == pytest.approx(4 / 16)


def test_added_to_simcse_each_term_has_its_weight_and_the_other_is_left_alone(
    built: Build, sentences: Path, batched: Any
) -> None:
    own = built("simcse", sentences, dropout=0.0)
    auxiliary = ReplacedTokenDetection(RTDSettings(detection_weight=3.0), own.encoder, 64)
    joined = Combined(own, [Added(auxiliary, 0.05)])
    batch = batched(joined)
    added = {f"rtd:{part}:{text}" for part in ("asked", "dice") for text in ("first", "second")}
    assert set(batch.views) == {"first", "second"} | added
    terms = joined.loss(joined.represent(batch), batch.generator())
    assert set(terms) == {"contrastive", "generator", "detection"}
    alone = own.loss(own.represent(batched(own)), batch.generator())["contrastive"]
    assert terms["contrastive"].item() == pytest.approx(alone.item(), rel=1e-5)
    expected = terms["contrastive"] + 0.05 * (terms["generator"] + 3 * terms["detection"])
    assert joined.total(terms).item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_training_simcse_with_mlm_and_rtd_added(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {"max_steps": 2, "batch_size": 8, "eval_steps": 2, "held_out": 40, "logging_steps": 1}
    run = isotrope.train("simcse", sentences, tiny, tmp_path / "run", rtd_weight=0.05, mlm_weight=0.1, **settings)
    line = next(line for line in run.history if "loss" in line)
    expected = line["contrastive"] + 0.1 * line["mlm"] + 0.05 * (line["detection"] + line["generator"] / 50)
    assert line["loss"] == pytest.approx(expected, rel=1e-5)
    assert {"replaced_f1", "generator_perplexity", "information"} <= set(line)
    with pytest.raises(InputError, match="rtd_weight"):
        isotrope.train("rtd", sentences, tiny, tmp_path / "twice", rtd_weight=0.05, **settings)


def test_training_finds_replaced_tokens_and_keeps_the_encoder_only(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {"max_steps": 60, "batch_size": 32, "learning_rate": 5e-3, "eval_steps": 60, "held_out": 40}
    run = isotrope.train("rtd", sentences, model=tiny, output=tmp_path / "run", **settings)
    lines = [line for line in run.history if "detection" in line]
    assert lines[-1]["generator"] < 0.8 * lines[0]["generator"]
    assert lines[-1]["replaced_f1"] > lines[0]["replaced_f1"] + 0.2
    first, last = (line["evaluation"] for line in run.history if "evaluation" in line)  # text it never saw
    assert last["replaced_f1"] > last["replaced_guess"] + 0.1
    assert last["generator_perplexity"] < first["generator_perplexity"]
    assert set(isotrope.load(run.folder / "model").state_dict()) == set(isotrope.load(tiny).state_dict())


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"generator_size": 1.5}, "generator_size must lie between 0 and 1"),
        ({"generator_size": 0.0}, "generator_size"),
        ({"mask_rate": 0.0}, "mask_rate"),
        ({"sample_temperature": -1.0}, "sample_temperature"),
        ({"detection_weight": -1.0}, "detection_weight"),
        ({"generator_weight": -1.0}, "generator_weight"),
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check(RTDSettings(**bad))


def test_a_backbone_with_other_embeddings_is_refused(tiny: Path) -> None:
    encoder = isotrope.load(tiny, device="cpu")
    encoder.backbone.embeddings = torch.nn.Identity()
    with pytest.raises(InputError, match="BERT and its kin"):
        Generator(encoder, 0.5)
