"""Each mistake gets one sentence, from Python and from the command line; nothing is left behind.

And what the lists show.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.cli import main
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.settings import check, describe
from isotrope.spaces.space import SpaceWarning
from isotrope.spaces.space_registry import find

FITTED = ("whitening", "remove-components", "standardise", "sif", "flow")
EVERY = (*FITTED, "sbert-wk")


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ([], "none was given"),
        (["one"], "one was given"),
        (["same"] * 50, "50 that are all the same"),
        ([1, 2], "a list of texts"),
    ],
)
def test_too_few_texts(name: str, texts: list[str], sentence: str, encoder: Encoder) -> None:
    with pytest.raises(InputError, match=sentence):
        isotrope.fit_space(name, encoder, texts)


@pytest.mark.parametrize("name", EVERY)
def test_vectors_that_are_not_numbers(name: str, encoder: Encoder, texts: list[str]) -> None:
    with torch.no_grad():
        word = encoder.tokenizer.convert_tokens_to_ids("chef")
        encoder.backbone.embeddings.word_embeddings.weight[word] = torch.nan
    with pytest.raises(InputError, match=r"NaN or infinite vectors for \d+ of \d+ texts, such as 'the chef"):
        isotrope.fit_space(name, encoder, texts)


@pytest.mark.parametrize("name", EVERY)
def test_vectors_that_are_all_the_same(name: str, encoder: Encoder, texts: list[str]) -> None:
    with torch.no_grad():
        for norm in (module for module in encoder.backbone.modules() if isinstance(module, torch.nn.LayerNorm)):
            norm.weight.zero_()
            norm.bias.fill_(1.5)
    with pytest.raises(InputError, match="vectors are the same"):
        isotrope.fit_space(name, encoder, texts)


@pytest.mark.parametrize("name", ["whitening", "flow"])
def test_fewer_texts_than_dimensions_warn(name: str, encoder: Encoder, texts: list[str]) -> None:
    settings = {"batch_size": 4} if name == "flow" else {}
    with pytest.warns(SpaceWarning, match="20 texts are few"):
        mapped = isotrope.fit_space(name, encoder, texts[:20], **settings)
    assert np.isfinite(mapped.encode(texts)).all()


@pytest.mark.parametrize("name", ["remove-components", "sif"])
def test_more_components_than_there_are(name: str, encoder: Encoder, texts: list[str]) -> None:
    for count, given in ((5, 5), (600, 32)):
        with pytest.raises(InputError, match=f"{given} components cannot be taken from {count}"):
            isotrope.fit_space(name, encoder, texts[:count], components=given)


LAST = ("whitening", "flow")


@pytest.mark.parametrize("before", EVERY)
@pytest.mark.parametrize("name", EVERY)
def test_which_map_may_follow_which(before: str, name: str, encoder: Encoder, texts: list[str]) -> None:
    few = {"max_steps": 2}
    mapped = isotrope.fit_space(before, encoder, texts, **(few if before == "flow" else {}))
    if before in LAST or name == before or name in ("sif", "sbert-wk"):
        with pytest.raises(InputError, match=rf"already has a space \({before}\)"):
            isotrope.fit_space(name, mapped, texts)
        return
    twice = isotrope.fit_space(name, mapped, texts, **(few if name == "flow" else {}))
    assert [space["name"] for space in twice.facts["spaces"]] == [before, name]
    assert np.isfinite(twice.encode(texts)).all()


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("whitening", {"k": 0}, "k must be at least 1"),
        (
            "whitening",
            {"k": 33},
            "k is 33, but the vectors of 600 texts vary in 31 of 32 dimensions; choose at most 31",
        ),
        ("whitening", {"shrinkage": 1.5}, "shrinkage must lie between 0 and 1"),
        ("whitening", {"colour": 1}, "Unknown setting 'colour'"),
        ("whitening", {"k": "many"}, "k takes a value of type whole number"),
        ("remove-components", {"components": 0}, "components must be at least 1"),
        ("sif", {"smoothing": 0}, "smoothing must be above 0"),
        ("sif", {"components": -1}, "components must not be negative"),
        ("sbert-wk", {"window": 0}, "window must be at least 1"),
        ("sbert-wk", {"first_layer": -1}, "first_layer must not be negative"),
        ("flow", {"levels": 0}, "levels must be at least 1"),
        ("flow", {"batch_size": 1}, "batch_size must be at least 2"),
        ("flow", {"max_steps": -1}, "max_steps must not be negative"),
        ("flow", {"learning_rate": 0}, "learning_rate must be above 0"),
        ("flow", {"epochs": float("inf")}, "epochs must be a finite number"),
        ("flow", {"coupling": "loose"}, "coupling is one of additive, affine; 'loose' was given"),
        ("flow", {"seed": -1}, "seed must lie between 0 and"),
        ("t-sne", {"perplexity": 0.5}, "perplexity must be at least 1"),
        ("whitenning", {}, "Unknown space 'whitenning'; did you mean 'whitening'"),
        ("simcse", {}, "is trained, not fitted: isotrope train simcse"),
    ],
)
def test_names_and_settings(
    name: str, settings: dict[str, object], sentence: str, encoder: Encoder, texts: list[str]
) -> None:
    with pytest.raises(InputError, match=sentence):
        isotrope.fit_space(name, encoder, texts, **settings)


# -------------------------------------------------------------------------------------------------------------------
# the command line

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return run


def test_from_a_file_to_a_mapped_model(command: Command, tiny: Path, sentences: Path, tmp_path: Path) -> None:
    code, out, err = command(
        "fit-space", "whitening", tiny, sentences, "--output", tmp_path / "model", "--k", "7", "--json"
    )
    assert code == 0, err
    assert json.loads(out) == {"space": "whitening", "output": str(tmp_path / "model"), "texts": 400, "dimension": 7}
    lines = [line for line in sentences.read_text(encoding="utf-8").splitlines() if line]
    found = isotrope.load(tmp_path / "model").encode(lines)
    assert np.cov(found, rowvar=False) == pytest.approx(np.eye(7), abs=1e-3)
    assert found == pytest.approx(isotrope.fit_space("whitening", tiny, sentences, k=7).encode(lines), abs=1e-4)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["fit-space", "whitening", "{tiny}", "nowhere.txt", "--output", "x"], "no such file"),
        (["fit-space", "whitening", "nowhere/at/all", "{text}", "--output", "x"], "no such model folder"),
        (["fit-space", "t-sne", "{tiny}", "{text}", "--output", "x"], "written as .tsv"),
        (
            ["fit-space", "t-sne", "{tiny}", "{text}", "--output", "x.tsv", "--perplexity", "200"],
            "perplexity 200 does not go with 400",
        ),
        (["fit-space", "flow", "{tiny}", "{text}", "--output", "x", "--levels", "9"], "not a multiple of 512"),
        (["fit-space", "whitening", "{tiny}", "{text}", "--output", "x", "--k", "99"], "choose at most 31"),
        (["fit-space", "whitening", "{tiny}", "{text}", "--output", "{folder}"], "holds something else"),
        (["train", "whitening", "{text}"], "'whitening' is fitted, not trained: isotrope fit-space whitening"),
    ],
)
def test_a_mistake_is_one_sentence(
    command: Command,
    words: list[str],
    sentence: str,
    tiny: Path,
    sentences: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    code, _, err = command(*(word.format(tiny=tiny, text=sentences, folder=tmp_path) for word in words))
    assert code == 2
    assert sentence in err
    assert err.count("isotrope: ") == 1
    assert "Traceback" not in err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", [*EVERY, "sne", "t-sne"])
def test_every_setting_says_what_it_means(name: str) -> None:
    settings = find(name).Settings
    check(settings())
    assert all(one.meaning for one in describe(settings))


def test_a_map_is_seen_without_its_facts(encoder: Encoder, texts: list[str]) -> None:
    """A mapped model that was trained on has other facts, and still its modules."""
    for name, given in (("flow", {"max_steps": 2}), ("sif", {}), ("sbert-wk", {})):
        mapped = isotrope.fit_space(name, encoder, texts, **given)
        mapped.facts = {}
        with pytest.raises(InputError, match=rf"already has a space \({name}\)"):
            isotrope.fit_space(name, mapped, texts)


def test_the_lists_show_the_spaces(command: Command) -> None:
    cards = {card.name: card for card in isotrope.methods() if card.kind == "space"}
    assert set(cards) == {*EVERY, "sne", "t-sne"}
    assert {card.needs for card in cards.values()} == {"sentences"}
    assert all(card.title and card.paper and card.year > 2000 for card in cards.values())
    rows = json.loads(command("methods", "flow", "--json")[1])["settings"]
    levels = next(row for row in rows if row["setting"] == "levels")
    assert (levels["default"], levels["range"], levels["of"]) == (2, "at least 1 and at most 1,000", "flow")
    assert all(row["meaning"] for row in rows)
    assert {row["of"] for row in rows} == {"flow"}
    assert "t-sne" in command("methods")[1]
