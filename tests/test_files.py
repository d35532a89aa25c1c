"""Files that are either whole or not there, and names made of content."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from isotrope.errors import InputError
from isotrope.files import (
    cache_folder,
    check_run_folder,
    dated_folder,
    digest,
    explained,
    file_digest,
    write_json,
    written_file,
    written_folder,
)


def test_folders_that_were_made_for_nothing_go_again(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for writing in (written_file, written_folder):
        with pytest.raises(InputError), writing(tmp_path / "there" / "new" / "newer" / "a.txt"):
            raise InputError("no")
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_a_name_that_is_not_utf8_is_not_written(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    for writing in (written_file, written_folder):
        with pytest.raises(InputError, match="not UTF-8"), writing(tmp_path / name):
            pass
    with pytest.raises(InputError, match="not UTF-8"):
        check_run_folder(tmp_path / name, resume=False)
    assert list(tmp_path.iterdir()) == []


class Failure(Exception):
    pass


def fail_half_way(
    writing: AbstractContextManager[Path], write: Callable[[Path], object], stop: type[BaseException]
) -> None:
    with writing as temporary:
        write(temporary)
        raise stop


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---- a file


def test_a_file_appears_with_its_folders(tmp_path: Path) -> None:
    target = tmp_path / "new" / "deep" / "a.txt"
    with written_file(target) as temporary:
        temporary.write_text("whole")
        assert not target.exists()
        assert temporary.suffix == ".txt"  # writers such as numpy add a suffix that is missing
    assert target.read_text() == "whole"
    assert names_in(target.parent) == ["a.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(Failure):
        fail_half_way(written_file(target), lambda temporary: temporary.write_text("half"), Failure)
    assert target.read_text() == "old"
    assert names_in(tmp_path) == ["a.txt"]


def test_a_file_has_the_permissions_any_new_file_has(tmp_path: Path) -> None:
    # Temporary files are made for their owner alone; a shared cache would be of no use to others.
    (tmp_path / "plain").touch()
    with written_file(tmp_path / "ours"):
        pass
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("old")
    (tmp_path / "secret").chmod(0o600)
    with written_file(tmp_path / "secret") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "secret").read_text() == "new"
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link_and_what_it_leads_to_is_written(tmp_path: Path, there: bool) -> None:
    (tmp_path / "inner").mkdir()
    if there:
        (tmp_path / "inner" / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(Path("inner") / "real.txt")
    with written_file(tmp_path / "link.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "inner" / "real.txt").read_text() == "new"
    assert names_in(tmp_path) == ["inner", "link.txt"]
    assert names_in(tmp_path / "inner") == ["real.txt"]


def test_a_device_or_a_pipe_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(InputError, match="pipe: this is a device or a pipe; name a file"):
            write_json(tmp_path / name, 1)
    assert (tmp_path / "pipe").is_fifo()
    assert names_in(tmp_path) == ["link", "pipe"]


def test_json_is_readable_by_people(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"name": "句子", "n": 1, "none": [float("nan"), -float("inf")]})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"name": "句子", "n": 1, "none": [None, None]}  # NaN is no JSON
    assert "句子" in text
    assert text.endswith("}\n")


def test_what_is_no_json_leaves_the_old_file(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", object())
    assert (tmp_path / "a.json").read_text() == "1\n"
    assert names_in(tmp_path) == ["a.json"]


# ---- a folder


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "new" / "run"
    with written_folder(target) as temporary:
        (temporary / "a").write_text("1")
        assert not target.exists()
    assert (target / "a").read_text() == "1"
    assert names_in(target.parent) == ["run"]


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    for name in ("old", "new"):
        with written_folder(tmp_path / "run") as temporary:
            (temporary / name).touch()
    assert names_in(tmp_path / "run") == ["new"]
    assert names_in(tmp_path) == ["run"]


@pytest.mark.parametrize("stop", [Failure, KeyboardInterrupt])
def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path: Path, stop: type[BaseException]) -> None:
    with written_folder(tmp_path / "run") as temporary:
        (temporary / "old").touch()
    with pytest.raises(stop):
        fail_half_way(written_folder(tmp_path / "run"), lambda temporary: (temporary / "half").touch(), stop)
    assert names_in(tmp_path / "run") == ["old"]
    assert names_in(tmp_path) == ["run"]


def test_two_who_build_the_same_folder_do_not_trip(tmp_path: Path) -> None:
    target = tmp_path / "run"
    with written_folder(target) as slow:
        (slow / "slow").touch()
        with written_folder(target) as quick:
            (quick / "quick").touch()
        assert names_in(target) == ["quick"]
    assert names_in(target) == ["slow"]
    assert names_in(tmp_path) == ["run"]


def test_of_a_cache_the_first_whole_folder_stays_for_somebody_may_be_reading_it(tmp_path: Path) -> None:
    target = tmp_path / "cache"
    with written_folder(target, whole="facts") as slow:
        (slow / "facts").write_text("slow")
        with written_folder(target, whole="facts") as quick:
            (quick / "facts").write_text("quick")
        place = target.stat().st_ino
    assert (target / "facts").read_text() == "quick"
    assert target.stat().st_ino == place  # it was not away for a moment either
    assert names_in(tmp_path) == ["cache"]


def test_of_a_cache_a_folder_that_is_not_whole_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "half").touch()
    with written_folder(tmp_path / "cache", whole="facts") as temporary:
        (temporary / "facts").touch()
    assert names_in(tmp_path / "cache") == ["facts"]


def test_runs_that_begin_in_one_second_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.strftime", lambda form: "20261117-001118")
    made = []
    for _ in range(3):
        made.append(dated_folder("simcse", tmp_path).name)
        (tmp_path / made[-1]).mkdir()
    assert made == ["simcse-20261117-001118", "simcse-20261117-001118-2", "simcse-20261117-001118-3"]


def test_a_folder_has_the_permissions_any_new_folder_has(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with written_folder(tmp_path / "ours"):
        pass
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


# ---- refusals


@pytest.mark.parametrize("writer", [written_file, written_folder])
@pytest.mark.parametrize("below", ["a", "a/b"])
def test_a_path_through_a_file_is_one_sentence(tmp_path: Path, writer: type, below: str) -> None:
    (tmp_path / "occupied").write_text("a file")
    target = tmp_path / "occupied" / below
    with pytest.raises(InputError) as caught, writer(target):
        pytest.fail("there is nothing to write to")
    assert (
        str(caught.value)
        == f"Cannot write {target}: a part of this path is a file, not a folder; choose another place."
    )


def test_a_folder_in_the_place_of_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(InputError, match="a folder of this name is in the way"):
        write_json(tmp_path / "a.json", 1)
    assert names_in(tmp_path) == ["a.json"]


def test_a_file_in_the_place_of_a_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(InputError, match="a file, not a folder"), written_folder(tmp_path / "run"):
        pass
    assert (tmp_path / "run").read_text() == "a file"
    assert names_in(tmp_path) == ["run"]


def test_a_name_too_long_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too long"):
        write_json(tmp_path / ("x" * 300), 1)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EDQUOT, "quota"),
        (errno.EACCES, "permission"),
        (errno.EROFS, "read-only"),
    ],
)
@pytest.mark.parametrize("writer", [written_file, written_folder])
def test_a_refusal_while_writing_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, writer: type, code: int, words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught, writer(tmp_path / "a"):
        raise OSError(code, os.strerror(code))
    assert str(caught.value).startswith(f"Cannot write {tmp_path / 'a'}: ")
    assert names_in(tmp_path) == []


def test_other_troubles_are_not_explained_away(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), explained(tmp_path):
        open(tmp_path / "none")  # noqa: SIM115


# ---- where a run can begin


def test_a_run_begins_in_a_new_or_an_empty_folder_and_is_resumed_where_one_is(tmp_path: Path) -> None:
    check_run_folder(tmp_path / "new", resume=False)
    check_run_folder(tmp_path, resume=False)
    (tmp_path / "run.json").write_text("{}")
    check_run_folder(tmp_path, resume=True)


@pytest.mark.parametrize(
    ("file", "place", "resume", "sentence"),
    [
        ("run.json", ".", False, "a run is here already; continue it with resume, or choose another output"),
        ("thesis.txt", ".", False, r"holds something else \(thesis.txt\)"),
        ("thesis.txt", "thesis.txt", False, "a file stands where the run's folder should be"),
        ("thesis.txt", ".", True, "no run to resume here"),
        ("thesis.txt", "new", True, "no run to resume here"),
    ],
)
def test_a_place_where_no_run_can_begin_is_refused(
    tmp_path: Path, file: str, place: str, resume: bool, sentence: str
) -> None:
    (tmp_path / file).write_text("years of work")
    with pytest.raises(InputError, match=sentence):
        check_run_folder(tmp_path / place, resume)
    assert names_in(tmp_path) == [file]


# ---- names


def test_a_digest_tells_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")
    assert digest("é") == digest("é".encode())


def test_a_digest_is_the_same_everywhere() -> None:
    # Caches outlive processes and machines: a change here makes every one of them useless.
    assert digest("isotrope") == "f86da0f360a866cc2d45144b1ee126ce"


def test_a_file_is_named_by_its_content(tmp_path: Path) -> None:
    for name, content in (("a", b"x" * 3_000_000), ("b", b"x" * 3_000_000), ("c", b"x" * 2_999_999 + b"y")):
        (tmp_path / name).write_bytes(content)
    assert file_digest(tmp_path / "a") == file_digest(tmp_path / "b") != file_digest(tmp_path / "c")


def test_where_the_cache_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.setenv("ISOTROPE_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "isotrope"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "isotrope"


def test_a_folder_that_another_process_puts_in_the_same_place_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, target, theirs = os.replace, tmp_path / "made", iter([True])

    def late(source: Path, place: Path) -> None:
        if place == target and next(theirs, False):  # between the look and the move
            target.mkdir()
            (target / "theirs").touch()
        plain(source, place)

    monkeypatch.setattr(os, "replace", late)
    with written_folder(target) as temporary:
        (temporary / "ours").touch()
    assert [file.name for file in target.iterdir()] == ["ours"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["made"]
