"""The commands as a person types them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.cli import main
from isotrope.machine import EXTRAS

TRAIN = ["--batch-size", "16", "--max-steps", "4", "--eval-steps", "4", "--held-out", "40", "--logging-steps", "2"]


def run(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    captured = capsys.readouterr()
    assert stop.value.code == 0, captured.err
    return captured.out


def test_methods_as_a_table_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert "simcse-supervised" in run(capsys, "methods")
    listed = json.loads(run(capsys, "methods", "--json"))
    assert {"name", "title", "paper", "year", "needs", "kind"} <= set(listed[0])
    settings = json.loads(run(capsys, "methods", "simcse", "--json"))["settings"]
    (temperature,) = (one for one in settings if one["setting"] == "temperature")
    assert (temperature["default"], temperature["range"], temperature["of"]) == (0.05, "above 0", "simcse")
    assert "divided by it" in temperature["meaning"]
    assert {one["of"] for one in settings} >= {"simcse", "the loop", "mlm", "rtd", "child-tuning", "chain-thaw"}


def test_methods_are_filtered_and_written_to_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wanted = {card.name for card in isotrope.methods(needs="triples")}
    told = run(capsys, "methods", "--needs", "triples", "--json", tmp_path / "methods.json")
    written = json.loads((tmp_path / "methods.json").read_text(encoding="utf-8"))
    assert {card["name"] for card in written} == wanted
    assert all(name in told for name in wanted)  # the table is printed as well
    assert "quick-thoughts" not in told
    assert json.loads(run(capsys, "methods", "--json", "--needs", "triples")) == written


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_from_a_text_file_to_a_judged_saved_usable_encoder(
    capsys: pytest.CaptureFixture[str], tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    """The front door to the back: train, encode, search, and the same vectors in sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    out = tmp_path / "run"
    summary = json.loads(
        run(
            capsys,
            "train",
            "simcse",
            sentences,
            "--model",
            tiny,
            "--output",
            out,
            "--temperature=0.1",
            *TRAIN,
            "--json",
        )
    )
    assert summary["folder"] == str(out)
    assert json.loads((out / "run.json").read_text())["settings"]["temperature"] == 0.1
    vectors = tmp_path / "vectors.npy"
    run(capsys, "encode", out / "model", sentences, "--output", vectors)
    lines = [line for line in sentences.read_text(encoding="utf-8").splitlines() if line]
    found = np.load(vectors)
    assert found.dtype == np.float32
    assert np.allclose(found, SentenceTransformer(str(out / "model"), device="cpu").encode(lines), atol=1e-5)
    hits = json.loads(run(capsys, "search", out / "model", sentences, lines[7], "--top", "2", "--json"))
    assert hits[0]["text"] == lines[7]
    assert len(hits) == 2


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_a_recipe_sets_and_the_command_line_wins(
    capsys: pytest.CaptureFixture[str], tiny: Path, triples: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        f"method: simcse-supervised\nmodel: {tiny}\npooling: cls\n"
        "settings: {temperature: 0.2, hard_negative_weight: 2.0, held_out: 20}\n"
    )
    words = [
        "train",
        "simcse-supervised",
        triples,
        "--config",
        recipe,
        "--output",
        tmp_path / "run",
        "--temperature",
        "0.3",
    ]
    run(capsys, *words, "--batch-size", "16", "--max-steps", "4", "--eval-steps", "4", "--learning-rate", "1e-3")
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (facts["settings"]["temperature"], facts["settings"]["hard_negative_weight"]) == (0.3, 2.0)
    assert facts["model"]["pooling"] == "cls"


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_the_method_of_a_recipe_is_taken_where_none_is_named(
    capsys: pytest.CaptureFixture[str], tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"method: tsdae\nmodel: {tiny}\n")
    run(capsys, "train", "--config", recipe, sentences, "--output", tmp_path / "run", "--no-final-table", *TRAIN)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["method"] == "tsdae"


def test_the_shipped_recipes_name_known_methods_and_settings() -> None:
    import yaml

    from isotrope.methods.frame.method_registry import find
    from isotrope.methods.frame.settings import check, resolve
    from isotrope.training.plan import setting_classes

    recipes = sorted((Path(__file__).parents[2] / "recipes").glob("*.yaml"))
    assert len(recipes) >= 8
    for path in recipes:
        recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
        kind = find(recipe["method"])
        for settings in resolve(recipe["settings"], *setting_classes(kind)):
            check(settings)


def test_doctor_survives_the_bfloat16_probe(capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(run(capsys, "doctor", "--json"))
    assert isinstance(facts["bfloat16"], bool)
    assert facts["threads"] >= 1
    assert "advice" in facts


def test_doctor_lists_the_extras_that_are_installed_by_the_name_that_pip_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no reader of TOML")
    written = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    known = set(tomllib.loads(written)["project"]["optional-dependencies"])
    assert set(EXTRAS) == known - {"test", "dev", "docs", "interop"}
    assert "tensorboard" in json.loads(run(capsys, "doctor", "--json"))["extras"]  # the tests need it
    assert {"onnx", "report", "serve"} <= set(isotrope.doctor().extras)


def test_import_is_light() -> None:
    """Neither torch nor transformers may be imported before it is needed."""
    heavy = "{'torch', 'transformers', 'scipy', 'pyarrow'} & set(sys.modules)"
    code = f"import sys, isotrope; heavy = {heavy}; assert not heavy, heavy"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version").strip() == isotrope.__version__


def test_geometry_of_a_text_as_a_table_and_as_json(
    capsys: pytest.CaptureFixture[str], tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    out = tmp_path / "geometry.json"
    told = run(
        capsys,
        "evaluate",
        tiny,
        "--suite",
        "geometry",
        "--text",
        sentences,
        "--pooling",
        "cls",
        "--seed",
        "7",
        "--json",
        out,
    )
    for words in ("mean cosine of two sentences", "400 different", "pooling cls", "seed 7"):
        assert words in " ".join(told.split())
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["protocol"]["text"] == "sentences.txt"
    assert found["scores"]["geometry"]["text"]["sentences"] == 400
    words = ["evaluate", tiny, "--suite", "geometry", "--text", sentences, "--pooling", "cls", "--seed", "7"]
    again = json.loads(run(capsys, *words, "--json"))
    assert again.pop("cost").keys() == found.pop("cost").keys()
    assert again == found
