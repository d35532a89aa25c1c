"""Many runs over a few processes. A process is started once and does run after run: what it has imported it keeps."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a new process must leave the terminal's group before it imports anything heavy
    from isotrope.comparison.judgement import Outcome
    from isotrope.comparison.terms import Task


def run_all(tasks: Sequence[Task], parallel: int) -> Iterator[Outcome]:
    """The outcome of each task, in the order in which they end. One at a time they run in this process.

    Whatever ends this early, processes that are at work are interrupted as by Ctrl-C: they finish their step and write
    a checkpoint.
    """
    if parallel == 1 or len(tasks) < 2:
        from isotrope.comparison.one_run import attempt

        yield from map(attempt, tasks)
        return
    start = partial(_Worker, max((os.cpu_count() or 1) // parallel, 1))
    waiting = deque(tasks)
    workers = [start() for _ in range(min(parallel, len(tasks)))]
    try:
        while waiting or any(worker.task for worker in workers):
            for number, worker in enumerate(workers):
                if waiting and worker.task is None:
                    workers[number] = worker if worker.process.is_alive() else start()
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


class _Worker:
    def __init__(self, threads: int) -> None:
        context = multiprocessing.get_context("spawn")  # a forked CUDA context cannot be used
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, threads), daemon=True)
        self.process.start()
        theirs.close()
        self.task: Task | None = None

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


def _serve(pipe: Any, threads: int) -> None:
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
