"""The page of a first method is true: its files alone make a method that runs and keeps every law of the frame."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAME = "mixed-negatives"
FILE = re.compile(r"All of `([\w/.]+)`:\n\n(`{3,})\w+\n(.*?\n)\2\n", re.DOTALL)


def page_files() -> dict[str, str]:
    """The files of the worked example, by path."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return {path: content for path, _, content in FILE.findall(text)}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which the files of the page stand; what the page does not touch is linked."""
    root = tmp_path_factory.mktemp("house")
    for folder in ("src/isotrope", "src/isotrope/methods", "docs/methods"):
        link_all(ROOT / folder, root / folder)
    ignored = shutil.ignore_patterns("__pycache__", "distributed", "end_to_end")
    shutil.copytree(ROOT / "tests", root / "tests", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", root)
    for path, content in page_files().items():
        assert not (root / path).exists(), f"{path} is there already: choose another example"
        (root / path).write_text(content, encoding="utf-8")
    return root


def link_all(source: Path, target: Path) -> None:
    """A folder of links to what another one holds. A link to a folder that is to be filled is replaced by it."""
    if target.is_symlink():
        target.unlink()
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name != "__pycache__":
            (target / entry.name).symlink_to(entry)


def run(house: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(house / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-m", *words], cwd=house, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_method_is_one_file_one_test_and_one_page() -> None:
    stem = NAME.replace("-", "_")
    expected = [f"src/isotrope/methods/{stem}.py", f"tests/methods/test_{stem}.py", f"docs/methods/{stem}.md"]
    assert list(page_files()) == expected


def test_the_command_line_lists_its_settings(house: Path) -> None:
    described = " ".join(run(house, "isotrope", "methods", NAME).split())
    for word in ("share", "above 0 and below 1", "Share λ of the positive in its mixture", "mlm-weight", "max-steps"):
        assert word in described


def test_its_test_passes_and_it_keeps_the_laws_of_every_method(house: Path) -> None:
    own, every = "tests/methods/test_mixed_negatives.py", "tests/methods/test_every_method.py"
    said = run(house, "pytest", "-p", "no:cacheprovider", own, every, "-k", "mixed")
    passed = re.search(r"(\d+) passed", said)
    assert passed is not None
    assert int(passed[1]) >= 12
    assert "failed" not in said
