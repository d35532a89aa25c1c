"""Shards: the same bytes whoever makes them, whoever dies, and whatever is damaged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.shards.claims import Claims
from isotrope.shards.shard_store import open_shards


@pytest.fixture
def text(tmp_path: Path, topics: list[str]) -> Path:
    file = tmp_path / "text.txt"
    file.write_text("\n".join("" if number % 7 == 3 else line for number, line in enumerate(topics[:60])) + "\n")
    return file


@pytest.fixture
def plain(tiny: Path, text: Path, tmp_path: Path) -> bytes:
    """What one process writes without shards."""
    isotrope.encode(tiny, text, tmp_path / "plain.npy", shard_size=8)
    return (tmp_path / "plain.npy").read_bytes()


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def test_shards_joined_are_the_plain_file(tiny: Path, text: Path, plain: bytes, tmp_path: Path) -> None:
    folder, output = tmp_path / "shards", tmp_path / "joined.npy"
    answer = isotrope.encode(tiny, text, output, shards=folder, shard_size=8)
    assert output.read_bytes() == plain
    assert (answer.shards, answer.made, answer.sentences, answer.empty_left_out) == (8, 8, 51, 9)
    assert names(folder) == {f"{n:08d}{end}" for n in range(8) for end in (".npy", ".json")} | {
        "plan.json",
        "done.json",
    }
    blocks = list(open_shards(folder).blocks())
    assert np.array_equal(np.concatenate(blocks), np.load(output))
    assert isotrope.encode(tiny, text, shards=folder, shard_size=np.int64(8)).made == 0


@pytest.mark.parametrize("harm", ["flipped", "cut", "missing", "no facts", "facts of another plan"])
def test_a_damaged_shard_is_found_and_made_again(
    tiny: Path, text: Path, plain: bytes, tmp_path: Path, harm: str
) -> None:
    folder, output = tmp_path / "shards", tmp_path / "joined.npy"
    isotrope.encode(tiny, text, shards=folder, shard_size=8)
    shard, facts = folder / "00000003.npy", folder / "00000003.json"
    if harm == "flipped":
        content = bytearray(shard.read_bytes())
        content[-5] ^= 1
        shard.write_bytes(content)
    elif harm == "cut":
        shard.write_bytes(shard.read_bytes()[:-1])
    elif harm == "missing":
        shard.unlink()
    elif harm == "no facts":
        facts.write_text("{")
    else:
        facts.write_text(json.dumps({**json.loads(facts.read_text()), "plan": "another"}))
    with pytest.raises(InputError, match=r"makes it again|not finished"):
        open_shards(folder)
    assert isotrope.encode(tiny, text, output, shards=folder, shard_size=8).made == 1
    assert output.read_bytes() == plain


def test_another_text_model_or_form_is_refused(tiny: Path, text: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    isotrope.encode(tiny, text, shards=folder, shard_size=8)
    with pytest.raises(InputError, match=r"begun with another shard_size \(8 instead of 9\)"):
        isotrope.encode(tiny, text, shards=folder, shard_size=9)
    with pytest.raises(InputError, match="another form"):
        isotrope.encode(tiny, text, shards=folder, shard_size=8, normalize=True)
    text.write_text(text.read_text() + "one more\n")
    with pytest.raises(InputError, match="another text"):
        isotrope.encode(tiny, text, shards=folder, shard_size=8)
    other = tmp_path / "other"
    other.mkdir()
    (other / "plain.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds something else \(plain\.txt\)"):
        isotrope.encode(tiny, text, shards=other)


def test_int8_needs_ranges_that_all_processes_share(tiny: Path, text: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="need ranges"):
        isotrope.encode(tiny, text, shards=tmp_path / "shards", precision="int8")
    isotrope.encode(tiny, text, tmp_path / "one.npy", precision="int8", shard_size=8)
    ranges = tmp_path / "one.ranges.npy"
    isotrope.encode(
        tiny, text, tmp_path / "two.npy", precision="int8", ranges=ranges, shards=tmp_path / "shards", shard_size=8
    )
    assert (tmp_path / "one.npy").read_bytes() == (tmp_path / "two.npy").read_bytes()


def test_an_unfinished_folder_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no shards of vectors"):
        open_shards(tmp_path)


def test_a_claim_has_one_owner_and_a_dead_one_is_taken_over(tmp_path: Path) -> None:
    with Claims(tmp_path) as mine, Claims(tmp_path) as yours:
        assert mine.take("a")
        assert not yours.take("a")
        mine.free("a")
        assert yours.take("a")
    assert list(tmp_path.iterdir()) == []
    owner = {**mine.me, "process": 2**22 + 1}  # a number that no process has
    (tmp_path / "a.claim").write_text(json.dumps(owner))
    with Claims(tmp_path) as mine:
        assert mine.take("a")


def test_a_claim_on_a_shard_that_is_there_is_swept(tiny: Path, text: Path, tmp_path: Path) -> None:
    """Its owner died after the shard was written, and before the claim was freed."""
    folder = tmp_path / "shards"
    isotrope.encode(tiny, text, shards=folder, shard_size=8)
    (folder / "00000004.claim").write_text(json.dumps({"machine": "another", "process": 1, "began": "1"}))
    assert isotrope.encode(tiny, text, shards=folder, shard_size=8).made == 0
    assert not list(folder.glob("*.claim*"))


def test_a_claim_of_another_machine_is_dead_when_nobody_touches_it(tmp_path: Path) -> None:
    claim = tmp_path / "a.claim"
    claim.write_text(json.dumps({"machine": "another", "process": 1, "began": "1"}))
    with Claims(tmp_path, patience=0.0) as mine:
        assert not mine.take("a")  # seen for the first time
        os.utime(claim, ns=(1, 1))
        assert not mine.take("a")  # touched since
        assert mine.take("a")
    claim.write_text("")  # killed before it had written its name
    with Claims(tmp_path, patience=1000.0) as mine:
        assert not mine.take("a")
        assert not mine.take("a")


def test_processes_share_the_work_and_one_is_killed(tiny: Path, text: Path, plain: bytes, tmp_path: Path) -> None:
    """The first is killed in the middle of its third shard; the second makes the rest, and that one."""
    folder, output = tmp_path / "shards", tmp_path / "joined.npy"
    script = (
        "import sys, time, isotrope\n"
        "from isotrope.shards.shard_store import ShardStore\n"
        "write = ShardStore.write\n"
        "def slow(self, number, *rest):\n"
        "    if number == 2:\n"
        "        print('at the third', flush=True)\n"
        "        time.sleep(600)\n"
        "    write(self, number, *rest)\n"
        "ShardStore.write = slow\n"
        "isotrope.encode(sys.argv[1], sys.argv[2], shards=sys.argv[3], shard_size=8)\n"
    )
    command = [sys.executable, "-c", script, str(tiny), str(text), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "at the third\n"
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    assert {"00000001.json", "00000002.claim"} <= names(folder)
    assert "00000002.json" not in names(folder)
    begun = time.monotonic()
    answer = isotrope.encode(tiny, text, output, shards=folder, shard_size=8)
    assert time.monotonic() - begun < 50  # a process that is gone is not waited for
    assert answer.made == 6
    assert output.read_bytes() == plain
    assert not [name for name in names(folder) if "claim" in name or "part" in name]


def test_ray_makes_the_same_shards(tiny: Path, text: Path, plain: bytes, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    output = tmp_path / "joined.npy"
    answer = isotrope.encode(tiny, text, output, shards=tmp_path / "shards", shard_size=8, ray=True)
    assert answer.made == 8
    assert output.read_bytes() == plain


def test_what_ray_needs_is_said(tiny: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="ray needs shards"):
        isotrope.encode(tiny, text, tmp_path / "v.npy", ray=True)
    with pytest.raises(InputError, match="name or folder"):
        isotrope.encode(isotrope.load(tiny), text, shards=tmp_path / "shards", ray=True)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match="Ray is not installed"):
        isotrope.encode(tiny, text, shards=tmp_path / "shards", ray=True)


def test_an_old_output_is_not_taken_for_the_joined_file(
    tiny: Path, text: Path, plain: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process, without this output, ends the folder while this one waits."""
    folder, output = tmp_path / "shards", tmp_path / "joined.npy"
    isotrope.encode(tiny, text, shards=folder, shard_size=8)
    output.write_bytes(b"of another model")
    taken, asked = Claims.take, []

    def take(self: Claims, name: str) -> bool:
        if name != "end" or asked:
            return taken(self, name)
        asked.append(name)
        done = json.loads((folder / "done.json").read_text())
        (folder / "done.json").write_text(json.dumps({**done, "written": "by another process"}))
        return False

    monkeypatch.setattr(Claims, "take", take)
    isotrope.encode(tiny, text, output, shards=folder, shard_size=8)
    assert asked
    assert output.read_bytes() == plain


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="nobody can say when a process began")
def test_a_number_that_another_process_has_now_does_not_keep_a_claim_alive(tmp_path: Path) -> None:
    """After a restart of a container the same number is soon given again."""
    with Claims(tmp_path) as claims:
        for owner, dead in ((claims.me, False), ({**claims.me, "began": "1"}, True)):
            (tmp_path / "0.claim").write_text(json.dumps(owner))
            assert claims.take("0") is dead
            claims.free("0")
