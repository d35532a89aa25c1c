"""Run folders that something happened to: every one of them can be resumed, and ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import isotrope
from isotrope.errors import InputError
from isotrope.locks import FolderLock
from isotrope.methods.frame.combined import Combined
from isotrope.methods.simcse import SimCSE
from isotrope.training import interruption
from isotrope.training.run_folder import RunFolder

LOOP: dict[str, Any] = {
    "batch_size": 16,
    "eval_steps": 2,
    "logging_steps": 1,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 32,
    "max_steps": 8,
}
pytestmark = pytest.mark.filterwarnings("ignore:Training did not improve")
Damage = Callable[[Path], None]


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-len(content) // 3] ^= 0x10
    file.write_bytes(bytes(content))


def remove(file: Path) -> None:
    file.unlink()


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    file = tmp_path_factory.mktemp("text") / "sentences.txt"
    file.write_text("\n\n".join("\n".join(topics[i : i + 8]) for i in range(0, 400, 8)) + "\n", encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def finished(tiny: Path, text: Path, tmp_path_factory: pytest.TempPathFactory) -> isotrope.Run:
    return isotrope.train("simcse", text, tiny, tmp_path_factory.mktemp("runs") / "whole", **LOOP)


@pytest.fixture(scope="module")
def stopped(tiny: Path, text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that Ctrl-C ended after its fifth step: checkpoints of steps 4 and 5."""
    folder = tmp_path_factory.mktemp("runs") / "cut"
    taken = iter(range(1, 100))

    def interrupt(self: Combined, representations: Any) -> None:
        if next(taken) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Combined, "after_update", interrupt)
        with pytest.raises(KeyboardInterrupt, match="step 5"):
            isotrope.train("simcse", text, tiny, folder, **LOOP)
    assert sorted(place.name for place in (folder / "checkpoints").glob("step-*")) == ["step-4", "step-5"]
    return folder


@pytest.fixture
def run(stopped: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stopped, tmp_path / "run"))


def resumed(folder: Path, text: Path, tiny: Path, **other: Any) -> isotrope.Run:
    return isotrope.train("simcse", text, tiny, folder, resume=True, **{**LOOP, **other})


def assert_same(found: isotrope.Run, wanted: isotrope.Run) -> None:
    first, second = (load_file(one.folder / "model" / "model.safetensors") for one in (found, wanted))
    assert [name for name, tensor in first.items() if not torch.equal(tensor, second[name])] == []
    losses = [[line["loss"] for line in one.history if "loss" in line] for one in (found, wanted)]
    assert losses[0] == losses[1]
    assert found.selected_step == wanted.selected_step


@pytest.mark.parametrize("file", ["weights.safetensors", "optimiser.pt", "state.json", "checksums.json"])
@pytest.mark.parametrize("damage", [empty, cut, flip, remove])
def test_a_damaged_checkpoint_is_set_aside_and_said(
    run: Path, caplog: pytest.LogCaptureFixture, file: str, damage: Damage
) -> None:
    caplog.set_level("INFO", "isotrope")
    damage(run / "checkpoints" / "step-5" / file)
    RunFolder(run).set_damaged_aside()
    assert "step-5 is damaged" in caplog.text
    assert file in caplog.text
    assert sorted(place.name for place in (run / "checkpoints").glob("*step-*")) == ["damaged-step-5", "step-4"]


def test_resume_goes_on_from_the_newest_whole_checkpoint(
    run: Path, text: Path, tiny: Path, finished: isotrope.Run
) -> None:
    flip(run / "checkpoints" / "step-5" / "optimiser.pt")
    assert_same(resumed(run, text, tiny), finished)


@pytest.mark.parametrize("damage", [flip, remove])
def test_damaged_best_weights_are_no_end_of_a_run(
    run: Path, text: Path, tiny: Path, finished: isotrope.Run, damage: Damage
) -> None:
    for file in (run / "checkpoints").glob("best-*"):
        damage(file)
    assert_same(resumed(run, text, tiny), finished)


