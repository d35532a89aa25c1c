"""CERT: MoCo's queue over two paraphrases that the data bring."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import isotrope
from isotrope import api
from isotrope.cli import main
from isotrope.errors import InputError
from isotrope.methods.cert import CERT, CERTSettings
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.settings import check
from isotrope.objectives import queue_nce

Build = Callable[..., Any]
Batched = Callable[..., Batch]
Law = Callable[..., Any]
SMALL: dict[str, Any] = {"projection": 16, "queue": 40}
SHORT: dict[str, Any] = {
    **SMALL,
    "batch_size": 16,
    "logging_steps": 1,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 32,
}
unjudged = pytest.mark.filterwarnings("ignore:Training did not improve")


@pytest.fixture
def build(built: Build, pairs: Path) -> Build:
    return lambda data=pairs, **settings: built("cert", data, **{**SMALL, **settings})


@pytest.fixture
def pairs(tmp_path: Path, topics: list[str]) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "anchor\tpositive\n" + "\n".join(f"{line}\tagain {line} too" for line in topics[:200]) + "\n", encoding="utf-8"
    )
    return path


def test_the_card_and_the_scripts_numbers() -> None:
    card = next(card for card in isotrope.methods() if card.name == "cert")
    assert (card.needs, card.year, card.kind) == ("pairs", 2020, "training")
    settings = CERT.Settings()
    assert (settings.momentum, settings.temperature, settings.projection, settings.head_layers) == (0.999, 0.07, 128, 2)
    assert not hasattr(settings, "edits")


def test_the_first_column_asks_and_the_second_answers(build: Build, batched: Batched) -> None:
    method = build(dropout=0.0, temperature=0.2)
    batch = batched(method)
    assert (batch["second"].lengths > batch["first"].lengths).all()
    found = method.represent(batch)
    asked, answered = (method.tower["head"](method.encoder.embed(batch[name])[0]) for name in ("first", "second"))
    assert torch.allclose(found["queries"], asked, atol=1e-5)
    assert torch.allclose(found["keys"], answered, atol=1e-5)  # the key encoder has not moved yet
    assert not found["keys"].requires_grad
    loss = method.loss(found, batch.generator())["contrastive"].detach()
    assert float(loss) == pytest.approx(
        float(queue_nce(found["queries"], found["keys"], method.tower["queue"](), 0.2).detach()), abs=1e-6
    )


def test_enqueued_keys_are_the_keys(build: Build, batched: Batched) -> None:
    """The released builder enqueues the temperature in their place, so that every negative becomes a constant."""
    method = build()
    found = {name: tensor.detach() for name, tensor in method.represent(batched(method)).items()}
    Combined(method).after_update(found)
    assert torch.allclose(method.tower["queue"]()[:8], torch.nn.functional.normalize(found["keys"], dim=1), atol=1e-6)
    assert int(method.tower["queue"].place) == 8


def test_resume_equals_an_uninterrupted_run_and_the_query_encoder_is_kept(
    pairs: Path, tmp_path: Path, resume_agrees: Law
) -> None:
    weights = resume_agrees("cert", pairs, **SMALL)
    assert {name.rsplit(".", 1)[-1] for name in weights if ".queue." in name} == {"keys", "place"}
    saved = load_file(tmp_path / "whole" / "model" / "model.safetensors")
    assert not any("head" in name or "queue" in name for name in saved)
    assert len(isotrope.load(tmp_path / "whole" / "model").parts) == 0


@unjudged
def test_from_plain_sentences_by_paraphrases_of_the_model(
    tiny: Path, sentences: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "made.tsv"
    with pytest.raises(SystemExit) as stop:
        main(["paraphrase", str(sentences), "--output", str(target), "--model", str(tiny), "--share", "0.3", "--json"])
    assert stop.value.code == 0
    assert json.loads(capsys.readouterr().out) == {"output": str(target), "pairs": 400, "left_out": 0}
    rows = [line.split("\t") for line in target.read_text(encoding="utf-8").splitlines()]
    assert rows[0] == ["anchor", "positive"]
    assert [row[0] for row in rows[1:]] == [line for line in sentences.read_text(encoding="utf-8").splitlines() if line]
    assert all(first != second for first, second in rows[1:])
    before = target.read_bytes()
    api.paraphrase(sentences, target, tiny, share=0.3)
    assert target.read_bytes() == before
    run = isotrope.train(
        "cert", target, model=tiny, output=tmp_path / "run", **{**SHORT, "max_steps": 2, "eval_steps": 2}
    )
    assert run.corpus.counts.records == 400


def test_what_cannot_be_paraphrased_is_said_in_a_sentence(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"written as \.tsv"):
        api.paraphrase(sentences, tmp_path / "pairs.csv", tiny)
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("1\n2 3\n", encoding="utf-8")
    with pytest.raises(InputError, match="no sentence with a word"):
        api.paraphrase(numbers, tmp_path / "pairs.tsv", tiny)
    assert not (tmp_path / "pairs.tsv").exists()


def test_single_sentences_and_a_short_queue_are_refused(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pairs were asked for"):
        isotrope.train("cert", sentences, model=tiny, output=tmp_path / "a", **SHORT)
    with pytest.raises(InputError, match="must be larger than batch_size"):
        CERTSettings(queue=8).check_batch(16)
    with pytest.raises(InputError, match="momentum"):
        check(CERT.Settings(momentum=-0.1))
