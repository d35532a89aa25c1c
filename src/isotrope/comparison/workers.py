"""Many runs over a few processes. A process is started once and does run after run: what it has imported it keeps."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a new process must leave the terminal's group before it imports anything heavy
    from isotrope.comparison.judgement import Outcome
    from isotrope.comparison.terms import Task

DEVICES = "CUDA_VISIBLE_DEVICES"


def run_all(tasks: Sequence[Task], parallel: int) -> Iterator[Outcome]:
    """The outcome of each task, in the order in which they end. One at a time they run in this process.

    Whatever ends this early, processes that are at work are interrupted as by Ctrl-C: they finish their step and write
    a checkpoint.
    """
    if parallel == 1 or len(tasks) < 2:
        from isotrope.comparison.one_run import attempt

        yield from map(attempt, tasks)
        return
    threads, devices = max((os.cpu_count() or 1) // parallel, 1), visible_devices()
    waiting = deque(tasks)
    workers = [_Worker(threads, environment_of(number, devices)) for number in range(min(parallel, len(tasks)))]
    try:
        while waiting or any(worker.task for worker in workers):
            for number, worker in enumerate(workers):
                if waiting and worker.task is None:
                    workers[number] = worker if worker.process.is_alive() else worker.again()
                    workers[number].give(waiting.popleft())
            ready = connection.wait([worker.pipe for worker in workers if worker.task])
            for worker in workers:
                if worker.task and worker.pipe in ready:
                    yield worker.outcome(worker.task)
    finally:
        for worker in workers:
            worker.interrupt()
        for worker in workers:
            worker.close()


def visible_devices() -> list[str]:
    """The CUDA devices that this process may use, by the names that CUDA_VISIBLE_DEVICES has for them."""
    named = os.environ.get(DEVICES)
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


def environment_of(number: int, devices: Sequence[str]) -> dict[str, str]:
    """What a worker finds in its environment: where there are several devices, one of them, in turn."""
    return {DEVICES: devices[number % len(devices)]} if len(devices) > 1 else {}


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Inside the block a new process inherits these; CUDA reads them once, before any code of ours could set them."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Worker:
    def __init__(self, threads: int, environment: Mapping[str, str]) -> None:
        context = multiprocessing.get_context("spawn")  # a forked CUDA context cannot be used
        self.threads, self.environment = threads, environment
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, threads), daemon=True)
        with _environment(environment):
            self.process.start()
        theirs.close()
        self.task: Task | None = None

    def again(self) -> _Worker:
        """A new process in the place of one that ended, on the same device."""
        return _Worker(self.threads, self.environment)

    def give(self, task: Task) -> None:
        self.task = task
        self.pipe.send(task)

    def outcome(self, task: Task) -> Outcome:
        """Of the task that was given; a process that ended by itself is that task's failure."""
        self.task = None
        try:
            found: Outcome = self.pipe.recv()
        except (EOFError, OSError):
            from isotrope.comparison.judgement import Failure

            self.process.join()
            ended = f"The process of this run ended by itself (code {self.process.exitcode})"
            return Failure(task.label, task.seed, f"{ended}; is there room for so many at once? Lower parallel.")
        return found

    def interrupt(self) -> None:
        if self.task and self.process.pid and self.process.is_alive():
            os.kill(self.process.pid, signal.SIGINT)

    def close(self) -> None:
        self.pipe.close()
        self.process.join()


def _end_with_parent() -> None:
    """Interrupt this process, as by Ctrl-C, when the one that started it is gone, killed included."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    connection.wait([parent.sentinel])
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)  # to this thread it would not wake the one that sleeps or waits
    else:
        os.kill(os.getpid(), signal.SIGINT)


def _serve(pipe: Any, threads: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts what runs in the background deaf to Ctrl-C
        signal.signal(number, signal.default_int_handler)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C reaches the parent alone, which passes it on once: the second one would lose the step
    try:
        while True:
            task = pipe.recv()
            import torch

            from isotrope.comparison.one_run import attempt

            torch.set_num_threads(threads)
            pipe.send(attempt(task))
    except (EOFError, OSError, KeyboardInterrupt):
        return
