"""No code of a model folder is run, whoever says yes to whom; the user's switch names the folder that may."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import isotrope
from isotrope.cli import main
from isotrope.encoders.loading import load
from isotrope.encoders.packed import write_packed
from isotrope.encoders.remote_code import VARIABLE, CodeNotRunWarning
from isotrope.errors import InputError

CODE = """
from pathlib import Path

from transformers import BertConfig, BertModel, BertTokenizerFast

(Path({marker!r})).write_text("ran")


class OwnConfig(BertConfig):
    model_type = "own"


class OwnModel(BertModel):
    config_class = OwnConfig


class OwnTokenizer(BertTokenizerFast):
    pass
"""


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "marker"


@pytest.fixture
def folder(bert: Path, tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model whose config names code in its folder; the code leaves a marker where it is run."""
    import transformers.dynamic_module_utils as dynamic

    monkeypatch.setattr(dynamic, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv(VARIABLE, raising=False)
    folder = shutil.copytree(bert, tmp_path / "own")
    (folder / "own.py").write_text(CODE.format(marker=str(marker)))
    change(
        folder, "config.json", model_type="own", auto_map={"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    )
    return folder


def change(folder: Path, name: str, **facts: object) -> None:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


def test_the_code_of_a_folder_is_not_run(folder: Path, marker: Path) -> None:
    with pytest.raises(InputError, match=r"code of its own .own.OwnConfig., which is not run") as caught:
        load(folder)
    assert "trust_remote_code" in str(caught.value)
    assert not marker.exists()


@pytest.mark.parametrize(
    "words", [["encode", "FOLDER", "TEXT", "--output", "v.npy"], ["search", "FOLDER", "TEXT", "a"]]
)
def test_a_yes_on_standard_input_is_no_permission(folder: Path, marker: Path, tmp_path: Path, words: list[str]) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat\n")
    named = [{"FOLDER": str(folder), "TEXT": str(text)}.get(word, word) for word in words]
    done = subprocess.run(
        [sys.executable, "-m", "isotrope", *named],
        input="y\ny\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "HF_HOME": str(tmp_path / "hub"), "PYTHONPATH": str(Path(isotrope.__file__).parents[1])},
    )
    assert done.returncode == 2
    assert "--trust-remote-code" in done.stderr
    assert "Traceback" not in done.stderr
    assert not marker.exists()


def test_a_known_type_is_built_by_transformers_and_that_is_said(folder: Path, marker: Path) -> None:
    change(folder, "config.json", model_type="bert")
    with pytest.warns(CodeNotRunWarning, match="which is not run"):
        load(folder)
    assert not marker.exists()


@pytest.mark.parametrize("listed", [{"AutoTokenizer": [None, "own.OwnTokenizer"]}, ["own.OwnTokenizer", None]])
def test_nor_is_that_of_a_tokenizer(folder: Path, marker: Path, listed: object) -> None:
    change(folder, "config.json", model_type="bert", auto_map={})
    change(folder, "tokenizer_config.json", auto_map=listed, tokenizer_class="OwnTokenizer")
    with pytest.warns(CodeNotRunWarning), contextlib.suppress(InputError):
        load(folder)
    assert not marker.exists()


def test_nor_that_of_a_packed_folder(folder: Path, bert: Path, marker: Path, tmp_path: Path) -> None:
    write_packed(load(bert), tmp_path / "packed")
    for name in ("own.py", "config.json"):
        shutil.copy(folder / name, tmp_path / "packed" / name)
    with pytest.raises(InputError, match="which is not run"):
        load(tmp_path / "packed")
    assert not marker.exists()


def test_nor_that_of_a_translator(folder: Path, marker: Path) -> None:
    from isotrope.encoders.translation import Translator

    change(folder, "config.json", is_encoder_decoder=True, auto_map={"AutoConfig": "own.OwnConfig"})
    with pytest.raises(InputError, match="cannot be loaded"):
        Translator(folder)
    assert not marker.exists()


def test_the_switch_names_the_folder(folder: Path, bert: Path, marker: Path) -> None:
    with pytest.raises(InputError, match="takes the folder whose code may run, not True"):
        load(folder, trust_remote_code=True)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"trust_remote_code names .*bert.* and the model is"):
        load(folder, trust_remote_code=bert)
    assert not marker.exists()
    encoder = load(folder, trust_remote_code=f"{folder}/.")
    assert marker.exists()
    assert type(encoder.backbone).__name__ == "OwnModel"
    assert encoder.encode("the cat").shape == (32,)


def test_trust_in_one_folder_is_none_in_another(folder: Path, marker: Path, tmp_path: Path) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    os.environ[VARIABLE] = str(other)
    try:
        with pytest.raises(InputError, match="which is not run"):
            load(folder)
        assert not marker.exists()
        load(other)
    finally:
        del os.environ[VARIABLE]
    assert marker.exists()


def test_code_of_another_repository_is_never_run(folder: Path, marker: Path) -> None:
    change(folder, "config.json", auto_map={"AutoConfig": "someone/else--own.OwnConfig"})
    with pytest.raises(InputError, match="another repository"):
        load(folder, trust_remote_code=folder)
    assert not marker.exists()


def test_the_fingerprint_covers_the_code_that_was_run(folder: Path, tmp_path: Path) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    (other / "own.py").write_text((folder / "own.py").read_text() + "\n\nOwnModel.forward_scale = 2\n")
    first, second = (load(one, trust_remote_code=one).fingerprint() for one in (folder, other))
    assert first != second
    assert load(folder, trust_remote_code=folder).fingerprint() == first


def test_the_command_line_has_the_switch(
    folder: Path, marker: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "")
    (tmp_path / "text.txt").write_text("the cat\na dog\n")
    words = ["search", str(folder), str(tmp_path / "text.txt"), "cat", "--json"]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--trust-remote-code", str(folder)])
    assert ended.value.code == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
    assert marker.exists()


def test_no_loader_of_transformers_is_called_without_saying_whom_to_trust() -> None:
    """Every from_pretrained and from_config of an Auto class passes trust_remote_code, or keywords that hold it."""
    silent = []
    for path in Path(isotrope.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            owner = ast.unparse(node.func.value)
            loader = node.func.attr in ("from_pretrained", "from_config") and owner != "nn.Embedding"
            if loader and not any(word.arg in (None, "trust_remote_code") for word in node.keywords):
                silent.append(f"{path.name}: {ast.unparse(node)}")
    assert silent == []


def test_nothing_is_unpickled() -> None:
    """torch.load reads tensors alone, and numpy no objects."""
    wanted = {"torch.load": ("weights_only", True), "np.load": ("allow_pickle", False)}
    found = []
    for path in Path(isotrope.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        assert not names & {"pickle", "cloudpickle", "dill", "joblib", "shelve"}, path
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in wanted:
                name, value = wanted[ast.unparse(node.func)]
                given = {word.arg: getattr(word.value, "value", None) for word in node.keywords}
                if given.get(name) is not value:
                    found.append(f"{path.name}: {ast.unparse(node)}")
    assert found == []
