"""Recipes with several sources: the command runs them, and each mistake is one sentence that names its source."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import isotrope
from isotrope.cli import main
from isotrope.errors import InputError
from isotrope.evaluation.judged_models import find_models
from isotrope.evaluation.training_text import training_text
from isotrope.training.source_list import read_sources
from isotrope.training.source_plan import plan_sources

RECIPES = Path(__file__).parents[2] / "recipes"
LOOP = {"batch_size": 16, "eval_steps": 2, "logging_steps": 1, "max_steps": 2, "held_out": 20, "max_length": 32}
Fails = Callable[[Any], str]


@pytest.fixture
def recipe(tiny: Path, samples: dict[str, Path]) -> dict[str, Any]:
    return {
        "model": str(tiny),
        "pooling": "mean",
        "settings": dict(LOOP),
        "sources": [
            {
                "name": "pairs",
                "data": str(samples["pairs"]),
                "method": "simcse-supervised",
                "share": 3,
                "settings": {"temperature": 0.02},
            },
            {"name": "scores", "data": str(samples["scored-pairs"]), "method": "cosent", "share": 1},
        ],
    }


@pytest.fixture
def fails(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Train by a recipe that must be refused: gives the one sentence, and checks that nothing was written."""
    monkeypatch.chdir(tmp_path)

    def run(recipe: Any, *words: str) -> str:
        Path("recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(SystemExit) as stop:
            main(["train", *words, "--config", "recipe.yaml"])
        said = capsys.readouterr().err
        assert stop.value.code == 2, said
        sentences = [line for line in said.splitlines() if line.startswith("isotrope: ")]
        assert len(sentences) == 1, said
        assert sorted(tmp_path.rglob("*")) == before
        return sentences[0].removeprefix("isotrope: ")

    return run


def run(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    captured = capsys.readouterr()
    assert stop.value.code == 0, captured.err
    return captured.out


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_a_recipe_of_sources_runs_and_the_command_line_wins(
    recipe: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, output = tmp_path / "recipe.yaml", tmp_path / "run"
    file.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    words = ["train", "--config", file, "--max-steps", "3", "--output", output, "--seed=7", "--json"]
    summary = json.loads(run(capsys, *words))
    assert [source["name"] for source in summary["sources"]] == ["pairs", "scores"]
    facts = json.loads((output / "run.json").read_text(encoding="utf-8"))
    assert (facts["settings"]["max_steps"], facts["seed"]) == (3, 7)
    assert facts["method"] == "simcse-supervised + cosent"
    assert facts["mixture"]["pairs"]["settings"]["temperature"] == 0.02
    assert facts["sources"] == [source["data"] for source in recipe["sources"]]
    shown = run(capsys, "train", "--max-steps", "3", "--config", file, "--output", tmp_path / "again")  # settings first
    assert "data of pairs (simcse-supervised, 75.0 % of the batches)" in shown


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_a_source_without_a_table_is_named_and_a_verdict_is_said_once(
    recipe: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ISOTROPE_FINAL_TABLE", raising=False)
    recipe["sources"][1]["settings"] = {"held_out": 0}
    file = tmp_path / "recipe.yaml"
    file.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["train", "--config", str(file), "--output", str(tmp_path / "run")])
    said = capsys.readouterr()
    assert "\nscores: No final table: no text was held out" in said.out
    assert "Training did not pay" in said.out
    assert "Training did not pay" not in said.err


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_other_commands_take_a_run_of_sources(
    recipe: dict[str, Any], samples: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = recipe.pop("settings")
    isotrope.train(output=tmp_path / "run", **recipe, **settings)
    run(capsys, "report", tmp_path / "run", "--text", samples["sentences"], "--output", tmp_path / "page.html")
    assert (tmp_path / "page.html").is_file()
    recipe["sources"][0]["settings"]["temperature"] = 0.5
    isotrope.train(output=tmp_path / "other", **recipe, **settings)
    with pytest.raises(InputError, match="settings that differ in more than the seed"):
        find_models([[tmp_path / "run" / "model", tmp_path / "other" / "model"]])
    files = training_text(tmp_path / "run" / "model").files
    assert [str(file) for file in files] == [source["data"] for source in recipe["sources"]]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"method": "simsce"}, "Source 'pairs': Unknown method 'simsce'; did you mean 'simcse'"),
        ({"method": "whitening"}, "Source 'pairs': 'whitening' is fitted, not trained"),
        ({"method": None}, "Source 'pairs': method is missing."),
        ({"data": None}, "Source 'pairs': data is missing."),
        ({"data": "nowhere.tsv"}, "Source 'pairs': nowhere.tsv: no such file"),
        ({"share": 0}, "Source 'pairs': share is a number above 0; 0 was given."),
        ({"share": -1}, "Source 'pairs': share is a number above 0; -1 was given."),
        ({"share": float("nan")}, "Source 'pairs': share is a number above 0; nan was given."),
        ({"share": float("inf")}, "Source 'pairs': share is a number above 0; inf was given."),
        ({"share": True}, "Source 'pairs': share is a number above 0; True was given."),
        ({"share": "half"}, "Source 'pairs': share is a number above 0; 'half' was given."),
        ({"share": None}, "Some sources have a share, and 'pairs' has none"),
        ({"name": "scores"}, "Two sources are named 'scores'; give each a name of its own."),
        ({"name": ""}, "Source 1: name is a word; '' was given."),
        ({"temperature": 0.1}, "Source 'pairs': Unknown key 'temperature'; a source has name, data"),
        ({"prompt": 3}, "Source 'pairs': prompt is a text; 3 was given."),
        ({"columns": 3}, "Source 'pairs': columns is a list of names; 3 was given."),
        ({"columns": ["anchor", "nothing"]}, "no column 'nothing'"),
        ({"split": "perhaps"}, "Source 'pairs': split is true or false; 'perhaps' was given."),
        ({"settings": 3}, "Source 'pairs': settings is a mapping from name to value; 3 was given."),
        ({"settings": {"temprature": 1}}, "Source 'pairs': Unknown setting 'temprature'; did you mean 'temperature'"),
        ({"settings": {"temperature": -1}}, "Source 'pairs': temperature must be above 0; -1.0 was given."),
        ({"settings": {"learning_rate": 1}}, "Source 'pairs': learning_rate belongs to the whole run"),
        ({"settings": {"child_tuning": "F"}}, "Source 'pairs': child_tuning belongs to the whole run"),
        ({"settings": {"batch_size": 1000}}, "Source 'pairs': The data holds 240 different records"),
        ({"settings": {"towers": "separate"}}, "Source 'pairs': towers separate trains a second encoder"),
        ({"settings": {"head": "kept"}}, "Source 'pairs': simcse-supervised keeps a head of its own"),
    ],
)
def test_mistakes_in_a_source(change: dict[str, Any], sentence: str, recipe: dict[str, Any], fails: Fails) -> None:
    recipe["sources"][0] |= change
    said = fails(recipe)
    assert sentence in said
    assert "(--" not in said  # a source's settings are no flags


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"sources": []}, "sources is empty"),
        ({"sources": {"pairs": 1}}, "sources is a list"),
        ({"sources": ["pairs.tsv"]}, "Source 1 is 'pairs.tsv'; a source is a mapping"),
        ({"method": "simcse"}, "each source has its own method; leave method out"),
        ({"settings": {"temperature": 0.1}}, "temperature belongs to a source; put it under the settings of 'pairs'"),
        ({"settings": {"temprature": 0.1}}, "Unknown setting 'temprature'"),
        ({"settings": {**LOOP, "child_tuning": "F"}}, "child-tuning takes a run of one source, and this one has 2"),
        ({"sources": None}, "train needs data, a file such as sentences.txt; or sources"),
    ],
)
def test_mistakes_in_the_recipe(change: dict[str, Any], sentence: str, recipe: dict[str, Any], fails: Fails) -> None:
    assert sentence in fails({**recipe, **change})


