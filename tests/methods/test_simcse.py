"""SimCSE: what is compared, what is trained, what is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.dense import Dense
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.methods.simcse import SimCSE, SupervisedSimCSE
from isotrope.objectives import info_nce

Build = Callable[..., Any]
Batched = Callable[..., Batch]


@pytest.fixture
def build(built: Build, sentences: Path, triples: Path) -> Build:
    texts = {"simcse": sentences, "simcse-supervised": triples}

    def make(name: str, pooling: str = "cls", data: Path | None = None, **settings: Any) -> Any:
        return built(name, data or texts[name], pooling=pooling, **settings)

    return make


def test_cards_carry_the_paper() -> None:
    cards = {card.name: card for card in isotrope.methods()}
    assert cards["simcse"].needs == "sentences"
    assert cards["simcse-supervised"].needs == "triples"
    assert cards["simcse"].year == 2021
    assert cards["simcse"].kind == "training"
    assert "Gao" in cards["simcse"].paper


def test_defaults_are_the_papers() -> None:
    assert SimCSE.Settings().temperature == 0.05
    assert SupervisedSimCSE.Settings().hard_negative_weight == 1.0


def test_the_two_views_differ_under_dropout_and_agree_without(build: Build, batched: Batched) -> None:
    with_dropout = build("simcse")
    found = with_dropout.represent(batched(with_dropout))
    assert not torch.allclose(found["first"], found["second"], atol=1e-4)
    without = build("simcse", dropout=0.0)
    found = without.represent(batched(without))
    assert torch.allclose(found["first"], found["second"], atol=1e-6)
    cosines = torch.nn.functional.cosine_similarity(found["first"], found["second"])
    assert torch.allclose(cosines, torch.ones(8), atol=1e-5)


def test_the_loss_is_one_way_info_nce_over_the_batch(build: Build, batched: Batched) -> None:
    method = build("simcse", temperature=0.2)
    batch = batched(method)
    found = method.represent(batch)
    assert float(method.loss(found, batch.generator())["contrastive"]) == pytest.approx(
        float(info_nce(found["first"], found["second"], 0.2))
    )
    assert method.candidates(found) == 8


def test_the_unsupervised_head_trains_and_is_dropped(build: Build, batched: Batched, tiny: Path) -> None:
    method = build("simcse")
    batch = batched(method)
    Combined(method).total(method.loss(method.represent(batch), batch.generator())).backward()
    assert method.tower["head"].module.linear.weight.grad.abs().sum() > 0  # type: ignore[union-attr]
    exported = method.export()
    assert len(exported.parts) == 0
    raw = isotrope.load(tiny, pooling="cls").encode("the chef bakes")
    assert np.allclose(exported.encode("the chef bakes"), raw, atol=1e-6)


def test_the_supervised_head_is_kept(build: Build, tmp_path: Path) -> None:
    method = build("simcse-supervised")
    exported = method.export()
    assert isinstance(exported.parts[0], Dense)
    exported.save(tmp_path / "model")
    again = isotrope.load(tmp_path / "model")
    assert np.allclose(again.encode("the chef bakes"), exported.encode("the chef bakes"), atol=1e-5)
    assert np.abs(again.encode("the chef bakes")).max() < 1  # tanh is still there


@pytest.mark.parametrize(
    ("pooling", "head", "expected"), [("mean", "auto", 0), ("mean", "kept", 1), ("cls", "none", 0), ("cls", "kept", 1)]
)
def test_head_policy(build: Build, pooling: str, head: str, expected: int) -> None:
    assert len(build("simcse", pooling, head=head).export().parts) == expected


def test_the_head_is_a_linear_map_and_tanh_drawn_as_bert_draws_its_weights(build: Build, tiny: Path) -> None:
    linear = build("simcse").tower["head"].module.linear
    assert float(linear.weight.std()) == pytest.approx(0.02, rel=0.1)
    assert not linear.bias.any()
    vectors = torch.randn(4, 32)
    with torch.no_grad():
        linear.bias.add_(torch.randn(32))
        head = build("simcse").tower["head"]
        head.module.linear.load_state_dict(linear.state_dict())
        assert torch.allclose(head(50 * vectors), torch.tanh(50 * vectors @ linear.weight.T + linear.bias), atol=1e-5)
    finished = isotrope.load(tiny, "cls", "cpu").with_parts([Dense(32)])
    assert "head" not in SimCSE(SimCSE.Settings(), finished).tower  # a module stands behind its pooling already


def test_hard_negatives_are_candidates_of_every_row_and_alpha_weighs_the_own_one(
    build: Build, batched: Batched, triples: Path
) -> None:
    method = build("simcse-supervised", hard_negative_weight=4.0)
    batch = batched(method)
    found = method.represent(batch)
    assert set(found) == {"anchor", "positive", "negative"}
    assert method.candidates(found) == 16
    expected = info_nce(found["anchor"], found["positive"], 0.05, found["negative"], 4.0)
    assert float(method.loss(found, batch.generator())["contrastive"]) == pytest.approx(float(expected))


def test_pairs_will_do_for_supervised(build: Build, batched: Batched, tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("premise,entailment\n" + "\n".join(f"text {i},same text {i}" for i in range(8)), encoding="utf-8")
    method = build("simcse-supervised", data=file)
    batch = batched(method)
    found = method.represent(batch)
    assert method.candidates(found) == 8
    assert torch.isfinite(method.loss(found, batch.generator())["contrastive"])


def test_dropout_is_set_in_attention_too(build: Build) -> None:
    method = build("simcse", dropout=0.37)
    rates = {module.p for module in method.encoder.backbone.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates == {0.37}


@pytest.mark.parametrize(
    "bad",
    [{"temperature": 0.0}, {"temperature": -1.0}, {"temperature": float("nan")}, {"dropout": 1.5}, {"head": "tail"}],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        check(SimCSE.Settings(**bad))  # type: ignore[arg-type]
    with pytest.raises(InputError):
        check(replace(SupervisedSimCSE.Settings(), hard_negative_weight=-1.0))


def test_export_shares_no_mode_with_training(build: Build) -> None:
    method = build("simcse")
    exported: Encoder = method.export()
    first, second = exported.encode("the chef bakes"), exported.encode("the chef bakes")
    assert np.array_equal(first, second)  # dropout was off inside
    assert method.encoder.backbone.training  # and is on again outside


def test_a_fixed_mask_makes_the_views_equal_under_dropout(build: Build, batched: Batched) -> None:
    method = build("simcse", fixed_mask=True)
    batch = batched(method)
    found, again = method.represent(batch), method.represent(batch)
    assert torch.equal(found["first"], found["second"])
    assert not torch.allclose(found["first"], again["first"], atol=1e-4)  # dropout is on


def test_only_the_second_view_is_edited(batched: Batched, build: Build) -> None:
    plain, edited = (batched(build("simcse", second_edits=edits)) for edits in ("none", "crop:0.5"))
    assert torch.equal(plain["first"].ids, edited["first"].ids)
    assert torch.equal(plain["second"].ids, plain["first"].ids)
    assert edited["second"].lengths.sum() < edited["first"].lengths.sum()


def test_each_vector_is_that_of_its_own_view(batched: Batched, build: Build) -> None:
    method = build("simcse", second_edits="crop:0.5", dropout=0.0)
    batch = batched(method)
    found = method.represent(batch)
    for name, vectors in found.items():
        assert torch.allclose(vectors, method.read(method.encoder(batch[name])), atol=1e-5), name
    assert not torch.allclose(found["first"], found["second"], atol=1e-3)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"second_edits": "krop:0.5"}, "krop"), ({"second_edits": "crop:0.9", "fixed_mask": True}, "must be one text")],
)
def test_views_that_cannot_be_are_refused(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check(SimCSE.Settings(**settings))  # type: ignore[arg-type]


def test_the_next_sentence_of_the_document_is_the_positive(build: Build, batched: Batched) -> None:
    method = build("simcse", positive="next-sentence")
    corpus = method.corpus
    assert corpus.record_type.name == "documents"
    lasts = [row for row in range(len(corpus)) if not method.prepared.usable[row]]
    assert lasts == list(range(7, 400, 8))
    batch = batched(method, [0, 1, 9])
    following = batched(method, [1, 2, 10])
    assert torch.equal(batch["second"].ids, following["first"].ids)
    assert not torch.equal(batch["first"].ids, batch["second"].ids)


def test_a_text_without_documents_has_no_next_sentence(build: Build, tmp_path: Path) -> None:
    alone = tmp_path / "alone.txt"
    alone.write_text("\n\n".join(f"text {number}" for number in range(8)) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="simcse"):
        build("simcse", data=alone, positive="next-sentence")


@pytest.mark.parametrize(("name", "role"), [("simcse", "second"), ("simcse-supervised", "positive")])
def test_separate_towers_begin_equal_and_both_learn(build: Build, batched: Batched, name: str, role: str) -> None:
    shared, separate = (build(name, towers=towers, dropout=0.0) for towers in ("shared", "separate"))
    batch = batched(separate)
    one, two = shared.represent(batch), separate.represent(batch)
    assert all(torch.allclose(one[role], two[role], atol=1e-5) for role in one)
    with torch.no_grad():
        for parameter in separate.tower["second"].module.backbone.parameters():
            parameter.mul_(1.1)
    moved = separate.represent(batch)
    first = next(iter(moved))
    assert torch.allclose(moved[first], one[first], atol=1e-5)
    assert not torch.allclose(moved[role], one[role], atol=1e-3)
    Combined(separate).total(separate.loss(moved, batch.generator())).backward()
    for part in (separate.encoder, *(separate.tower[name] for name in ("second", "head", "second_head"))):
        assert max(float(p.grad.abs().max()) for p in part.parameters() if p.grad is not None) > 1e-6


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_the_second_tower_is_saved_inside_the_model(tiny: Path, triples: Path, tmp_path: Path) -> None:
    loop: dict[str, Any] = {"max_steps": 3, "batch_size": 8, "eval_steps": 3, "learning_rate": 1e-3, "held_out": 0}
    loop["keep_start"] = False
    common = {"model": tiny, "output": tmp_path / "run", "pooling": "cls", "towers": "separate", **loop}
    run = isotrope.train("simcse-supervised", triples, **common)
    kept = load_file(tmp_path / "run" / "checkpoints" / "best-3.safetensors")
    folders = {"encoder": run.folder / "model", "tower.second.module": run.folder / "model" / "second"}
    vectors = []
    for name, folder in folders.items():
        saved = isotrope.load(folder)
        weight = dict(saved.backbone.named_parameters())["encoder.layer.0.attention.self.query.weight"]
        assert torch.equal(weight.cpu(), kept[f"method.{name}.backbone.encoder.layer.0.attention.self.query.weight"])
        assert isinstance(saved.parts[0], Dense)
        vectors.append(saved.encode("the chef bakes"))
    assert np.allclose(vectors[0], run.encoder.encode("the chef bakes"), atol=1e-5)
    assert not np.allclose(*vectors, atol=1e-4)
    isotrope.train("simcse-supervised", triples, resume=True, **common)  # writes the folder once more
    assert np.allclose(isotrope.load(run.folder / "model" / "second").encode("the chef bakes"), vectors[1], atol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"fixed_mask": True, "towers": "separate"},
        {"fixed_mask": True, "positive": "next-sentence"},
        {"positive": "next-sentence", "second_edits": "delete-one"},
        {"positive": "previous"},
        {"towers": "twin"},
    ],
)
def test_comparisons_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"one encoder|as it is|is one of"):
        check(SimCSE.Settings(**settings))  # type: ignore[arg-type]