def test_where_no_checkpoint_is_whole_the_run_begins_again(
    run: Path, text: Path, tiny: Path, finished: isotrope.Run
) -> None:
    for folder in (run / "checkpoints").glob("step-*"):
        empty(folder / "optimiser.pt")
    assert_same(resumed(run, text, tiny), finished)


def test_a_stray_folder_is_no_checkpoint(run: Path, text: Path, tiny: Path, finished: isotrope.Run) -> None:
    (run / "checkpoints" / "step-99999").mkdir()
    (run / "checkpoints" / "step-99999" / "notes.txt").write_text("mine")
    assert_same(resumed(run, text, tiny), finished)
    assert (run / "checkpoints" / "damaged-step-99999" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("damage", [cut, remove])
def test_run_json_is_written_again_from_what_the_checkpoint_knows(
    run: Path, text: Path, tiny: Path, finished: isotrope.Run, damage: Damage
) -> None:
    damage(run / "run.json")
    with pytest.raises(InputError, match="a run is here already; continue it with resume"):
        isotrope.train("simcse", text, tiny, run, **LOOP)
    with pytest.raises(InputError, match=r"temperature was 0\.05 and is 0\.2"):
        resumed(run, text, tiny, temperature=0.2)
    assert_same(resumed(run, text, tiny), finished)
    assert json.loads((run / "run.json").read_text())["method"] == "simcse"


def test_a_torn_last_line_of_the_log_is_dropped(run: Path, text: Path, tiny: Path, finished: isotrope.Run) -> None:
    with open(run / "metrics.jsonl", "a", encoding="utf-8") as log:
        log.write('{"step": 5, "lo')
    assert_same(resumed(run, text, tiny), finished)


@pytest.mark.parametrize("damage", [flip, remove])
def test_a_damaged_log_does_not_keep_a_run_from_ending(run: Path, text: Path, tiny: Path, damage: Damage) -> None:
    damage(run / "metrics.jsonl")
    assert resumed(run, text, tiny).history[-1]["step"] == 8


def test_a_line_that_the_disk_does_not_take_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from isotrope.training.run_folder import RunFolder\n"
        "folder = RunFolder(Path(sys.argv[1])); folder.log({'step': 1})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30, 30)); folder.log({'step': 2, 'more': 'x' * 40})"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    assert "InputError: Cannot write" in ended.stderr
    assert RunFolder(tmp_path).history() == [{"step": 1}]
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 1


# ---- what must be the same


def test_other_eval_data_is_another_run(tiny: Path, text: Path, samples: dict[str, Path], tmp_path: Path) -> None:
    pairs = tmp_path / "dev.tsv"
    shutil.copy(samples["scored-pairs"], pairs)
    isotrope.train("simcse", text, tiny, tmp_path / "run", eval_data=pairs, **LOOP)
    pairs.write_text(pairs.read_text().replace("\t5\n", "\t4\n"))
    with pytest.raises(InputError, match="cannot resume, the evaluation data differ"):
        resumed(tmp_path / "run", text, tiny, eval_data=pairs)
    with pytest.raises(InputError, match="cannot resume, the evaluation data differ"):
        resumed(tmp_path / "run", text, tiny)


def test_another_number_of_processes_is_another_run(run: Path, text: Path, tiny: Path) -> None:
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**facts, "processes": 2}))
    with pytest.raises(InputError, match="the processes differ: it was 2 and is 1"):
        resumed(run, text, tiny)


# ---- a way out of every folder


