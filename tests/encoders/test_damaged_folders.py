"""A damaged or odd model folder is refused before it is built: one sentence that names the file and what was found."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.encoders.packed import WEIGHTS, write_packed
from isotrope.encoders.parts.dense import Dense
from isotrope.encoders.parts.token_weights import TokenWeights
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.errors import InputError
from isotrope.tokens.word_vocabulary import table_words

Damage = Callable[[Path], Any]
NOT_FINITE = json.loads('{"nan": NaN, "inf": Infinity}')


@pytest.fixture(scope="session")
def folders(bert: Path, roberta: Path, fresh: Callable[[], Encoder], tmp_path_factory: Any) -> dict[str, Path]:
    """By name, whole folders of each layout that is read: plain, saved with parts, packed, a table of words."""
    place = tmp_path_factory.mktemp("whole")
    encoder = fresh()
    encoder.with_parts([Dense(32, 8, activation=torch.nn.Tanh())]).save(place / "saved")
    weighted = fresh()
    weighted.token_weights = TokenWeights(torch.ones(len(weighted.tokenizer)))
    weighted.save(place / "weighted")
    last = load(bert, pooling="first_last")
    last.save(place / "layered")
    write_packed(fresh(), place / "packed")
    Encoder(StaticVectors(torch.randn(4, 6)), table_words(["the", "cat", "dog"])).save(place / "table")
    return {name: place / name for name in ("saved", "weighted", "layered", "packed", "table")} | {
        "plain": bert,
        "bytes": roberta,
    }


def fact(file: str, **changes: Any) -> Damage:
    """The JSON object in a file with other values."""

    def change(folder: Path) -> None:
        path = folder / file
        facts = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(json.dumps({**facts, **changes}))

    return change


def config(**changes: Any) -> Damage:
    return fact("config.json", **changes)


def less(file: str, *names: str) -> Damage:
    """The JSON object in a file without some keys."""

    def change(folder: Path) -> None:
        facts = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({name: value for name, value in facts.items() if name not in names}))

    return change


def text(file: str, content: str | bytes) -> Damage:
    return lambda folder: (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())


def gone(*names: str) -> Damage:
    return lambda folder: [(folder / name).unlink() for name in names]


def no_folder(name: str) -> Damage:
    return lambda folder: shutil.rmtree(folder / name)


def as_folder(name: str) -> Damage:
    """A folder stands where the file should be."""
    return lambda folder: ((folder / name).unlink(), (folder / name).mkdir())


def as_pipe(name: str) -> Damage:
    """A pipe that nobody writes to stands where the file should be; reading it would wait for ever."""
    return lambda folder: ((folder / name).unlink(), os.mkfifo(folder / name))


def cut(file: str, share: float = 0.5) -> Damage:
    def change(folder: Path) -> None:
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[: int(len(content) * share)])

    return change


def tensors(file: str, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Damage:
    def write(folder: Path) -> None:
        save_file(change(load_file(folder / file)), folder / file, metadata={"format": "pt"})

    return write


def modules(change: Callable[[list[dict[str, Any]]], Any]) -> Damage:
    def write(folder: Path) -> None:
        listing = json.loads((folder / "modules.json").read_text())
        (folder / "modules.json").write_text(json.dumps(change(listing)))

    return write


def module(number: int, **changes: Any) -> Damage:
    return modules(lambda listing: [{**one, **(changes if i == number else {})} for i, one in enumerate(listing)])


def shards(names: dict[str, str]) -> Damage:
    """The weights as an index of shards, under names that may lead anywhere."""

    def write(folder: Path) -> None:
        held = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").rename(folder / "first.safetensors")
        (folder.parent / "outside.safetensors").write_bytes((folder / "first.safetensors").read_bytes())
        place = names["place"].replace("FOLDER", str(folder))
        index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(held, place)}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    return write


def no_words(folder: Path) -> None:
    """A tokenizer of another model: it knows eight tokens."""
    facts = json.loads((folder / "tokenizer.json").read_text())
    facts["model"]["vocab"] = dict(list(facts["model"]["vocab"].items())[:8])
    facts["added_tokens"] = [one for one in facts["added_tokens"] if one["id"] < 8]
    (folder / "tokenizer.json").write_text(json.dumps(facts))


def more_words(folder: Path) -> None:
    facts = json.loads((folder / "tokenizer.json").read_text())
    known = facts["model"]["vocab"]
    known |= {f"new{number}": len(known) + number for number in range(50)}
    (folder / "tokenizer.json").write_text(json.dumps(facts))


def a_far_token(folder: Path) -> None:
    facts = json.loads((folder / "tokenizer.json").read_text())
    facts["added_tokens"].append({**facts["added_tokens"][0], "id": 5000, "content": "[FAR]", "special": False})
    (folder / "tokenizer.json").write_text(json.dumps(facts))


def deep(folder: Path) -> None:
    (folder / "config.json").write_text('{"a":' * 100_000 + "1" + "}" * 100_000)


def other_dtype(kind: torch.dtype) -> Damage:
    return tensors("model.safetensors", lambda held: {name: one.to(kind) for name, one in held.items()})


def another_layer(held: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return held | {
        name.replace("layer.2.", "layer.3."): one.clone() for name, one in held.items() if "layer.2." in name
    }


POOL, DENSE = "1_Pooling/config.json", "2_Dense/config.json"
CASES: dict[str, tuple[str, Damage, str, str]] = {
    # name: folder, damage, the file that is named, what is said
    # ---- config.json
    "config is missing": ("plain", gone("config.json"), "config.json", "missing|no config.json"),
    "config is empty": ("plain", text("config.json", ""), "config.json", "JSON"),
    "config is binary": ("plain", text("config.json", b"\xff\xfe\x00\x01"), "config.json", "JSON"),
    "config is a list": ("plain", text("config.json", "[1]"), "config.json", "object"),
    "config is a folder": ("plain", as_folder("config.json"), "config.json", "missing|no config.json"),
    "config is a pipe": ("plain", as_pipe("config.json"), "config.json", "missing|no config.json"),
    "config nests for ever": ("plain", deep, "config.json", "JSON"),
    "config holds 5,000 digits": ("plain", text("config.json", '{"a": ' + "9" * 5000 + "}"), "config.json", "JSON"),
    "config names no model": ("plain", less("config.json", "model_type", "architectures"), "config.json", "model_type"),
    "model_type is unknown": ("plain", config(model_type="nonesuch"), "config.json", "nonesuch"),
    "model_type is a number": ("plain", config(model_type=3), "config.json", "model_type"),
    "model_type is no text model": ("plain", config(model_type="vit"), "config.json", "vit"),
    "no heads": ("plain", config(num_attention_heads=0), "config.json", "num_attention_heads"),
    "heads as words": ("plain", config(num_attention_heads="four"), "config.json", "num_attention_heads"),
    "heads that do not divide": ("plain", config(num_attention_heads=5), "config.json", "num_attention_heads"),
    "heads below zero": ("plain", config(num_attention_heads=-4), "config.json", "num_attention_heads"),
    "width as words": ("plain", config(hidden_size="32"), "config.json", "hidden_size"),
    "width a fraction": ("plain", config(hidden_size=32.5), "config.json", "hidden_size"),
    "width not a number": ("plain", config(hidden_size=NOT_FINITE["nan"]), "config.json", "hidden_size"),
    "width a list": ("plain", config(hidden_size=[32]), "config.json", "hidden_size"),
    "width null": ("plain", config(hidden_size=None), "config.json", "hidden_size"),
    "width beyond all memory": ("plain", config(hidden_size=4_000_000), "config.json", "weights"),
    "inner width beyond all memory": ("plain", config(intermediate_size=4_000_000_000), "config.json", "weights"),
    "inner width no number": ("plain", config(intermediate_size="big"), "config.json", "intermediate_size"),
    "vocabulary beyond all memory": ("plain", config(vocab_size=10**12), "config.json", "vocab_size"),
    "vocabulary of none": ("plain", config(vocab_size=0), "config.json", "vocab_size"),
    "a smaller vocabulary": ("plain", config(vocab_size=40), "config.json", "weights|vocab_size"),
    "fewer layers than the weights": ("plain", config(num_hidden_layers=2), "config.json", "num_hidden_layers|layers"),
    "more layers than the weights": ("plain", config(num_hidden_layers=4), "config.json", "do not fit"),
    "a milliard layers": ("plain", config(num_hidden_layers=10**9), "config.json", "num_hidden_layers"),
    "no layers": ("plain", config(num_hidden_layers=0), "config.json", "num_hidden_layers|layers"),
    "layers true": ("plain", config(num_hidden_layers=True), "config.json", "num_hidden_layers"),
    "epsilon as words": ("plain", config(layer_norm_eps="1e-12"), "config.json", "layer_norm_eps"),
    "epsilon not a number": ("plain", config(layer_norm_eps=NOT_FINITE["nan"]), "config.json", "layer_norm_eps"),
    "epsilon below zero": ("plain", config(layer_norm_eps=-1.0), "config.json", "layer_norm_eps"),
    "an unknown activation": ("plain", config(hidden_act="nonesuch"), "config.json", "nonesuch"),
    "an activation of null": ("plain", config(hidden_act=None), "config.json", "hidden_act"),
    "dropout of two": ("plain", config(hidden_dropout_prob=2.0), "config.json", "hidden_dropout_prob"),
    "no positions": ("plain", config(max_position_embeddings=0), "config.json", "max_position_embeddings"),
    "positions below zero": ("plain", config(max_position_embeddings=-1), "config.json", "max_position_embeddings"),
    "fewer positions than the weights": ("plain", config(max_position_embeddings=12), "config.json", "do not fit"),
    "a padding token beyond the table": ("plain", config(pad_token_id=10**6), "config.json", "pad_token_id"),
    "a quantised model": ("plain", config(quantization_config={"quant_method": "gptq"}), "config.json", "quanti"),
    "a kernel from a hub": (
        "plain",
        config(attn_implementation="someone/kernel"),
        "config.json",
        "attn_implementation",
    ),
    "an adapter": ("plain", text("adapter_config.json", "{}"), "adapter_config.json", "adapter"),
    "packed: heads as words": ("packed", config(num_attention_heads="4"), "config.json", "num_attention_heads"),
    "packed: fewer layers": ("packed", config(num_hidden_layers=2), "config.json", "layers|do not fit"),
    # ---- weights
    "weights are missing": ("plain", gone("model.safetensors"), "model.safetensors", "missing"),
    "weights are empty": ("plain", text("model.safetensors", ""), "model.safetensors", "read"),
    "weights are cut": ("plain", cut("model.safetensors"), "model.safetensors", "read"),
    "weights are cut in the header": ("plain", cut("model.safetensors", 0.001), "model.safetensors", "read"),
    "weights are a folder": ("plain", as_folder("model.safetensors"), "model.safetensors", "missing"),
    "weights are a pipe": ("plain", as_pipe("model.safetensors"), "model.safetensors", "missing"),
    "weights are whole numbers": ("plain", other_dtype(torch.int8), "model.safetensors", "int8|I8"),
    "weights in 8 bits": ("plain", other_dtype(torch.float8_e4m3fn), "model.safetensors", "F8"),
    "weights with a further layer": ("plain", tensors("model.safetensors", another_layer), "config.json", "layer"),
    "a shard that is missing": ("plain", shards({"place": "second.safetensors"}), "second.safetensors", "missing"),
    "a shard outside": ("plain", shards({"place": "../outside.safetensors"}), "index.json", "leaves the folder"),
    "a shard anywhere": ("plain", shards({"place": "FOLDER/../outside.safetensors"}), "index.json", "leaves"),
    "an index of nothing": (
        "plain",
        lambda folder: (gone("model.safetensors")(folder), text("model.safetensors.index.json", "{}")(folder)),
        "model.safetensors.index.json",
        "weight_map",
    ),
    "packed: weights are missing a scale": (
        "packed",
        tensors(
            WEIGHTS, lambda held: {name: one for name, one in held.items() if not name.endswith("query.weight.scale")}
        ),
        WEIGHTS,
        "scale",
    ),
    "packed: weights are cut": ("packed", cut(WEIGHTS), WEIGHTS, "read"),
    "packed: a weight of another size": (
        "packed",
        tensors(WEIGHTS, lambda held: held | {"encoder.layer.0.output.dense.bias": torch.zeros(3)}),
        WEIGHTS,
        "do not fit",
    ),
    # ---- tokenizer
    "tokenizer is missing": ("plain", gone("tokenizer.json"), "tokenizer", "missing"),
    "tokenizer is empty": ("plain", text("tokenizer.json", ""), "tokenizer.json", "JSON"),
    "tokenizer is cut": ("plain", cut("tokenizer.json"), "tokenizer.json", "JSON"),
    "tokenizer is a list": ("plain", text("tokenizer.json", "[]"), "tokenizer.json", "object"),
    "tokenizer is of another version": ("plain", fact("tokenizer.json", version="9"), "tokenizer", "cannot be loaded"),
    "tokenizer has no model": ("plain", less("tokenizer.json", "model"), "tokenizer", "cannot be loaded"),
    "tokenizer larger than the table": ("plain", more_words, "tokenizer.json", "rows"),
    "a token beyond the table": ("plain", a_far_token, "tokenizer.json", "rows"),
    "tokenizer of another model": ("plain", no_words, "tokenizer.json", "rows"),
    "tokenizer_config is damaged": ("plain", text("tokenizer_config.json", "{"), "tokenizer_config.json", "JSON"),
    "tokenizer_config is a list": ("plain", text("tokenizer_config.json", "[]"), "tokenizer_config.json", "object"),
    "its length is no number": ("plain", fact("tokenizer_config.json", model_max_length="x"), "tokenizer", "length"),
    "packed: tokenizer is missing": ("packed", gone("tokenizer.json"), "tokenizer", "missing"),
    "packed: tokenizer is cut": ("packed", cut("tokenizer.json"), "tokenizer.json", "JSON"),
    "packed: tokenizer of another model": ("packed", no_words, "tokenizer.json", "rows"),
    # ---- modules.json and the parts
    "modules leave the folder": ("saved", module(1, path="../elsewhere"), "modules.json", "leaves the folder"),
    "modules leave by a detour": ("saved", module(1, path="a/../../b"), "modules.json", "leaves the folder"),
    "modules stand anywhere": ("saved", module(1, path="/etc"), "modules.json", "leaves the folder"),
    "a module without a folder": ("saved", no_folder("2_Dense"), DENSE, "missing"),
    "a pooling without a folder": ("saved", no_folder("1_Pooling"), POOL, "missing"),
    "a module of its own code": ("saved", module(0, type="custom_st.Transformer"), "modules.json", "custom_st"),
    "a module of an unknown type": ("saved", module(2, type="sentence_transformers.models.CNN"), "modules.json", "CNN"),
    "a module without a type": ("saved", modules(lambda one: [{"path": ""}]), "modules.json", "type"),
    "a module whose path is a number": ("saved", module(1, path=1), "modules.json", "path"),
    "modules are words": ("saved", modules(lambda one: ["Transformer"]), "modules.json", "type"),
    "modules are an object": ("saved", modules(lambda one: {"0": "x"}), "modules.json", "list"),
    "no modules": ("saved", modules(lambda one: []), "modules.json", "no module"),
    "two poolings": ("saved", modules(lambda one: [one[0], one[1], one[1], one[2]]), "modules.json", "two|second"),
    "no pooling": ("saved", modules(lambda one: [one[0], one[2]]), "modules.json", "pooling|Pooling"),
    "a part before the pooling": ("saved", modules(lambda one: [one[0], one[2], one[1]]), "modules.json", "order"),
    "pooling says nothing": ("saved", text(POOL, "{}"), POOL, "pooling_mode"),
    "pooling of an unknown mode": ("saved", fact(POOL, pooling_mode="nonesuch"), POOL, "nonesuch"),
    "pooling of a number": ("saved", fact(POOL, pooling_mode=3), POOL, "pooling_mode"),
    "pooling of numbers": ("saved", fact(POOL, pooling_mode=[1, 2]), POOL, "pooling_mode"),
    "pooling of a width in words": (
        "saved",
        fact(POOL, word_embedding_dimension="x"),
        POOL,
        "word_embedding_dimension",
    ),
    "pooling of another width": ("saved", fact(POOL, word_embedding_dimension=64), POOL, "word_embedding_dimension"),
    "dense of a width in words": ("saved", fact(DENSE, in_features="thirty"), DENSE, "in_features"),
    "dense of no width": ("saved", fact(DENSE, out_features=0), DENSE, "out_features"),
    "dense without its width": ("saved", less(DENSE, "in_features"), DENSE, "in_features"),
    "dense of another width": (
        "saved",
        lambda folder: (
            fact(DENSE, in_features=16)(folder),
            save_file(
                {"linear.weight": torch.zeros(8, 16), "linear.bias": torch.zeros(8)},
                folder / "2_Dense/model.safetensors",
            ),
        ),
        "2_Dense",
        "16",
    ),
    "dense with an activation that is none": (
        "saved",
        fact(DENSE, activation_function="torch.nn.modules.Linear"),
        DENSE,
        "Linear",
    ),
    "dense with a container": ("saved", fact(DENSE, activation_function="torch.nn.Module"), DENSE, "torch.nn.Module"),
    "dense whose weights are cut": ("saved", cut("2_Dense/model.safetensors"), "2_Dense/model.safetensors", "read"),
    "dense with a bias in words": ("saved", fact(DENSE, bias="no"), DENSE, "bias"),
    "layers from a word": (
        "layered",
        fact("1_WeightedLayerPooling/config.json", layer_start="x"),
        "1_WeightedLayerPooling",
        "layer_start",
    ),
    "layers from below zero": (
        "layered",
        fact("1_WeightedLayerPooling/config.json", layer_start=-2),
        "1_WeightedLayerPooling",
        "layer_start",
    ),
    "layers that weigh nothing": (
        "layered",
        tensors("1_WeightedLayerPooling/model.safetensors", lambda held: {"layer_weights": torch.zeros(4)}),
        "1_WeightedLayerPooling",
        "layer_weights",
    ),
    "words that weigh NaN": (
        "weighted",
        tensors(
            "1_WordWeights/model.safetensors", lambda held: {name: one * float("nan") for name, one in held.items()}
        ),
        "1_WordWeights",
        "emb_layer.weight",
    ),
    "weights of too few words": (
        "weighted",
        tensors("1_WordWeights/model.safetensors", lambda held: {name: one[:5].clone() for name, one in held.items()}),
        "1_WordWeights",
        "emb_layer.weight",
    ),
    # ---- lengths, prompts and our own facts
    "a length of zero": (
        "saved",
        fact("sentence_bert_config.json", max_seq_length=0),
        "sentence_bert_config.json",
        "max_seq_length",
    ),
    "a length without end": (
        "saved",
        fact("sentence_bert_config.json", max_seq_length=NOT_FINITE["inf"]),
        "sentence_bert_config.json",
        "max_seq_length",
    ),
    "a length of true": (
        "saved",
        fact("sentence_bert_config.json", max_seq_length=True),
        "sentence_bert_config.json",
        "max_seq_length",
    ),
    "prompts in a list": (
        "saved",
        fact("config_sentence_transformers.json", prompts=["a"]),
        "config_sentence_transformers.json",
        "prompts",
    ),
    "a prompt that is a number": (
        "saved",
        fact("config_sentence_transformers.json", prompts={"a": 3}, default_prompt_name="a"),
        "config_sentence_transformers.json",
        "prompts",
    ),
    "a prompt that is not there": (
        "saved",
        fact("config_sentence_transformers.json", prompts={"a": "b"}, default_prompt_name="c"),
        "config_sentence_transformers.json",
        "default_prompt_name",
    ),
    "spaces in words": ("saved", fact("isotrope.json", spaces="whitening"), "isotrope.json", "spaces"),
    "spaces without names": ("saved", fact("isotrope.json", spaces=[1]), "isotrope.json", "spaces"),
    "packed: no facts": ("packed", gone("isotrope.json"), "isotrope.json", "missing"),
    "packed: facts without a pooling": ("packed", less("isotrope.json", "pooling"), "isotrope.json", "pooling"),
    "packed: facts without a head": ("packed", less("isotrope.json", "head"), "isotrope.json", "head"),
    "packed: a length in words": ("packed", fact("isotrope.json", max_length="x"), "isotrope.json", "max_length"),
    "packed: a pooling of a number": ("packed", fact("isotrope.json", pooling=3), "isotrope.json", "pooling"),
    # ---- tables of word vectors
    "table: tokenizer is cut": ("table", cut("tokenizer.json"), "tokenizer.json", "tokenizer"),
    "table: weights are cut": ("table", cut("model.safetensors"), "model.safetensors", "read"),
    "table: too few rows": (
        "table",
        tensors("model.safetensors", lambda held: {"embedding.weight": held["embedding.weight"][:2].clone()}),
        "model.safetensors",
        "row",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_damaged_folder_is_refused_in_one_sentence(case: str, folders: dict[str, Path], tmp_path: Path) -> None:
    base, damage, file, words = CASES[case]
    folder = shutil.copytree(folders[base], tmp_path / "bad")
    damage(folder)
    with pytest.raises(InputError, match=words) as caught:
        load(folder)
    message = str(caught.value)
    assert message.startswith(str(folder))
    assert file in message
    assert "\n" not in message
    assert ". " not in message
    assert message.endswith(".")


@pytest.mark.parametrize("base", ["plain", "bytes", "saved", "weighted", "layered", "packed", "table"])
def test_the_whole_folder_loads(base: str, folders: dict[str, Path]) -> None:
    assert load(folders[base]).encode(["the cat", ""]).shape[0] == 2
