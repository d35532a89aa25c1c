"""An exported model: its vectors are the encoder's, it opens in onnxruntime alone, and a wrong file is refused."""

from __future__ import annotations

import dataclasses
import json
import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.fresh import fresh_encoder
from isotrope.encoders.loading import load
from isotrope.encoders.onnx_export import FLOAT32, INT8, Drift, usual_texts
from isotrope.encoders.parts.dense import Dense
from isotrope.encoders.pooling import MODES, POOLINGS
from isotrope.errors import InputError

pytest.importorskip("onnx", reason="exports need the extra onnx")
pytest.importorskip("onnxruntime", reason="exports need the extra onnx")
TEXTS = ["the chef bakes bread", "a sailor", "", "the pianist plays the sonata in the quiet hall number 7", "x " * 200]


@pytest.fixture(scope="module")
def original(tiny: Path) -> Encoder:
    """A model with a module behind its pooling."""
    torch.manual_seed(0)
    encoder = load(tiny, device="cpu")
    return encoder.with_parts([Dense(encoder.dimension, 20, bias=True, activation=nn.Tanh())]).eval()


@pytest.fixture(scope="module")
def exported(original: Encoder, topics: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "float32"
    isotrope.export(original, folder, text=topics[:20])
    return folder


@pytest.fixture(scope="module")
def exported_int8(original: Encoder, topics: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "int8"
    isotrope.export(original, folder, int8=True, text=topics[:20])
    return folder


def test_the_whole_graph_gives_the_vectors_of_torch(original: Encoder, exported: Path) -> None:
    found = isotrope.load(exported)
    assert (found.dimension, found.max_length) == (20, original.max_length)
    np.testing.assert_allclose(found.encode(TEXTS), original.encode(TEXTS), atol=1e-5)
    np.testing.assert_allclose(found.encode(TEXTS[0]), original.encode(TEXTS)[0], atol=1e-5)


@pytest.mark.parametrize(
    "pooling", [*POOLINGS, *(mode for mode in MODES if mode not in POOLINGS), "layer:1:cls", "cls+max+lasttoken"]
)
def test_every_pooling_is_in_the_graph_for_any_number_of_rows(
    tiny: Path, topics: list[str], tmp_path: Path, pooling: str
) -> None:
    encoder = load(tiny, pooling=pooling, device="cpu")
    isotrope.export(encoder, tmp_path / "export", text=topics[:5])
    found = isotrope.load(tmp_path / "export")
    for size in (None, 1, 2):
        np.testing.assert_allclose(found.encode(TEXTS, batch_size=size), encoder.encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize("pooling", ["mask", 'mask:A sentence, "[X]", is a [MASK].'])
def test_the_read_out_at_the_mask_of_a_template(tiny: Path, topics: list[str], tmp_path: Path, pooling: str) -> None:
    """The tokenizer of the export writes the template around a text, and a long text is cut inside it."""
    encoder = load(tiny, pooling, "cpu")
    expected = encoder.encode(TEXTS)
    told = isotrope.export(encoder, tmp_path / "export", text=topics[:20])
    found = isotrope.load(tmp_path / "export")
    np.testing.assert_allclose(found.encode(TEXTS), expected, atol=1e-5)
    assert np.abs(expected - load(tiny, "mean", "cpu").encode(TEXTS)).max() > 0.1  # another read-out is another vector
    assert told.drift["mean_cosine"] == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(_by_onnxruntime(tmp_path / "export", TEXTS[0]), expected[0], atol=1e-5)


def test_quantising_leaves_the_root_logger_as_it_was(
    original: Encoder, topics: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """onnxruntime logs by the root; a handler that this made there would print every later line of ours twice."""
    monkeypatch.setattr(logging.root, "handlers", [])
    isotrope.export(original, tmp_path / "int8", int8=True, text=topics[:20])
    assert logging.root.handlers == []


def test_int8_is_close_and_smaller_and_its_drift_is_stored(
    original: Encoder, exported: Path, exported_int8: Path, topics: list[str]
) -> None:
    drift = Drift.between(original.encode(topics[:20]), isotrope.load(exported_int8).encode(topics[:20]))
    stored = json.loads((exported_int8 / "isotrope.json").read_text())["onnx"]["drift"]
    assert drift.mean_cosine > 0.99
    assert stored["mean_cosine"] == pytest.approx(drift.mean_cosine, abs=1e-3)
    assert (exported_int8 / INT8).stat().st_size < (exported / FLOAT32).stat().st_size
    assert not (exported_int8 / FLOAT32).exists()


def test_onnxruntime_and_the_tokenizer_are_enough(original: Encoder, exported: Path) -> None:
    """A text that is longer than the model reads is cut by the tokenizer, as the guide has it."""
    for text in ("the chef bakes bread", "the chef bakes bread " * 200):
        np.testing.assert_allclose(_by_onnxruntime(exported, text), original.encode(text), atol=1e-5)


def _by_onnxruntime(folder: Path, text: str) -> np.ndarray:
    import onnxruntime
    from tokenizers import Tokenizer

    session = onnxruntime.InferenceSession(folder / FLOAT32)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(json.loads((folder / "isotrope.json").read_text("utf-8"))["onnx"]["max_length"])
    row = tokenizer.encode(text)
    fed = {"input_ids": np.array([row.ids]), "attention_mask": np.array([row.attention_mask])}
    (vectors,) = session.run(["sentence_embedding"], fed)
    return vectors[0]


def test_a_module_can_follow_and_the_cut_is_one(original: Encoder, exported: Path) -> None:
    cut = isotrope.load(exported, truncate_dim=8)
    np.testing.assert_allclose(cut.encode(TEXTS), original.encode(TEXTS)[:, :8], atol=1e-5)
    assert cut.fingerprint() != isotrope.load(exported).fingerprint()


def _changed(folder: Path, place: Path) -> Path:
    return Path(shutil.copytree(folder, place / "changed"))


def test_a_damaged_graph_is_refused(exported: Path, tmp_path: Path) -> None:
    folder = _changed(exported, tmp_path)
    content = bytearray((folder / FLOAT32).read_bytes())
    content[len(content) // 2] ^= 255
    (folder / FLOAT32).write_bytes(content)
    with pytest.raises(InputError, match=r"damaged or belongs to another model"):
        isotrope.load(folder)
    (folder / FLOAT32).unlink()
    with pytest.raises(InputError, match="missing"):
        isotrope.load(folder)


def test_the_graph_of_another_model_is_refused(exported: Path, exported_int8: Path, tmp_path: Path) -> None:
    folder = _changed(exported, tmp_path)
    shutil.copy(exported_int8 / INT8, folder / FLOAT32)
    with pytest.raises(InputError, match=r"damaged or belongs to another model"):
        isotrope.load(folder)


def test_a_file_that_is_no_graph_is_refused_whatever_its_checksum(exported: Path, tmp_path: Path) -> None:
    from isotrope.checksums import sum_of

    folder = _changed(exported, tmp_path)
    (folder / FLOAT32).write_bytes(b"no graph")
    facts = json.loads((folder / "isotrope.json").read_text())
    facts["onnx"]["sum"] = sum_of(folder / FLOAT32)
    (folder / "isotrope.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match="onnxruntime cannot open it"):
        isotrope.load(folder)


def test_the_tokenizer_of_another_model_is_refused(exported: Path, tmp_path: Path) -> None:
    folder = _changed(exported, tmp_path)
    letters = ["some other words that nobody wrote before, all of them strange and few"] * 20
    fresh_encoder(letters, vocabulary=60, layers=1, width=8, heads=1, max_length=16).tokenizer.save_pretrained(folder)
    with pytest.raises(InputError, match="another model's"):
        isotrope.load(folder)


def test_what_an_export_cannot_do_is_said(exported: Path, tmp_path: Path) -> None:
    found = isotrope.load(exported)
    with pytest.raises(InputError, match="no gradients"):
        found.embed(found.tokenize(["a"]))
    with torch.no_grad(), pytest.raises(InputError, match="sentence vectors only"):
        found.states(found.tokenize(["a"]))
    with pytest.raises(InputError, match="export already"):
        isotrope.export(found, tmp_path / "again")
    with pytest.raises(InputError, match="copy its folder"):
        found.save(tmp_path / "saved")
    with pytest.raises(InputError, match="pooling inside"):
        isotrope.load(exported, pooling="cls")
    assert not any(tmp_path.iterdir())


def test_a_model_without_a_graph_is_one_sentence(
    tiny: Path, topics: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The QR decomposition of SBERT-WK has no operator; torch would print the whole graph before it says so."""
    walking = isotrope.fit_space("sbert-wk", load(tiny, device="cpu"), topics[:20], first_layer=0)
    level = logging.getLogger("torch.onnx").level
    capfd.readouterr()
    with pytest.raises(InputError, match=r"^This model cannot be written as an ONNX graph \(.*linalg_qr.*\)\.$"):
        isotrope.export(walking, tmp_path / "export", text=topics[:5])
    assert "graph(" not in "".join(capfd.readouterr())
    assert logging.getLogger("torch.onnx").level == level
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("int8", [False, True])
def test_an_export_predicts_what_its_model_predicts(tiny: Path, topics: list[str], tmp_path: Path, int8: bool) -> None:
    rows = [(text, "even" if number % 2 else "odd") for number, text in enumerate(topics[:40])]
    run = isotrope.train("head", rows, model=tiny, output=tmp_path / "run")
    isotrope.export(run.encoder, tmp_path / "exported", int8=int8)
    found, texts = isotrope.load(tmp_path / "exported"), topics[40:60]
    assert np.abs(found.predict_proba(texts) - run.encoder.predict_proba(texts)).max() < 0.05
    assert [one.label for one in isotrope.predict(tmp_path / "exported", "the chef bakes").predictions]


def test_a_classifier_of_pairs_is_not_exported(tiny: Path, topics: list[str], tmp_path: Path) -> None:
    encoder = isotrope.load(tiny)
    rows = [(text, "even" if number % 2 else "odd") for number, text in enumerate(topics[:40])]
    kept = isotrope.train("head", rows, model=tiny, output=tmp_path / "run").encoder.classifier
    encoder.classifier = dataclasses.replace(kept, inputs=2)
    isotrope.export(encoder, tmp_path / "exported")
    assert isotrope.load(tmp_path / "exported").classifier is None


def test_an_export_searches_and_does_not_rerank(exported: Path, topics: list[str], tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(topics[:20]) + "\n", encoding="utf-8")
    isotrope.index(exported, tmp_path / "texts.txt", tmp_path / "index")
    encoder = isotrope.load(exported)
    with isotrope.open_index(tmp_path / "index", encoder) as index:
        assert len(index.search("the chef", 3)[0]) == 3
        assert index.info()["rerank"] is False
        with pytest.raises(InputError, match="rerank needs vectors of tokens, and an exported model"):
            index.search("the chef", 3, rerank=5)


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match=r"mine\.txt"):
        isotrope.export("builtin", tmp_path)


def test_the_usual_texts_are_different_sentences() -> None:
    texts = usual_texts(50)
    assert len({*texts}) == 50
    assert all(20 <= len(text) <= 300 for text in texts)
