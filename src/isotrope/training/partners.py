"""Processes that train together: alike at the start, and none of them alone at the end.

before the first file is written   every process has the same data, model, settings and versions as the first, or all
                                   refuse
the launcher is gone               each process stops as by SIGTERM; one that does not is ended half a minute later
another process is gone            one sentence, and the last checkpoint is there to resume from
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch.distributed as distributed

from isotrope.errors import InputError
from isotrope.files import digest

if TYPE_CHECKING:
    from accelerate import Accelerator

ALIKE = ("method", "data", "model", "mixture", "settings", "eval_content", "versions")  # parts of run.json
LOOK = 1.0  # seconds between two looks at the parent
GRACE = 30.0  # seconds to save and stop
LOST = re.compile(r"gloo|nccl|process group|connection (was )?(closed|reset|refused)|socket|broken pipe", re.IGNORECASE)
_watching = threading.Lock()


def check_alike(facts: dict[str, Any], accelerator: Accelerator) -> None:
    """Refuse, in every process, where one differs from the first in what decides the weights."""
    if accelerator.num_processes == 1:
        return
    mine = {name: _short(facts[name]) for name in ALIKE if name in facts}
    mine["python"] = facts.get("machine", {}).get("python", "")
    everybody: list[dict[str, str]] = [{} for _ in range(accelerator.num_processes)]
    distributed.all_gather_object(everybody, mine)
    first = everybody[0]
    for number, other in enumerate(everybody):
        differing = [name for name in {**first, **other} if first.get(name) != other.get(name)]
        if differing:
            what = differing[0]
            raise InputError(
                f"Process {number} differs from process 0 in its {' and '.join(differing)} "
                f"({other.get(what)} instead of {first.get(what)}); start all processes with the same command, the "
                "same files and the same versions."
            )


def _short(value: Any) -> str:
    """As it is where a person can read it, else its digest."""
    said = json.dumps(value, sort_keys=True, default=str)
    return said if len(said) <= 160 else f"digest {digest(said)[:8]}"


@contextmanager
def together(accelerator: Accelerator) -> Iterator[None]:
    """Inside the block a process ends with its launcher, and says so where another process is lost."""
    if accelerator.num_processes == 1:
        yield
        return
    end_with_launcher()
    try:
        yield
    except (RuntimeError, KeyboardInterrupt) as error:  # the launcher's SIGTERM may come while the error is on its way
        if not _is_loss(error):
            raise
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends already, and must say why
        raise InputError(
            "Another process of this run has ended, or cannot be reached any more; look at its own output. The last "
            "checkpoint is whole: start all processes again with resume."
        ) from error


def _is_loss(error: BaseException | None) -> bool:
    """Whether an error, or one that it came up in, is that of a connection to another process."""
    while error is not None:
        if isinstance(error, distributed.DistError) or (isinstance(error, RuntimeError) and LOST.search(str(error))):
            return True
        error = error.__cause__ or error.__context__
    return False


def end_with_launcher() -> None:
    """Watch the process that started this one, once."""
    if _watching.acquire(blocking=False):
        threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK)
    print("isotrope: the launcher of this process is gone; it saves, and stops.", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)