def test_a_method_on_the_command_line_has_no_place_beside_sources(
    recipe: dict[str, Any], fails: Callable[..., str], samples: dict[str, Path]
) -> None:
    said = fails(recipe, "simcse", str(samples["sentences"]))
    assert "A run of sources takes method and data from each of them; leave method out" in said


def test_an_empty_source_is_named(recipe: dict[str, Any], fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").write_text("anchor\tpositive\n", encoding="utf-8")
    recipe["sources"][0]["data"] = "empty.tsv"
    said = fails(recipe)
    assert said.startswith("Source 'pairs': empty.tsv")


@pytest.mark.parametrize(
    ("source", "kind", "sentence"),
    [
        ({"method": "word2vec"}, "sentences", "word2vec initialises an encoder of its own from the data"),
        ({"method": "fine-tune"}, "labelled-pairs", "fine-tune selects its checkpoint by its own task"),
        ({"method": "sg"}, "sentences", r"differ in adam_beta2 \('pairs' 0.999, .* give adam_beta2 for the run"),
        ({"method": "simcse", "settings": {"dropout": 0.2}}, "sentences", "differ in dropout .* share one encoder"),
    ],
)
def test_methods_that_cannot_share_a_run(
    source: dict[str, Any], kind: str, sentence: str, recipe: dict[str, Any], samples: dict[str, Path], tmp_path: Path
) -> None:
    sources = [*recipe["sources"], {"name": "third", "share": 1, "data": str(samples[kind]), **source}]
    with pytest.raises(InputError, match=sentence):
        isotrope.train(sources=sources, output=tmp_path / "run", pooling="mean", **LOOP)
    assert not (tmp_path / "run").exists()


def test_a_method_that_freezes_a_part_of_the_encoder_is_refused(
    recipe: dict[str, Any], samples: dict[str, Path], tmp_path: Path
) -> None:
    source = {"name": "third", "share": 1, "data": str(samples["sentences"]), "method": "sg"}
    with pytest.raises(InputError, match="Source 'third': sg freezes a part of the encoder"):
        isotrope.train(
            sources=[*recipe["sources"], {**source, "settings": {"projection": 32}}],
            model=recipe["model"],
            output=tmp_path / "run",
            pooling="mean",
            adam_beta2=0.9,
            **LOOP,
        )
    assert not (tmp_path / "run").exists()


def test_methods_that_read_out_differently_need_a_named_pooling(recipe: dict[str, Any], fails: Fails) -> None:
    recipe |= {"pooling": None, "model": "builtin-base"}
    assert "simcse-supervised by cls, cosent by mean); name one pooling for all" in fails(recipe)


def test_the_recipe_of_the_docs_names_known_methods_and_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipes = [path for path in RECIPES.rglob("*.yaml") if "sources" in yaml.safe_load(path.read_text("utf-8"))]
    assert recipes
    for path in recipes:
        recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
        plan = plan_sources(
            recipe["sources"],
            recipe.get("model", "builtin-base"),
            tmp_path / "run",
            pooling=recipe["pooling"],
            **recipe["settings"],
        )
        assert len(plan.plans) == len(read_sources(recipe["sources"]))
