"""The run that a method needs before its own: made once, kept in the cache, found again by every later run.

It is trained in a folder beside the place where it is kept and renamed when it is whole. An interrupted one goes on
where it was.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelerate.utils import broadcast_object_list
from filelock import FileLock

from isotrope.checksums import damage, sums_of
from isotrope.files import cache_folder, digest, discard, explained, write_json
from isotrope.methods.frame.needed_run import NeededRun, NeedsRun
from isotrope.progress import say
from isotrope.training.loop import make_accelerator
from isotrope.training.opening import open_plan
from isotrope.training.plan import Plan, make_plan
from isotrope.training.run_folder import RunFolder
from isotrope.version import __version__

if TYPE_CHECKING:
    from accelerate import Accelerator

SUMS = "sums.json"  # in a kept run: the checksums of its model
UNSEEN = ("logging_steps", "report_to")  # settings that leave the weights as they are


def with_needed_run(plan: Plan, train: Callable[[Plan], Any]) -> Plan:
    """The plan, with the folder of the encoder that its method needs; ``train`` makes it where the cache has none."""
    needed = plan.method.needed_run(plan.settings) if issubclass(plan.method, NeedsRun) else None
    if needed is None:
        return plan
    accelerator = make_accelerator(plan.loop)
    first = plan_needed(plan, needed)
    kept = _place(first, accelerator)
    with _alone(kept, accelerator):
        if _agreed(accelerator.is_main_process and _is_whole(kept, needed.setting), accelerator):
            _say(f"{plan.name} takes the {needed.setting} that is kept in {kept}", accelerator)
        else:
            how = f"{first.name} for {_length(first)}"
            _say(f"{plan.name} needs a {needed.setting}: {how}, kept in {kept}", accelerator)
            _make(first, kept, train, accelerator)
    return replace(plan, made={needed.setting: str(kept / "model")})


def plan_needed(plan: Plan, needed: NeededRun) -> Plan:
    """The plan of the needed run: everything but the method as in the run itself, and no labels to choose by."""
    loop = {**asdict(plan.loop), "report_to": "none", "keep_start": False, "time_limit": None}
    if needed.steps is not None:
        loop |= {"max_steps": needed.steps, "max_seconds": None}
    first = make_plan(
        needed.method,
        plan.data,
        plan.model,
        pooling=plan.pooling,
        columns=plan.columns,
        split=plan.split,
        adapts=False,
        **loop,
    )
    return replace(first, given=plan.given)


def _place(first: Plan, accelerator: Accelerator) -> Path:
    """Where the run is kept: the name holds all that decides its weights."""
    opened = open_plan(first, accelerator)
    settings = {name: value for name, value in first.resolved(first.loop).items() if name not in UNSEEN}
    key = digest(
        __version__,
        opened.encoder.fingerprint(),
        opened.corpus.fingerprint,
        json.dumps([sorted(settings.items()), "batch_size" in first.given, accelerator.num_processes]),
    )
    return cache_folder() / "runs" / f"{first.name}-{key}"


@contextmanager
def _alone(kept: Path, accelerator: Accelerator) -> Iterator[None]:
    """One run at a time makes it; others wait for it. The first process holds the lock for all of its run."""
    if not accelerator.is_main_process:
        yield
        return
    with explained(kept):
        kept.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{kept}.lock")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _make(first: Plan, kept: Path, train: Callable[[Plan], Any], accelerator: Accelerator) -> None:
    begun = RunFolder(kept.with_name(f"{kept.name}.part"))
    resume = _agreed(begun.begun(), accelerator)
    try:
        train(replace(first, folder=begun, resume=resume))
    except KeyboardInterrupt as stop:  # there is nothing to resume yet: the run itself has not begun
        raise KeyboardInterrupt(f"stopped in {first.name}, which comes first; the same call goes on with it") from stop
    if accelerator.is_main_process:
        shutil.rmtree(begun.checkpoints, ignore_errors=True)
        with explained(kept):
            _seal(begun.folder)
            os.replace(begun.folder, kept)
    accelerator.wait_for_everyone()


def _seal(folder: Path) -> None:
    """Checksums of the model, in the folder of its run."""
    files = (file for file in (folder / "model").rglob("*") if file.is_file())
    write_json(folder / SUMS, sums_of(files, folder))


def _is_whole(kept: Path, setting: str) -> bool:
    """Whether the kept run is there as it was written; a damaged one is taken away, and made again."""
    if not kept.is_dir():
        return False
    try:
        wrong = damage(kept, json.loads((kept / SUMS).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        wrong = f"{SUMS} is missing or damaged"
    if wrong is not None:
        say(f"The {setting} that is kept in {kept} is damaged ({wrong}); it is made again")
        discard(kept)
    return wrong is None


def _agreed(seen: bool, accelerator: Accelerator) -> bool:
    """What the first process sees: the others may look at the disk too early or too late."""
    verdict = [seen]
    if accelerator.num_processes > 1:
        broadcast_object_list(verdict)
    return verdict[0]


def _say(sentence: str, accelerator: Accelerator) -> None:
    if accelerator.is_main_process:
        say(sentence)


def _length(plan: Plan) -> str:
    loop = plan.loop
    if loop.max_seconds is not None:
        return f"{loop.max_seconds:g} seconds"
    return f"{loop.max_steps:,} steps" if loop.max_steps else f"{loop.epochs:g} epochs"
