"""The read-out that training begins with: the paper's, the model's own, or the user's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.encoders.read_out import ReadOut, is_raw, named, with_read_out
from isotrope.methods.frame.method_registry import registry

pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")  # one step improves nothing
TEXTS = [f"Sentence number {number} speaks of {word}." for number, word in enumerate(["rain", "bread", "roads"] * 8)]


@pytest.fixture
def plain_folder(tmp_path: Path) -> Path:
    """builtin-base as a plain Hugging Face folder: weights, configuration, tokenizer, no pooling."""
    encoder = isotrope.load("builtin-base", language_head=True)
    assert encoder.language_model is not None
    encoder.language_model.save_pretrained(tmp_path / "plain")
    encoder.tokenizer.save_pretrained(tmp_path / "plain")
    return tmp_path / "plain"


def test_what_is_raw(plain_folder: Path, tmp_path: Path) -> None:
    assert is_raw(isotrope.load("builtin-base").facts)
    assert is_raw(isotrope.load(plain_folder).facts)
    assert not is_raw(isotrope.load("builtin").facts)
    assert not is_raw(isotrope.load("builtin-base", pooling="mean").facts), "a read-out was chosen by hand"
    isotrope.load("builtin").save(tmp_path / "finished")
    assert not is_raw(isotrope.load(tmp_path / "finished").facts)
    isotrope.load("builtin-base").save(tmp_path / "still-raw")
    assert is_raw(isotrope.load(tmp_path / "still-raw").facts)


def test_auto_is_no_choice() -> None:
    assert named("auto") is None
    assert named(None) is None
    assert named("cls") == "cls"
    assert isotrope.load("builtin-base", pooling="auto").pooling.name == "mean"


def test_the_paper_decides_only_for_a_raw_model() -> None:
    raw = isotrope.load("builtin-base")
    pooled, said = with_read_out(raw, None, "cls", "simcse")
    assert pooled.pooling.name == said.pooling == "cls"
    assert "raw language model" in said.reason
    tokens = raw.tokenize(TEXTS[:2])
    np.testing.assert_array_equal(pooled.pooled(tokens).detach().numpy(), raw.states(tokens)[:, 0].detach().numpy())
    finished, said = with_read_out(isotrope.load("builtin"), None, "cls", "simcse")
    assert finished.pooling.name == said.pooling == "mean"
    assert "comes with a pooling" in said.reason
    by_hand, said = with_read_out(isotrope.load("builtin-base", "max"), "max", "cls", "simcse")
    assert by_hand.pooling.name == "max"
    assert said == ReadOut("max", "as given")
    assert with_read_out(raw, None, None, "mlm")[0] is raw


@pytest.mark.parametrize(
    ("method", "pooling"),
    {
        **dict.fromkeys(
            ("simcse", "simcse-supervised", "sg", "sg-opt", "dclr", "ease", "cline", "tsdae", "rankcse"), "cls"
        ),
        **dict.fromkeys(("cert", "infoword", "fine-tune", "angle"), "cls"),
        **dict.fromkeys(("promptbert", "sncse"), "mask"),
        **dict.fromkeys(("vascl", "declutr", "sbert", "moco", "simclr"), "mean"),
        **dict.fromkeys(("mlm", "rtd", "tacl", "nsp", "sop", "quick-thoughts", "word2vec"), None),
    }.items(),
)
def test_the_read_out_of_each_paper(method: str, pooling: str | None) -> None:
    assert registry()[method].card.read_out == pooling


@pytest.mark.parametrize(("start", "pooling"), [("builtin-base", "cls"), ("builtin", "mean"), ("plain", "cls")])
def test_a_run_says_its_read_out(
    start: str, pooling: str, tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    model = request.getfixturevalue("plain_folder") if start == "plain" else start
    with caplog.at_level("INFO", logger="isotrope"):
        run = isotrope.train("simcse", TEXTS, model, tmp_path / "run", max_steps=1, batch_size=4)
    assert run.encoder.pooling.name == run.read_out.pooling == pooling
    assert f"read-out: {pooling} ({run.read_out.reason})" in caplog.text
    assert json.loads((tmp_path / "run" / "run.json").read_text())["read_out"]["pooling"] == pooling
    assert isotrope.load(tmp_path / "run" / "model").pooling.name == pooling
    assert not is_raw(isotrope.load(tmp_path / "run" / "model").facts), "a trained read-out is the model's own"


def test_a_language_model_trained_further_is_still_raw(tmp_path: Path) -> None:
    isotrope.train("mlm", TEXTS, output=tmp_path / "mlm", max_steps=1, batch_size=4)
    assert is_raw(isotrope.load(tmp_path / "mlm" / "model").facts)
    run = isotrope.train("simcse", TEXTS, tmp_path / "mlm" / "model", tmp_path / "next", max_steps=1, batch_size=4)
    assert run.encoder.pooling.name == "cls"


def test_the_users_choice_wins_and_a_run_resumes_with_it(tmp_path: Path) -> None:
    run = isotrope.train("simcse", TEXTS, output=tmp_path / "run", pooling="max", max_steps=1, batch_size=4)
    assert run.encoder.pooling.name == "max"
    assert run.read_out.reason == "as given"


def test_an_encoder_in_memory_is_read_out_alike(tmp_path: Path) -> None:
    mine = isotrope.load("builtin-base")
    run = isotrope.train("simcse", TEXTS, mine, tmp_path / "run", max_steps=1, batch_size=4)
    assert run.encoder.pooling.name == "cls"
    assert mine.pooling.name == "mean"
    shutil.rmtree(tmp_path / "run")
    chosen = isotrope.load("builtin-base", pooling="mean")
    assert (
        isotrope.train("simcse", TEXTS, chosen, tmp_path / "run", max_steps=1, batch_size=4).read_out.pooling == "mean"
    )