def test_a_loss_that_is_no_number_can_be_resumed_with_a_lower_rate(
    tiny: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, calls = SimCSE.loss, iter(range(100))

    def poisoned(self: SimCSE, representations: Any, generator: Any) -> dict[str, torch.Tensor]:
        factor = float("nan") if next(calls) == 4 else 1.0
        return {name: term * factor for name, term in plain(self, representations, generator).items()}

    with monkeypatch.context() as patch:
        patch.setattr(SimCSE, "loss", poisoned)
        with pytest.raises(InputError, match=r"not a number at step 5.*resume with a lower learning_rate"):
            isotrope.train("simcse", text, tiny, tmp_path / "run", **LOOP)
    with pytest.raises(InputError, match="temperature was"):
        resumed(tmp_path / "run", text, tiny, temperature=0.1)
    ended = resumed(tmp_path / "run", text, tiny, learning_rate=1e-4)
    rates = {line["step"]: line["learning_rate"] for line in ended.history if "loss" in line}
    assert rates[4] == pytest.approx(5e-4)
    assert rates[6] == pytest.approx(2.5e-5)
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["settings"]["learning_rate"] == 1e-4
    assert "stopped" not in facts
    with pytest.raises(InputError, match="learning_rate was"):
        resumed(tmp_path / "run", text, tiny, learning_rate=1e-3)


@pytest.mark.parametrize("left", ["nothing", "temporary", "lock", "checkpoints"])
def test_a_run_killed_while_it_began_starts_or_resumes(
    tiny: Path, text: Path, tmp_path: Path, finished: isotrope.Run, left: str
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    if left == "temporary":
        (folder / ".run.json.part-abcd_123.json").write_text("{")
    elif left == "lock":
        (folder / ".lock").touch()
    elif left == "checkpoints":
        (folder / "checkpoints").mkdir()
    again = isotrope.train("simcse", text, tiny, folder, resume=left == "checkpoints", **LOOP)
    assert_same(again, finished)
    assert [entry.name for entry in folder.iterdir() if entry.name.startswith(".")] == []


# ---- one process at a time


def test_a_second_process_is_refused_while_the_first_trains(run: Path, text: Path, tiny: Path) -> None:
    lock = FolderLock(run)
    lock.take()
    before = sorted(run.rglob("*"))
    with pytest.raises(InputError, match="another process is at work in this folder"):
        resumed(run, text, tiny)
    assert sorted(run.rglob("*")) == before
    lock.release()
    assert not (run / ".lock").exists()


def test_a_killed_process_keeps_no_lock(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from isotrope.locks import FolderLock\n"
        "FolderLock(Path(sys.argv[1])).take(); print('taken', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "taken\n"
        assert not FolderLock(tmp_path).try_take()
        other.kill()
    assert FolderLock(tmp_path).try_take()


# ---- SIGTERM


def test_sigterm_is_the_first_ctrl_c(tiny: Path, text: Path, tmp_path: Path, finished: isotrope.Run) -> None:
    """Sent by another process, to the command line, in the middle of a run."""
    folder = tmp_path / "run"
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in {**LOOP, "max_steps": 100_000}.items()]
    command = [sys.executable, "-m", "isotrope", "train", "simcse", str(text), "--model", str(tiny), *flags]
    with subprocess.Popen(
        [*command, "--output", str(folder)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as run:
        while not list((folder / "checkpoints").glob("step-*")) and run.poll() is None:
            time.sleep(0.05)
        run.terminate()
        assert run.stderr is not None
        said = run.stderr.read()
    assert run.returncode == 130, said
    assert "stopped at step" in said
    assert "Traceback" not in said
    step = int(said.split("stopped at step ")[1].split(";")[0])
    assert (folder / "checkpoints" / f"step-{step}" / "state.json").is_file()
    assert not (folder / ".lock").exists()


def test_a_handler_that_python_did_not_set_is_no_end_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside another program ``signal.signal`` answers None, which it does not take back."""
    put = signal.signal
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(signal, "signal", lambda number, handler: [put(number, handler), None][1])
    try:
        with interruption.interruptible() as asked:
            assert not asked()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        put(signal.SIGTERM, before)
        put(signal.SIGINT, signal.default_int_handler)


def test_the_echo_of_a_signal_is_not_the_second_one(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """A launcher passes on at once what the terminal sent to everybody; a person presses again a moment later."""
    monkeypatch.setattr(interruption, "ECHO", 60)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with interruption.interruptible() as asked:
        assert not asked()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert asked()
        monkeypatch.setattr(interruption, "ECHO", -1)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
