"""A disk that is full, really: a tmpfs of a few hundred kilobytes. One sentence, and the last good state is there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from isotrope.training.step_folder import steps_in

LOOP = "--batch-size 16 --held-out 40 --max-length 24 --eval-steps 1 --logging-steps 1 --no-final-table"


def can_mount() -> bool:
    script = 'd=$(mktemp -d) && mount -t tmpfs -o size=64k none "$d" && umount "$d"'
    tool = shutil.which("unshare")
    return tool is not None and subprocess.run([tool, "-rm", "sh", "-c", script], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not can_mount(), reason="this account may not mount a tmpfs of its own")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("\n\n".join("\n".join(topics[i : i + 8]) for i in range(0, 400, 8)) + "\n", encoding="utf-8")
    return file


def on_a_small_disk(command: list[str], room: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run isotrope with DISK in ``command`` as a disk of its own; what is on it afterwards is copied to kept/."""
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir(exist_ok=True)
    words = " ".join(f"'{word.replace('DISK', str(disk))}'" for word in command)
    script = (
        f"mount -t tmpfs -o size={room} none {disk} && {{ '{sys.executable}' -m isotrope {words}; code=$?; "
        f"cp -a {disk}/. {kept}; exit $code; }}"
    )
    kept.mkdir()
    return subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True)


def assert_one_sentence(ended: subprocess.CompletedProcess[str]) -> None:
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "there is no space left on the disk" in ended.stderr.splitlines()[-1]


def hidden(folder: Path) -> list[str]:
    return [entry.name for entry in folder.rglob(".*")]


def test_vectors_that_do_not_fit(tiny: Path, text: Path, tmp_path: Path) -> None:
    ended = on_a_small_disk(["encode", str(tiny), str(text), "--output", "DISK/v.npy"], "20k", tmp_path)
    assert_one_sentence(ended)
    assert list((tmp_path / "kept").iterdir()) == []


def test_shards_that_do_not_fit(tiny: Path, text: Path, tmp_path: Path) -> None:
    """Those that did are whole; with more room the same command makes the rest."""
    words = ["encode", str(tiny), str(text), "--shard-size", "50", "--shards", "DISK/shards"]
    assert_one_sentence(on_a_small_disk(words, "52k", tmp_path))
    kept = tmp_path / "kept" / "shards"
    finished = list(kept.glob("0*.json"))
    assert 1 <= len(finished) < 8
    assert all(file.with_suffix(".npy").is_file() for file in finished)
    assert not [file for file in kept.iterdir() if ".claim" in file.name or ".part-" in file.name]
    import isotrope

    assert isotrope.encode(tiny, text, shards=kept, shard_size=50).made == 9 - len(finished)


@pytest.mark.parametrize("room", ["8k", "60k", "110k"])
def test_an_index_that_does_not_fit(tiny: Path, text: Path, tmp_path: Path, room: str) -> None:
    """In its first block, in its words, in its manifest: no place that a search would take for an index is left."""
    words = ["index", str(tiny), str(text), "--output"]
    ended = on_a_small_disk([*words, "DISK/place"], room, tmp_path)
    assert_one_sentence(ended)
    kept = tmp_path / "kept" / "place"
    asked = [sys.executable, "-m", "isotrope", "search", str(kept), "bread"]
    assert subprocess.run(asked, capture_output=True).returncode == 2
    again = subprocess.run([sys.executable, "-m", "isotrope", *words, str(kept)], capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert subprocess.run(asked, capture_output=True).returncode == 0


def test_a_head_that_does_not_fit(tiny: Path, topics: list[str], tmp_path: Path) -> None:
    labelled = tmp_path / "labelled.tsv"
    rows = [f"{'early' if i < 40 else 'late'}\t{topic}" for i, topic in enumerate(topics[:80])]
    labelled.write_text("\n".join(["label\tsentence", *rows]) + "\n", encoding="utf-8")
    words = ["train", "head", str(labelled), "--model", str(tiny), "--output", "DISK/run"]
    assert_one_sentence(on_a_small_disk(words, "60k", tmp_path))
    assert list((tmp_path / "kept").iterdir()) == []


def test_an_export_that_does_not_fit(tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="exports need the extra onnx")
    pytest.importorskip("onnxruntime", reason="exports need the extra onnx")
    assert_one_sentence(on_a_small_disk(["export", str(tiny), "DISK/exported"], "60k", tmp_path))
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_model_that_does_not_fit(tiny: Path, text: Path, tmp_path: Path) -> None:
    ended = on_a_small_disk(["fit-space", "whitening", str(tiny), str(text), "--output", "DISK/m"], "60k", tmp_path)
    assert_one_sentence(ended)
    assert list((tmp_path / "kept").iterdir()) == []


@pytest.mark.parametrize("room", ["8k", "900k"])
def test_a_run_that_does_not_fit(tiny: Path, text: Path, tmp_path: Path, room: str) -> None:
    """Before its first checkpoint, and in the midst of a later one: whatever is there is whole."""
    run = ["train", "simcse", str(text), "--model", str(tiny), "--max-steps", "6", *LOOP.split()]
    ended = on_a_small_disk([*run, "--output", "DISK/run"], room, tmp_path)
    assert_one_sentence(ended)
    kept = tmp_path / "kept" / "run"
    assert [step.damage() for step in steps_in(kept / "checkpoints")] == [None] * len(steps_in(kept / "checkpoints"))
    assert hidden(kept) == []
    if (kept / "metrics.jsonl").is_file():
        assert all(json.loads(line) for line in (kept / "metrics.jsonl").read_text().splitlines())
    again = [] if not (kept / "run.json").is_file() else ["--resume"]
    resumed = subprocess.run(
        [sys.executable, "-m", "isotrope", *run, "--output", str(kept), *again], capture_output=True, text=True
    )
    assert resumed.returncode == 0, resumed.stderr


def test_a_token_cache_that_does_not_fit(tiny: Path, text: Path, tmp_path: Path) -> None:
    os.environ["ISOTROPE_CACHE"], before = str(tmp_path / "disk" / "cache"), os.environ["ISOTROPE_CACHE"]
    try:
        run = ["train", "simcse", str(text), "--model", str(tiny), "--max-steps", "2", *LOOP.split()]
        ended = on_a_small_disk([*run, "--output", str(tmp_path / "run")], "30k", tmp_path)
    finally:
        os.environ["ISOTROPE_CACHE"] = before
    assert_one_sentence(ended)
    assert [file for file in (tmp_path / "kept").rglob("*") if file.is_file()] == []
    assert not (tmp_path / "run").exists()
