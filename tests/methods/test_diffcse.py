"""DiffCSE: what the generator puts in, what the detector is shown, and which gradient goes where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

import isotrope
from isotrope.data.corpus import Records
from isotrope.encoders.fresh import fresh_encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method_registry import find
from isotrope.objectives import info_nce
from isotrope.towers.conditioned_detector import ConditionedDetector

Build = Callable[..., Any]


@pytest.fixture
def build(built: Build, sentences: Path) -> Build:
    return lambda **settings: built("diffcse", sentences, pooling="cls", **settings)


def gradients(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


def original_of(view: Any) -> torch.Tensor:
    return torch.where(view.labels >= 0, view.labels, view.tokens.ids)


def test_without_weight_it_is_the_contrast_behind_the_head(build: Build, batched: Any) -> None:
    """λ = 0: loss and gradient of SimCSE's contrast with the head's vectors, both views normalised together."""
    method, plain = build(detection_weight=0.0, dropout=0.0), build(dropout=0.0)
    batch = batched(method)
    found = Combined(method).total(method.loss(method.represent(batch), batch.generator()))
    found.backward()
    vectors = plain.encoder.embed(batch["sentences"], batch["sentences"])
    expected = info_nce(*plain.tower["head"](torch.cat(vectors)).chunk(2), 0.05)
    expected.backward()
    assert found.item() == pytest.approx(expected.item(), abs=1e-6)
    for part in (lambda one: one.encoder, lambda one: one.tower["head"]):
        mine, theirs = gradients(part(method)), gradients(part(plain))
        assert mine.keys() == theirs.keys()
        assert all(torch.allclose(mine[name], theirs[name], atol=1e-6) for name in mine)


def test_the_head_is_that_of_the_released_code(build: Build, batched: Any) -> None:
    """Linear, BN, ReLU, Linear, BN without scale and shift: torch's own gives the same vectors."""
    method = build()
    head = method.tower["head"].module
    nn = torch.nn
    theirs = nn.Sequential(
        nn.Linear(32, 64, bias=False),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 32, bias=False),
        nn.BatchNorm1d(32, affine=False),
    ).train()
    theirs.load_state_dict(head.state_dict(), strict=False)
    assert {name for name, _ in theirs.named_parameters()} == {name for name, _ in head.named_parameters()}
    vectors = torch.randn(10, 32)
    assert torch.allclose(head(vectors), theirs(vectors), atol=1e-6)
    assert not list(head.buffers())  # a forward leaves nothing behind


def test_the_generator_is_the_start_and_learns_nothing(build: Build, batched: Any) -> None:
    method = build().train()
    generator = method.tower["generator"]
    assert not any(part.training for part in generator.module.modules())
    own = {id(p) for p in method.encoder.parameters()}
    assert not own & {id(p) for p in generator.parameters()}
    view = batched(method)["asked"]
    asked = (view.tokens.ids, view.tokens.mask, view.asked)
    start = method.encoder.language_model.eval()
    with torch.no_grad():
        expected = start(input_ids=asked[0], attention_mask=asked[1]).logits.flatten(0, 1)[view.asked]
    assert torch.allclose(generator(*asked), expected, atol=1e-5)
    batch = batched(method)
    Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
    assert not gradients(generator)
    assert not any(p.requires_grad for p in generator.parameters())


@pytest.mark.parametrize("settings", [{}, {"overwritten": "all", "sample_temperature": 0.0}])
def test_a_token_is_replaced_exactly_where_it_differs(build: Build, batched: Any, settings: dict[str, Any]) -> None:
    method = build(**settings)
    batch = batched(method)
    view = batch["asked"]
    original, valid = original_of(view), view.tokens.mask > 0
    edited, replaced = method.edit(view, batch["dice"].values)
    assert torch.equal(replaced, (edited.ids != original) & valid)
    assert bool(replaced.any())
    assert torch.equal(edited.ids[:, 0], original[:, 0])
    hidden = view.labels >= 0
    assert bool((replaced & ~hidden).any()) is bool(settings)  # only the released form touches what nobody masked
    if settings:
        with torch.no_grad():
            scores = method.tower["generator"].module.model(input_ids=view.tokens.ids, attention_mask=view.tokens.mask)
        behind = valid.clone()
        behind[:, 0] = False
        assert torch.equal(edited.ids[behind], scores.logits.argmax(-1)[behind])


