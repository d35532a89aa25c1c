"""A folder means here what it means to sentence-transformers; a bad folder is one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from isotrope.encoders.loading import load
from isotrope.encoders.parts.stock_pooling import OLD_KEYS
from isotrope.encoders.stored_files import loaded_by_others
from isotrope.errors import InputError

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
CLOSE = {"rtol": 0, "atol": 1e-5}


def saved_by_sentence_transformers(
    base: Path, folder: Path, *parts: nn.Module, layers: bool = False, **settings
) -> Path:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Transformer

    transformer = Transformer(str(base), config_kwargs={"output_hidden_states": True} if layers else {})
    SentenceTransformer(modules=[transformer, *parts], device="cpu", **settings).save(
        str(folder), create_model_card=False
    )
    return folder


def pooling(mode="mean"):
    from sentence_transformers.models import Pooling

    return Pooling(32, pooling_mode=mode)


def rewrite(path: Path, **changes) -> None:
    facts = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**facts, **changes}))


def same_vectors(folder: Path, texts: list[str], elsewhere) -> None:
    np.testing.assert_allclose(load(folder).encode(texts), elsewhere(folder, texts), **CLOSE)


# ----------------------------------------------------------------------------------------------------- the same vectors


def test_a_hugging_face_folder_is_mean_pooled_as_elsewhere(bert, texts, vectors_elsewhere):
    same_vectors(bert, texts, vectors_elsewhere)
    encoder = load(bert)
    assert (encoder.pooling.name, encoder.dimension, encoder.max_length) == ("mean", 32, 48)


def test_roberta_positions_start_behind_the_padding_index(roberta, texts, vectors_elsewhere):
    encoder = load(roberta)
    assert encoder.max_length == 64
    assert np.isfinite(
        encoder.encode(texts)
    ).all()  # one position more would leave the table; sentence-transformers does
    same_vectors(roberta, [text for text in texts if len(text) < 60], vectors_elsewhere)


@pytest.mark.parametrize("mode", [*MODES, ("cls", "mean"), ("cls", "max", "mean"), ("lasttoken", "cls"), MODES])
def test_every_pooling_that_sentence_transformers_saves(mode, bert, tmp_path, texts, vectors_elsewhere):
    folder = saved_by_sentence_transformers(bert, tmp_path / "st", pooling(mode))
    same_vectors(folder, texts, vectors_elsewhere)
    assert load(folder).pooling.modes == ((mode,) if isinstance(mode, str) else mode)


@pytest.mark.parametrize("modes", [*((mode,) for mode in MODES), ("cls", "mean"), ("max", "mean", "lasttoken"), ()])
def test_folders_with_the_old_pooling_keys_only(modes, bert, tmp_path, texts, vectors_elsewhere):
    folder = saved_by_sentence_transformers(bert, tmp_path / "old", pooling())
    old = {key: mode in modes for mode, key in OLD_KEYS.items()}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **old}))
    names = {"": "sentence_transformers.models.Transformer", "1_Pooling": "sentence_transformers.models.Pooling"}
    listing = [{"idx": i, "name": str(i), "path": path, "type": name} for i, (path, name) in enumerate(names.items())]
    (folder / "modules.json").write_text(json.dumps(listing))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20, "do_lower_case": False}))
    (folder / "config_sentence_transformers.json").unlink()
    same_vectors(folder, texts, vectors_elsewhere)
    assert load(folder).max_length == 20


def test_the_oldest_folders_keep_the_backbone_in_a_folder_of_its_own(bert, tmp_path, texts, vectors_elsewhere):
    folder = saved_by_sentence_transformers(bert, tmp_path / "new", pooling())
    oldest = tmp_path / "oldest"
    shutil.copytree(
        folder, oldest / "0_Transformer", ignore=shutil.ignore_patterns("*Pooling", "modules.json", "config_sentence*")
    )
    shutil.copytree(folder / "1_Pooling", oldest / "1_Pooling")
    listing = json.loads((folder / "modules.json").read_text())
    listing[0]["path"] = "0_Transformer"
    (oldest / "modules.json").write_text(json.dumps(listing))
    (oldest / "0_Transformer" / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 12}))
    same_vectors(oldest, texts, vectors_elsewhere)
    assert load(oldest).max_length == 12


def test_a_config_named_after_another_model_and_lower_casing(roberta, tmp_path, texts, vectors_elsewhere):
    folder = saved_by_sentence_transformers(roberta, tmp_path / "st", pooling())
    (folder / "sentence_bert_config.json").unlink()
    (folder / "sentence_roberta_config.json").write_text(json.dumps({"max_seq_length": 30, "do_lower_case": True}))
    same_vectors(folder, texts, vectors_elsewhere)
    encoder = load(folder)
    assert encoder.max_length == 30
    np.testing.assert_array_equal(encoder.encode("CAT"), encoder.encode("cat"))


@pytest.mark.parametrize("activation", [nn.Tanh(), nn.Identity(), nn.ReLU(), nn.GELU(), nn.Sigmoid(), None], ids=str)
def test_dense_with_its_activation(activation, bert, tmp_path, texts, vectors_elsewhere):
    from sentence_transformers.models import Dense

    torch.manual_seed(1)
    dense = Dense(32, 20, bias=activation is not None, activation_function=activation)
    folder = saved_by_sentence_transformers(bert, tmp_path / "st", pooling(), dense)
    same_vectors(folder, texts, vectors_elsewhere)
    assert load(folder).dimension == 20


def test_a_chain_of_modules_after_the_pooling(bert, tmp_path, texts, vectors_elsewhere):
    from sentence_transformers.models import Dense, Dropout, LayerNorm, Normalize

    torch.manual_seed(2)
    norm = LayerNorm(64)
    nn.init.normal_(norm.norm.weight)
    nn.init.normal_(norm.norm.bias)
    parts = (
        pooling(("cls", "mean")),
        norm,
        Dropout(0.5),
        Dense(64, 24),
        Dense(24, 16, activation_function=nn.ReLU()),
        Normalize(),
    )
    folder = saved_by_sentence_transformers(bert, tmp_path / "st", *parts)
    same_vectors(folder, texts, vectors_elsewhere)
    encoder = load(folder)
    assert encoder.dimension == 16
    np.testing.assert_allclose(np.linalg.norm(encoder.encode(texts), axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("mode", ["mean", ("cls", "max")])
def test_weighted_layers(start, mode, bert, tmp_path, texts, vectors_elsewhere):
    from sentence_transformers.models import WeightedLayerPooling

    weights = nn.Parameter(torch.tensor([0.5, 2.0, 0.25, 1.0][start:]))
    mix = WeightedLayerPooling(32, num_hidden_layers=3, layer_start=start, layer_weights=weights)
    folder = saved_by_sentence_transformers(bert, tmp_path / "st", mix, pooling(mode), layers=True)
    same_vectors(folder, texts, vectors_elsewhere)
    assert load(folder).pooling.needs_all_layers


def test_weighted_layers_count_for_nothing_where_the_backbone_hides_its_layers(
    bert, tmp_path, texts, vectors_elsewhere
):
    from sentence_transformers.models import WeightedLayerPooling

    mix = WeightedLayerPooling(32, num_hidden_layers=3, layer_start=0)
    folder = saved_by_sentence_transformers(bert, tmp_path / "st", mix, pooling(), layers=False)
    same_vectors(folder, texts, vectors_elsewhere)


def test_the_default_prompt_is_put_before_each_text(bert, tmp_path, texts, vectors_elsewhere):
    settings = {"prompts": {"query": "find the "}, "default_prompt_name": "query"}
    folder = saved_by_sentence_transformers(bert, tmp_path / "st", pooling(), **settings)
    same_vectors(folder, texts, vectors_elsewhere)
    assert not np.allclose(load(folder).encode(texts[0]), load(bert).encode(texts[0]), atol=1e-3)


@pytest.mark.parametrize(("asked", "width"), [(8, 8), (32, 32), (99, 32)])
def test_the_stored_number_of_dimensions_is_kept(asked, width, bert, tmp_path, texts, vectors_elsewhere):
    folder = saved_by_sentence_transformers(bert, tmp_path / "st", pooling(), truncate_dim=asked)
    same_vectors(folder, texts, vectors_elsewhere)
    encoder = load(folder)
    assert encoder.dimension == width
    encoder.save(tmp_path / "ours")
    same_vectors(tmp_path / "ours", texts, vectors_elsewhere)
    np.testing.assert_allclose(load(tmp_path / "ours").encode(texts), encoder.encode(texts), **CLOSE)


# --------------------------------------------------------------------------------------------------- what load promises


def test_the_asked_pooling_replaces_the_stored_one(bert, tmp_path, texts):
    folder = saved_by_sentence_transformers(bert, tmp_path / "st", pooling("max"))
    np.testing.assert_allclose(
        load(folder, pooling="cls").encode(texts), load(bert, pooling="cls").encode(texts), **CLOSE
    )


def test_the_same_folder_has_the_same_fingerprint_at_each_load(tiny):
    # The folder holds no pooler; one drawn at random would make every load another model.
    assert load(tiny).fingerprint() == load(tiny).fingerprint()
    assert load(tiny).fingerprint() != load(tiny, pooling="cls").fingerprint()


def test_the_language_head_is_kept_on_demand_and_shares_the_backbone(tiny, texts):
    with_head, without = load(tiny, language_head=True), load(tiny)
    assert without.language_model is None
    assert with_head.language_model.base_model is with_head.backbone
    np.testing.assert_array_equal(with_head.encode(texts), without.encode(texts))
    stored = load_file(tiny / "model.safetensors")["cls.predictions.transform.dense.weight"]
    torch.testing.assert_close(with_head.language_model.cls.predictions.transform.dense.weight.data, stored)


def test_a_loaded_encoder_is_in_eval_mode_and_float32(bert, tmp_path):
    folder = shutil.copytree(bert, tmp_path / "half")
    half = {name: tensor.half() for name, tensor in load_file(bert / "model.safetensors").items()}
    save_file(half, folder / "model.safetensors", metadata={"format": "pt"})
    rewrite(folder / "config.json", dtype="float16")
    encoder = load(folder)
    assert not any(part.training for part in encoder.modules())
    assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}


# ---------------------------------------------------------------------------------------------------------- bad folders


def without(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def only_pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def halved(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def tensor_of_another_size(folder):
    tensors = load_file(folder / "model.safetensors")
    name = next(name for name in tensors if name.endswith("layer.0.output.dense.weight"))
    save_file({**tensors, name: torch.zeros(3, 3)}, folder / "model.safetensors", metadata={"format": "pt"})


def tensors_of_another_model(folder):
    save_file({"something": torch.zeros(1)}, folder / "model.safetensors", metadata={"format": "pt"})


def written(name, content):
    def write(folder):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)

    return write


def with_module(name, config=None, tensors=None):
    """modules.json ends with such a module."""

    def add(folder):
        names = ["Transformer", "Pooling", name]
        paths = ["", "1_Pooling", "2_Last"]
        listing = [{"idx": i, "path": paths[i], "type": f"sentence_transformers.models.{names[i]}"} for i in range(3)]
        (folder / "modules.json").write_text(json.dumps(listing))
        for path in paths[1:]:
            (folder / path).mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
        (folder / "2_Last" / "config.json").write_text(json.dumps(config or {}))
        if tensors:
            save_file(tensors, folder / "2_Last" / "model.safetensors")

    return add


DENSE = {"in_features": 32, "out_features": 4, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
LINEAR = {"linear.weight": torch.zeros(4, 32)}
STATED = "sentence_bert_config.json"
BAD_FOLDERS = {
    "no config": (without("config.json"), "no config.json"),
    "no tokenizer": (without("tokenizer.json"), "tokenizer is missing"),
    "no weights": (without("model.safetensors"), "no model.safetensors"),
    "pickled weights": (only_pickled, "only pytorch_model.bin"),
    "half the weights": (halved, "model.safetensors: cannot be read"),
    "garbage for weights": (written("model.safetensors", "garbage"), "model.safetensors: cannot be read"),
    "weights of another model": (tensors_of_another_model, "do not fit config.json"),
    "a weight of another size": (tensor_of_another_size, "do not fit config.json"),
    "config no JSON": (written("config.json", "{"), "cannot be read as JSON"),
    "config a list": (written("config.json", "[]"), "a JSON object was expected"),
    "unknown architecture": (written("config.json", '{"model_type": "nonesuch"}'), "nonesuch"),
    "damaged tokenizer": (written("tokenizer.json", "{"), "tokenizer.json: cannot be read as JSON"),
    "emptied tokenizer": (written("tokenizer.json", "{}"), "tokenizer cannot be loaded"),
    "modules no JSON": (written("modules.json", "["), "cannot be read as JSON"),
    "modules no list": (written("modules.json", "5"), "list of modules"),
    "modules without a type": (written("modules.json", '[{"path": ""}]'), "list of modules"),
    "length no number": (written("sentence_bert_config.json", '{"max_seq_length": "long"}'), "max_seq_length"),
    "our facts damaged": (written("isotrope.json", "{"), "isotrope.json"),
    "our facts a list": (written("isotrope.json", "[]"), "isotrope.json"),
    "unknown module": (with_module("CNN"), "names a CNN module"),
    "dense without weights": (with_module("Dense", DENSE), "model.safetensors is missing"),
    "dense of another size": (with_module("Dense", {**DENSE, "out_features": 9}, LINEAR), "do not fit together"),
    "dense without its size": (with_module("Dense", {"in_features": 32}, LINEAR), "out_features is missing"),
    "dense with a residual": (with_module("Dense", {**DENSE, "use_residual": True}, LINEAR), "residual"),
    "dense on tokens": (
        with_module("Dense", {**DENSE, "module_input_name": "token_embeddings"}, LINEAR),
        "sentence embedding",
    ),
    "normalize on tokens": (with_module("Normalize", {"module_input_name": "token_embeddings"}), "sentence embedding"),
    "normalize to elsewhere": (with_module("Normalize", {"module_output_name": "unit"}), "sentence embedding"),
    "a head for its task": (written(STATED, '{"transformer_task": "fill-mask"}'), "transformer_task is 'fill-mask'"),
    "a vector of its own": (written(STATED, '{"module_output_name": "sentence_embedding"}'), "module_output_name"),
    "a pooler for its states": (
        written(STATED, '{"modality_config": {"text": {"method": "forward", "method_output_name": "pooler_output"}}}'),
        "pooler_output",
    ),
    "no text at all": (written(STATED, '{"modality_config": {"image": {}}}'), "modality_config"),
    "a length for the processor": (written(STATED, '{"processing_kwargs": {"text": {"max_length": 6}}}'), "processing"),
    "a length for queries": (written(STATED, '{"query_length": 6}'), "query_length is 6"),
    "no number of dimensions": (written("config_sentence_transformers.json", '{"truncate_dim": 0}'), "truncate_dim"),
    "code for an activation": (
        with_module("Dense", {**DENSE, "activation_function": "os.system"}, LINEAR),
        "an activation of torch.nn was expected",
    ),
    "a function for an activation": (
        with_module("Dense", {**DENSE, "activation_function": "torch.nn.functional.relu"}, LINEAR),
        "an activation of torch.nn was expected",
    ),
}


@pytest.mark.parametrize("case", BAD_FOLDERS)
def test_a_bad_folder_is_one_sentence(case, bert, tmp_path):
    damage, words = BAD_FOLDERS[case]
    folder = shutil.copytree(bert, tmp_path / "bad")
    damage(folder)
    with pytest.raises(InputError, match=words) as caught:
        load(folder)
    assert is_one_sentence(str(caught.value))
    assert str(folder) in str(caught.value)


def test_an_unknown_pooling_names_the_near_ones(bert):
    with pytest.raises(InputError, match="did you mean 'mean'"):
        load(bert, pooling="meen")


def test_a_prompt_left_out_of_the_pooling_is_refused_not_ignored(bert, tmp_path):
    settings = {"prompts": {"query": "find the "}, "default_prompt_name": "query"}
    folder = saved_by_sentence_transformers(bert, tmp_path / "st", pooling(), **settings)
    rewrite(folder / "1_Pooling" / "config.json", include_prompt=False)
    with pytest.raises(InputError, match="prompt"):
        load(folder)


def test_a_named_prompt_that_is_left_out_of_the_pooling_is_refused_when_it_is_used(
    bert, tmp_path, texts, vectors_elsewhere
):
    folder = saved_by_sentence_transformers(bert, tmp_path / "st", pooling(), prompts={"query": "find the "})
    rewrite(folder / "1_Pooling" / "config.json", include_prompt=False)
    load(folder).save(tmp_path / "ours")
    for place in (folder, tmp_path / "ours"):
        same_vectors(place, texts, vectors_elsewhere)
        for asked in ({"prompt_name": "query"}, {"prompt": "a "}):
            with pytest.raises(InputError, match="leaves its prompt out"):
                load(place).encode(texts, **asked)
        np.testing.assert_array_equal(load(place).encode(texts, prompt=""), load(place).encode(texts))
        assert json.loads((place / "1_Pooling" / "config.json").read_text())["include_prompt"] is False


@pytest.mark.parametrize("name", ["word_embedding_dimension", "embedding_dimension"])
def test_a_pooling_for_states_of_another_width(name, bert, tmp_path):
    folder = saved_by_sentence_transformers(bert, tmp_path / "st", pooling())
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({name: 31, "pooling_mode": "mean"}))
    with pytest.raises(InputError, match="the backbone's width, 32,"):
        load(folder)


def test_layer_weights_that_do_not_count_the_layers(bert, tmp_path):
    from sentence_transformers.models import WeightedLayerPooling

    mix = WeightedLayerPooling(32, num_hidden_layers=5, layer_start=0)
    folder = saved_by_sentence_transformers(bert, tmp_path / "st", mix, pooling(), layers=True)
    with pytest.raises(InputError, match="6 layers were found; the backbone has 4"):
        load(folder)


def test_names_that_lead_nowhere(tmp_path, monkeypatch):
    import huggingface_hub.constants

    # The library reads the variable HF_HUB_OFFLINE when it is imported, which has happened.
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    (tmp_path / "file").write_text("not a folder")
    cases = {
        str(tmp_path / "file"): "this is a file",
        str(tmp_path / "nothing"): "no such model folder",
        "./nothing": "no such model folder",
        "": "no such model folder",
        "no hub id/at all": "neither a model folder nor a hub id",
        "nobody/nothing-of-this-name": "hub cannot be reached",
        "nothing-of-this-name": "hub cannot be reached",
    }
    for name, words in cases.items():
        with pytest.raises(InputError, match=words) as caught:
            load(name)
        assert is_one_sentence(str(caught.value))


def test_a_builtin_that_is_not_shipped(tmp_path, monkeypatch):
    import isotrope.encoders.loading as loading

    monkeypatch.setattr(loading, "__file__", str(tmp_path / "loading.py"))
    for name in ("builtin", "builtin-base"):
        with pytest.raises(InputError, match=f"ships no '{name}'"):
            load(name)


def is_one_sentence(message: str) -> bool:
    return "\n" not in message and message.rstrip().endswith((".", "?")) and ". " not in message


def test_a_library_that_cannot_be_imported_is_not_the_fault_of_the_folder(tmp_path: Path) -> None:
    """A torchvision of another build makes transformers fail at every model."""
    error = ModuleNotFoundError("Could not import module 'BertModel'. Are its requirements met?")
    error.__cause__ = RuntimeError("operator torchvision::nms does not exist")
    said = r"torchvision::nms does not exist\); repair the installation"
    with pytest.raises(InputError, match=said), loaded_by_others(tmp_path, "the model"):
        raise error


@pytest.mark.parametrize("device", ["cuda:99", "mps:7", "gpu", torch.device("cuda", 99)])
def test_a_device_that_is_not_here_is_one_sentence(tiny: Path, device: str | torch.device) -> None:
    with pytest.raises(InputError, match=f"no device '{device}'; `isotrope doctor`"):
        load(tiny, device=device)
