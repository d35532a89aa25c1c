"""What is saved loads in sentence-transformers and here with the same vectors; what fails leaves no trace."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from torch import nn

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.encoders.parts import part
from isotrope.encoders.parts.dense import Dense
from isotrope.encoders.parts.stock_parts import LayerNorm, Normalize
from isotrope.encoders.parts.stock_pooling import StockPooling
from isotrope.encoders.pooling import Pooling
from isotrope.errors import InputError
from isotrope.towers.heads import tanh_head

POOLINGS = ("cls", "mean", "max", "first_last", "embed_last", "last2", "cls+mean")
OF_A_LAYER = ("layer:0", "layer:1", "layer:1:cls", "layer:0:max", "layer:1:cls+mean")
CLOSE = {"rtol": 0, "atol": 1e-5}


def json_of(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))


def with_parts(base: Path, pooling: str, *parts: str) -> Encoder:
    """``base`` with a pooling and freshly drawn modules after it."""
    torch.manual_seed(5)
    encoder = load(base, pooling=pooling)
    make = {
        "dense": lambda: Dense(encoder.dimension, 20, activation=nn.Tanh()),
        "plain": lambda: Dense(encoder.dimension, bias=False),
        "head": lambda: tanh_head(encoder.dimension),
        "norm": lambda: LayerNorm(encoder.dimension),
        "unit": Normalize,
    }
    for name in parts:
        encoder.parts.append(make[name]())
    return encoder.eval()


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


# ----------------------------------------------------------------------------------------------------- the same vectors


@pytest.mark.parametrize("parts", [(), ("dense", "unit")], ids=["bare", "dense-unit"])
@pytest.mark.parametrize("pooling", [*POOLINGS, *OF_A_LAYER])
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_a_saved_folder_gives_the_same_vectors_everywhere(
    name, pooling, parts, request, tmp_path, texts, vectors_elsewhere
):
    encoder = with_parts(request.getfixturevalue(name), pooling, *parts)
    expected = encoder.encode(texts)
    encoder.save(tmp_path / "model")
    np.testing.assert_allclose(vectors_elsewhere(tmp_path / "model", texts), expected, **CLOSE)
    again = load(tmp_path / "model")
    np.testing.assert_allclose(again.encode(texts), expected, **CLOSE)
    assert again.pooling == encoder.pooling
    assert again.max_length == encoder.max_length == {"bert": 48, "roberta": 64}[name]
    assert again.fingerprint() == encoder.fingerprint()


@pytest.mark.parametrize("parts", [("head",), ("norm", "plain"), ("unit",)], ids="-".join)
def test_other_modules_after_the_pooling(parts, bert, tmp_path, texts, vectors_elsewhere):
    encoder = with_parts(bert, "mean", *parts)
    encoder.save(tmp_path / "model")
    np.testing.assert_allclose(vectors_elsewhere(tmp_path / "model", texts), encoder.encode(texts), **CLOSE)
    np.testing.assert_allclose(load(tmp_path / "model").encode(texts), encoder.encode(texts), **CLOSE)


def test_uneven_layer_weights(bert, tmp_path, texts, vectors_elsewhere):
    encoder = load(bert)
    encoder.pooling = Pooling.weighted(("cls", "mean"), [0.25, 0.0, 2.0, 1.0])
    encoder.save(tmp_path / "model")
    np.testing.assert_allclose(vectors_elsewhere(tmp_path / "model", texts), encoder.encode(texts), **CLOSE)
    np.testing.assert_allclose(load(tmp_path / "model").encode(texts), encoder.encode(texts), **CLOSE)


def test_the_prompt_and_a_shorter_length_travel(bert, tmp_path, texts, vectors_elsewhere):
    encoder = load(bert)
    encoder.prompt, encoder.max_length = "find the ", 10
    encoder.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.prompt, again.max_length) == ("find the ", 10)
    np.testing.assert_allclose(vectors_elsewhere(tmp_path / "model", texts), encoder.encode(texts), **CLOSE)


def test_a_language_head_is_saved_with_its_model_and_harms_no_reader(fresh, tmp_path, texts, vectors_elsewhere):
    encoder = fresh()
    encoder.save(tmp_path / "model")
    np.testing.assert_allclose(vectors_elsewhere(tmp_path / "model", texts), encoder.encode(texts), **CLOSE)
    head = load(tmp_path / "model", language_head=True).language_model.cls
    for name, value in encoder.language_model.cls.state_dict().items():
        torch.testing.assert_close(head.state_dict()[name], value)


def test_saving_changes_nothing_in_the_encoder(fresh, tmp_path, texts):
    encoder = fresh()
    encoder.pooling = Pooling.named("first_last", 3)
    before, hidden = encoder.fingerprint(), encoder.backbone.config.output_hidden_states
    encoder.save(tmp_path / "model")
    assert encoder.fingerprint() == before
    assert encoder.backbone.config.output_hidden_states == hidden


# ------------------------------------------------------------------------------------------------------------ the files


@pytest.mark.parametrize("pooling", POOLINGS)
def test_old_and_new_readers_find_the_keys_they_know(pooling, bert, tmp_path):
    with_parts(bert, pooling, "dense", "unit").save(tmp_path)
    places = {entry["type"]: tmp_path / entry["path"] for entry in json_of(tmp_path / "modules.json")}
    assert {name.rsplit(".", 1)[0] for name in places} == {
        "sentence_transformers.models"
    }  # stock modules, under the old paths
    config = json_of(places["sentence_transformers.models.Pooling"] / "config.json")
    modes = pooling.split("+") if pooling in ("cls", "max", "cls+mean") else ["mean"]
    assert config["pooling_mode"] == (modes if len(modes) > 1 else modes[0])
    for mode, key in {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "lasttoken": "lasttoken"}.items():
        assert config[f"pooling_mode_{key}"] is (mode in modes)
    assert config["word_embedding_dimension"] == 32
    assert json_of(tmp_path / "sentence_bert_config.json")["max_seq_length"] == 48
    assert json_of(tmp_path / "isotrope.json")["pooling"] == pooling
    assert not list(tmp_path.rglob("*.bin"))  # nothing pickled


def test_facts_stand_in_isotrope_json_and_come_back(bert, tmp_path):
    encoder = load(bert)
    encoder.facts = {"method": "simcse", "seed": 42}
    encoder.save(tmp_path / "model")
    assert json_of(tmp_path / "model" / "isotrope.json").items() >= encoder.facts.items()
    assert load(tmp_path / "model").facts.items() >= encoder.facts.items()


def test_saving_says_nothing(fresh, tmp_path, capfd):
    fresh().save(tmp_path / "model")
    assert capfd.readouterr() == ("", "")


# ----------------------------------------------------------------------------------------------- refusals and accidents


def test_parts_that_no_stock_module_can_hold_are_refused(bert, tmp_path):
    encoder = load(bert)
    encoder.parts.append(nn.Bilinear(2, 2, 2))
    with pytest.raises(InputError, match="Bilinear cannot be written"):
        encoder.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "activation", [nn.LeakyReLU(0.5), nn.PReLU(), nn.Softmax(dim=1), nn.GELU("tanh"), nn.Flatten()], ids=str
)
def test_an_activation_that_is_more_than_its_name_is_refused(activation, bert, tmp_path):
    encoder = load(bert).with_parts([Dense(32, 4, activation=activation)])
    encoder.fingerprint()
    with pytest.raises(InputError, match="cannot be written"):
        encoder.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_an_order_of_poolings_that_old_keys_cannot_tell_is_refused(bert, tmp_path):
    with pytest.raises(InputError, match="joined in the order"):
        load(bert, pooling="mean+cls").save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_holds_something_else_is_left_alone(bert, tmp_path):
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter.txt").write_text("three years of work")
    with pytest.raises(InputError, match="holds something else"):
        load(bert).save(thesis)
    assert snapshot(tmp_path) == {"thesis/chapter.txt": b"three years of work"}


def test_a_file_is_left_alone(bert, tmp_path):
    (tmp_path / "model").write_text("a file")
    with pytest.raises(InputError, match="a file stands"):
        load(bert).save(tmp_path / "model")
    with pytest.raises(InputError, match="Cannot write"):
        load(bert).save(tmp_path / "model" / "inside")
    assert snapshot(tmp_path) == {"model": b"a file"}


def test_a_model_folder_is_replaced_whole(bert, tmp_path, texts):
    with_parts(bert, "first_last", "dense", "unit").save(tmp_path / "model")
    (tmp_path / "empty").mkdir()
    for folder in ("model", "empty"):
        load(bert).save(tmp_path / folder)
        assert {file.name for file in (tmp_path / folder).iterdir() if file.is_dir()} == {"1_Pooling"}
        np.testing.assert_allclose(load(tmp_path / folder).encode(texts), load(bert).encode(texts), **CLOSE)
    assert {file.name for file in tmp_path.iterdir()} == {"model", "empty"}


FULL_DISK = {
    "system": OSError(errno.ENOSPC, "No space left on device"),
    "safetensors": SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    "tokenizers": Exception("No space left on device (os error 28)"),
}


@pytest.mark.parametrize("kind", FULL_DISK)
@pytest.mark.parametrize("exists", [True, False])
def test_a_full_disk_is_one_sentence_and_leaves_the_old_folder(kind, exists, bert, tmp_path, monkeypatch):
    encoder = with_parts(bert, "mean", "dense")
    if exists:
        load(bert).save(tmp_path / "model")
    before = snapshot(tmp_path)

    def full(*_, **__):
        raise FULL_DISK[kind]

    monkeypatch.setattr(part, "save_file", full)  # the last of the weights: most of the folder is written by then
    with pytest.raises(InputError, match="no space left on the disk") as caught:
        encoder.save(tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert snapshot(tmp_path) == before
    assert {file.name for file in tmp_path.iterdir()} == ({"model"} if exists else set())


@pytest.mark.parametrize("accident", [RuntimeError("something of ours"), KeyboardInterrupt()], ids=["error", "ctrl-c"])
@pytest.mark.parametrize(("owner", "where"), [(part, "save_file"), (part, "write_json"), (StockPooling, "config")])
def test_an_accident_in_the_middle_leaves_the_old_folder_whole(accident, owner, where, bert, tmp_path, monkeypatch):
    load(bert).save(tmp_path / "model")
    before = snapshot(tmp_path)

    def fails(*_, **__):
        raise accident

    with monkeypatch.context() as patch:
        patch.setattr(owner, where, fails)
        encoder = with_parts(bert, "first_last", "dense")
        hidden = encoder.backbone.config.output_hidden_states
        with pytest.raises(type(accident)):
            encoder.save(tmp_path / "model")
    assert encoder.backbone.config.output_hidden_states == hidden
    assert snapshot(tmp_path) == before
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    encoder.save(tmp_path / "model")  # and the next try succeeds
    assert load(tmp_path / "model").pooling.name == "first_last"
