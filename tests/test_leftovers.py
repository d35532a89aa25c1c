"""Temporary names of dead processes are swept by the next writer; those of a living one stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotrope.files import written_file
from isotrope.leftovers import HAS_LOCKS, is_temporary, sweep, writing_in

pytestmark = pytest.mark.skipif(not HAS_LOCKS, reason="this system has no locks on folders")


def leave_behind(folder: Path) -> None:
    """What a killed process leaves: a file, a folder, and the last good file between two renames."""
    (folder / ".v.npy.part-abcd1234.npy").write_text("half")
    (folder / ".model.part-abcd1234").mkdir()
    (folder / ".model.part-abcd1234" / "weights").write_text("half")
    (folder / ".kept.json.part-abcd1234.old").write_text("good")


def test_the_next_writer_sweeps(tmp_path: Path) -> None:
    leave_behind(tmp_path)
    (tmp_path / "notes.part-of-mine").write_text("a user's own")
    with written_file(tmp_path / "new.txt") as temporary:
        Path(temporary).write_text("new")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kept.json", "new.txt", "notes.part-of-mine"]
    assert (tmp_path / "kept.json").read_text() == "good"


def test_an_old_file_does_not_come_back_over_a_newer_one(tmp_path: Path) -> None:
    leave_behind(tmp_path)
    (tmp_path / "kept.json").write_text("newer")
    sweep(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["kept.json"]
    assert (tmp_path / "kept.json").read_text() == "newer"


def test_nothing_is_swept_while_somebody_writes(tmp_path: Path) -> None:
    with writing_in(tmp_path):
        leave_behind(tmp_path)
        sweep(tmp_path)
        assert sum(is_temporary(file.name) for file in tmp_path.iterdir()) == 3
    sweep(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["kept.json"]
