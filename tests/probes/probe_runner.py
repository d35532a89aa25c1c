"""One probe: a command that is given something odd, run in this process, and what became of it.

refused     one sentence and exit code 2, and every file as it was
answered    exit code 0
traceback   anything else that was raised
hang        no end within the limit
left-over   refused, but a file appeared or changed; or a temporary file stayed
silent      answered although it had to be refused, or without the words that had to be said
unclear     refused without one sentence, or with another one than belongs here
"""

from __future__ import annotations

import io
import os
import re
import resource
import shutil
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

import typer.main

from isotrope.cli import main

SECONDS = 60.0  # a probe takes well under one
MEMORY = 24 << 30  # bytes of addresses beyond those that the process has
GOOD = ("refused", "answered")
BAD = ("traceback", "hang", "left-over", "silent", "unclear")
Make = Callable[[Path], None]
BUILT = cache(typer.main.get_command)  # typer builds all commands at each call, ten times the cost of a refusal


@dataclass(frozen=True)
class Probe:
    """``words`` may hold {world}, the folder of good files. ``make`` prepares the folder that the command runs in.

    ``expects``: refused, answered, or either. ``says``: a pattern that standard error, or the answer, must hold.
    """

    group: str
    name: str
    words: tuple[str, ...]
    make: Make | None = None
    expects: str = "refused"
    says: str = ""

    def __str__(self) -> str:
        return f"{self.group}: {self.name}"


@dataclass(frozen=True)
class Outcome:
    """What became of a probe; ``told`` is the end of what the command said."""

    probe: Probe
    verdict: str
    told: str


class _TooLongError(BaseException):
    """The alarm: no ``except Exception`` of a command catches it."""


def run_probe(probe: Probe, world: Path, folder: Path) -> Outcome:
    """Run in ``folder``, which is made for the probe and removed again."""
    folder.mkdir(parents=True)
    before_cwd = Path.cwd()
    os.chdir(folder)
    try:
        if probe.make is not None:
            probe.make(folder)
        before = _files(folder)
        code, out, err, raised = _called([word.replace("{world}", str(world)) for word in probe.words])
        return Outcome(probe, _verdict(probe, code, out, err, raised, before, _files(folder)), (raised or err)[-600:])
    finally:
        os.chdir(before_cwd)
        shutil.rmtree(folder, ignore_errors=True)


def _called(words: list[str]) -> tuple[int | None, str, str, str]:
    """Exit code, standard output, standard error, and a traceback where there was one."""
    streams = [  # as Python opens its own
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)
        for errors in ("strict", "backslashreplace")
    ]
    code, raised = None, ""
    with (
        redirect_stdout(streams[0]),
        redirect_stderr(streams[1]),
        warnings.catch_warnings(),
        patch.object(typer.main, "get_command", BUILT),
        _limits(),
    ):
        warnings.simplefilter("always")
        try:
            main(words)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except _TooLongError:
            raised = "hang: " + "".join(traceback.format_stack()[-3:])
        except BaseException:
            raised = traceback.format_exc()
    out, err = (stream.buffer.getvalue().decode("utf-8", "replace") for stream in streams)  # type: ignore[attr-defined]
    return code, out, err, raised


@contextmanager
def _limits() -> Iterator[None]:
    """Time and memory of one probe."""

    def stop(*_: object) -> None:
        raise _TooLongError

    earlier, limits = signal.signal(signal.SIGALRM, stop), resource.getrlimit(resource.RLIMIT_AS)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (_addresses() + MEMORY, limits[1]))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _addresses() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()


def _files(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, by name; pipes and folders without content."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in folder.rglob("*")
    }


def _verdict(
    probe: Probe,
    code: int | None,
    out: str,
    err: str,
    raised: str,
    before: dict[str, bytes | None],
    after: dict[str, bytes | None],
) -> str:
    if raised or code is None:
        return "hang" if raised.startswith("hang") else "traceback"
    told = bool(re.search(probe.says, out + err))
    temporary = [name for name in after.keys() - before.keys() if Path(name).name.startswith(".")]
    if code == 2:
        sentences = [line for line in err.splitlines() if line.startswith("isotrope: ")]
        if before != after:
            return "left-over"
        return "refused" if len(sentences) == 1 and probe.expects != "answered" and told else "unclear"
    if temporary:
        return "left-over"
    return "silent" if probe.expects == "refused" or not told else "answered"