def test_a_lucky_sample_is_no_replacement(build: Build, batched: Any) -> None:
    method = build()
    batch = batched(method)
    view = batch["asked"]
    right = torch.nn.functional.one_hot(view.labels.flatten()[view.asked], method.encoder.text_tokenizer.vocabulary)
    method.tower["generator"].forward = lambda *_: right.float() * 1e4
    edited, replaced = method.edit(view, batch["dice"].values)
    assert torch.equal(edited.ids, original_of(view))
    assert not replaced.any()


def test_each_dropout_view_has_masks_of_its_own(build: Build) -> None:
    method = build()
    views = method.views(Records(method.corpus, list(range(200))), np.random.default_rng(3))
    view = views["asked"]
    hidden = (view.labels >= 0).unflatten(0, (200, 2))
    assert torch.equal(*original_of(view).unflatten(0, (200, 2)).unbind(1))
    assert not torch.equal(hidden[:, 0], hidden[:, 1])
    ordinary = (view.tokens.mask > 0) & ~torch.isin(
        original_of(view), torch.tensor(sorted(method.encoder.text_tokenizer.specials))
    )
    assert float((view.labels >= 0).sum() / ordinary.sum()) == pytest.approx(0.3, abs=0.02)
    assert not bool(((view.labels >= 0) & ~ordinary).any())


def test_the_loss_is_the_cross_entropy_of_two_classes_without_padding(build: Build, batched: Any) -> None:
    """Against transformers' layers run by hand over embeddings whose first row is h."""
    method = build().eval()
    batch = batched(method, rows=[0, 1, 150, 151])
    found = method.represent(batch)
    edited, replaced = method.edit(batch["asked"], batch["dice"].values)
    vectors = torch.stack([found["first"], found["second"]], dim=1).flatten(0, 1)
    detector = method.tower["detector"].module
    embedded = detector.backbone.embeddings(input_ids=edited.ids).clone()
    embedded[:, 0] = vectors
    with torch.no_grad():
        detector.classifier.bias.copy_(torch.tensor([0.0, 2.0]))  # the classes must not be alike
    found = method.represent(batch)
    valid = edited.mask > 0
    blocked = torch.zeros(valid.shape).masked_fill(~valid, torch.finfo(torch.float32).min)[:, None, None, :]
    states = embedded
    for layer in detector.backbone.encoder.layer:
        states = layer(states, attention_mask=blocked)
        states = states[0] if isinstance(states, tuple) else states
    expected = cross_entropy(detector.classifier(states)[valid], replaced[valid].long())
    terms = method.loss(found, batch.generator())
    assert terms["detection"].item() == pytest.approx(expected.item(), rel=1e-5)
    assert method.weights() == {"detection": 0.005}
    assert int(found["detection_counts"][..., 0].sum()) == int(valid.sum())


