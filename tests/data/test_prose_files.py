"""A folder of documents is refused with the command that makes a text of it, and the command does what it says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.data.tables import check_file
from isotrope.errors import InputError


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my docs"
    (folder / "below").mkdir(parents=True)
    (folder / "a.md").write_text("# Title\n\nA sentence that\nis wrapped.\n", encoding="utf-8")
    (folder / "below" / "b.txt").write_text("Another\n  one", encoding="utf-8")
    (folder / "c.png").write_bytes(b"\x89PNG")
    return folder


def told(place: str | Path) -> str:
    with pytest.raises(InputError) as refused:
        check_file(place)
    return str(refused.value)


@pytest.mark.parametrize("place", ["my docs", "my docs/a.md"])
def test_the_command_joins_wrapped_lines_and_parts_documents(documents: Path, place: str) -> None:
    said = told(place)
    assert "this is a folder" in said if documents.name == place else "unknown file type" in said
    if shutil.which("awk") is None or shutil.which("find") is None:
        pytest.skip("awk or find is not on this machine")
    command = said.partition("by: ")[2]
    subprocess.run(command, shell=True, check=True)
    made = documents.parent / ("my docs.txt" if documents.name == place else "a.txt")
    records = [record for record in read(made, record_type_named("sentences")) if record.texts[0]]
    wanted = {"# Title", "A sentence that is wrapped."} | ({"Another one"} if documents.name == place else set())
    assert {record.texts[0] for record in records} == wanted
    if documents.name == place:
        assert len({record.document for record in records}) == 2


def test_no_command_where_it_would_not_help(documents: Path) -> None:
    (documents / "a.md").unlink()
    (documents / "below" / "b.txt").unlink()
    assert told(documents).endswith("this is a folder; give a file (.txt, .tsv, .csv, .jsonl, .parquet).")
    (documents.parent / "b.txt").write_text("text", encoding="utf-8")
    assert "awk" not in told(".")  # what it writes would be read again
    assert "awk" not in told(documents / "c.png")
