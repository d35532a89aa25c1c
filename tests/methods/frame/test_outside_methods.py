"""A method outside the package: the file of CONTRIBUTING.md, named by the variable or by an installed package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.methods.frame.method_registry import find, registry
from isotrope.methods.frame.outside_methods import VARIABLE

ROOT = Path(__file__).parents[3]
NAME = "mixed-negatives"


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(r"All of `src/isotrope/methods/\w+.py`:\n\n```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    file = tmp_path / "mine.py"
    file.write_text(found[1], encoding="utf-8")
    return file


def command_line(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    source = os.pathsep.join([str(folder), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-m", "isotrope", *words], env=environment, capture_output=True, text=True)


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
def test_a_file_that_the_variable_names_is_a_method(
    own_file: Path, monkeypatch: pytest.MonkeyPatch, tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"Unknown method '{NAME}'"):
        find(NAME)
    monkeypatch.setenv(VARIABLE, str(own_file))
    assert NAME in {card.name for card in isotrope.methods()}
    run = isotrope.train(NAME, sentences, model=tiny, output=tmp_path / "run", max_steps=2, batch_size=8, share=0.3)
    assert run.encoder.encode("a text").shape == (32,)
    monkeypatch.delenv(VARIABLE)
    assert NAME not in registry()


def test_a_comparison_does_not_mix_runs_of_an_edited_file(
    own_file: Path, monkeypatch: pytest.MonkeyPatch, tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(own_file))
    given = {"model": str(tiny), "max_steps": 2, "batch_size": 8, "seeds": 1}
    isotrope.compare(sentences, [NAME], tmp_path / "compared", **given)
    own_file.write_text(own_file.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.py"):
        isotrope.compare(sentences, [NAME], tmp_path / "compared", **given)


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
@pytest.mark.parametrize("sources", [False, True])
def test_a_run_of_an_edited_file_is_not_resumed(
    sources: bool, own_file: Path, monkeypatch: pytest.MonkeyPatch, tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(own_file))
    named = {"sources": [{"data": str(sentences), "method": NAME}]} if sources else {"method": NAME, "data": sentences}
    given = {**named, "model": tiny, "output": tmp_path / "run", "batch_size": 8, "eval_steps": 1}
    isotrope.train(**given, max_steps=1)
    isotrope.train(**given, max_steps=2, resume=True)
    own_file.write_text(own_file.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"cannot resume, the contents of the method's file differ: mine\.py was"):
        isotrope.train(**given, max_steps=3, resume=True)


def test_an_installed_package_names_its_modules(own_file: Path, tmp_path: Path) -> None:
    facts = tmp_path / "own_methods-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: own-methods\nVersion: 1.0\n", encoding="utf-8")
    (facts / "entry_points.txt").write_text("[isotrope.methods]\nanything = mine\n", encoding="utf-8")
    said = command_line(tmp_path, "methods", NAME)
    assert "Share λ of the positive" in said.stdout, said.stderr
    own_file.write_text("import nothing_of_that_name\n", encoding="utf-8")
    said = command_line(tmp_path, "methods")
    assert said.returncode == 2
    assert "No module named 'nothing_of_that_name'" in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "is no .py file"),
        ("import nothing_of_that_name\n", "cannot be imported: ModuleNotFoundError"),
        ("class A(:\n", "cannot be imported: SyntaxError"),
        ("from isotrope.methods.simcse import SimCSE\n", "holds no method"),
        (
            "from isotrope.methods.simcse import SimCSE\nclass Mine(SimCSE):\n    card = SimCSE.card\n",
            "there is a method 'simcse' already, in isotrope.methods.simcse",
        ),
    ],
)
def test_what_is_refused(content: str | None, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.py"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    monkeypatch.setenv(VARIABLE, str(file))
    with pytest.raises(InputError, match=re.escape(sentence)):
        registry()