def test_each_row_is_detected_with_the_vector_of_its_own_view(build: Build, batched: Any, monkeypatch: Any) -> None:
    method = build()
    detector, shown = method.tower["detector"].module, []

    def watched(ids: torch.Tensor, mask: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        shown.append(vectors)
        return torch.zeros(ids.shape)

    monkeypatch.setattr(detector, "forward", watched)
    found = method.represent(batched(method))
    assert not torch.allclose(found["first"], found["second"], atol=1e-2)  # two dropout masks
    assert torch.equal(shown[0][0::2], found["first"])
    assert torch.equal(shown[0][1::2], found["second"])


def test_defaults_are_the_papers() -> None:
    settings = find("diffcse").Settings()
    assert (settings.temperature, settings.mask_rate, settings.sample_temperature) == (0.05, 0.3, 1.0)
    assert settings.overwritten == "masked"


def test_detection_reaches_the_encoder_through_the_vector_alone(build: Build, batched: Any) -> None:
    method = build()
    batch = batched(method)
    method.loss(method.represent(batch), batch.generator())["detection"].backward()
    assert max(float(gradient.abs().max()) for gradient in gradients(method.encoder).values()) > 1e-6
    assert max(float(gradient.abs().max()) for gradient in gradients(method.tower["detector"]).values()) > 1e-6
    assert not {id(p) for p in method.encoder.parameters()} & {id(p) for p in method.tower["detector"].parameters()}
    method.zero_grad()
    plain = method.read
    method.read = lambda *vectors: tuple(found.detach() for found in plain(*vectors))  # type: ignore[method-assign]
    method.loss(method.represent(batch), batch.generator())["detection"].backward()
    assert not any(bool(gradient.any()) for gradient in gradients(method.encoder).values())


def test_the_detector_begins_as_the_loaded_start(build: Build) -> None:
    method = build()
    mine, theirs = method.tower["detector"].module.backbone.state_dict(), method.encoder.backbone.state_dict()
    assert all(torch.equal(mine[name], value) for name, value in theirs.items())


def test_padding_changes_nothing(build: Build, batched: Any) -> None:
    method = build(dropout=0.0)
    batch = batched(method, rows=range(4))
    detector = method.tower["detector"].eval()
    edited, _ = method.edit(batch["asked"], batch["dice"].values)
    vectors = torch.randn(8, 32)
    wider = [torch.nn.functional.pad(part, (0, 5)) for part in (edited.ids, edited.mask)]
    width = edited.ids.shape[1]
    assert torch.allclose(detector(*wider, vectors)[:, :width], detector(edited.ids, edited.mask, vectors), atol=1e-5)


@pytest.mark.parametrize("family", ["albert", "electra", "distilbert"])
def test_the_vector_stands_where_the_layers_read_whatever_the_width_of_the_embeddings(
    model_folders: dict[str, Path], family: str
) -> None:
    """ALBERT and ELECTRA have embeddings of 16 dimensions and layers of 32."""
    encoder = load(model_folders[family], "cls", "cpu")
    detector = ConditionedDetector(encoder).eval()
    ids, mask = torch.tensor([[2, 7, 8, 9, 3]]), torch.ones(1, 5, dtype=torch.int64)
    vectors = torch.randn(1, 32, requires_grad=True)
    found = detector(ids, mask, vectors)
    (gradient,) = torch.autograd.grad(found[0, 3], vectors)
    assert float(gradient.abs().max()) > 1e-6
    other = ids.clone()
    other[:, 0] = 5  # what stood there before is not read
    assert torch.equal(detector(other, mask, vectors), found)


def test_a_named_generator_must_have_the_vocabulary_and_a_head(
    build: Build, tiny: Path, topics: list[str], tmp_path: Path
) -> None:
    assert torch.equal(
        build(generator=str(tiny)).tower["generator"].module.model.get_input_embeddings().weight,
        build().tower["generator"].module.model.get_input_embeddings().weight,
    )
    other = fresh_encoder(topics[:50], vocabulary=150, layers=1, width=16, heads=1, max_length=64)
    other.save(tmp_path / "other")
    with pytest.raises(InputError, match="another vocabulary than the encoder"):
        build(generator=str(tmp_path / "other"))
    isotrope.load(tiny).save(tmp_path / "headless")
    with pytest.raises(InputError, match="holds no masked-language head"):
        build(generator=str(tmp_path / "headless"))
    with pytest.raises(InputError, match="an empty name"):
        build(generator=" ")


def test_a_start_with_a_random_head_is_refused(sentences: Path, tiny: Path, tmp_path: Path) -> None:
    isotrope.load(tiny).save(tmp_path / "headless")
    with (
        pytest.warns(UserWarning, match="holds no language head"),
        pytest.raises(InputError, match="no trained masked-language head"),
    ):
        isotrope.train("diffcse", sentences, tmp_path / "headless", tmp_path / "run", max_steps=1)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("setting", "sentence"), [({"chunk_size": 4}, "would see a chunk"), ({"rtd_weight": 0.1}, "among its own terms")]
)
def test_what_it_cannot_do_is_a_sentence(
    sentences: Path, tiny: Path, tmp_path: Path, setting: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        isotrope.train("diffcse", sentences, tiny, tmp_path / "run", max_steps=1, batch_size=8, **setting)
    assert not (tmp_path / "run").exists()
