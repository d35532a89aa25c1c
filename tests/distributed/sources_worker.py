"""Run by torchrun in two processes: a run of several sources by plain gradient descent, then one that is interrupted
and resumed, and the same without the interruption.

torchrun --nproc-per-node 2 sources_worker.py CASE OUTPUT
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch.distributed as distributed
from worker import descend, same_everywhere

import isotrope
from isotrope.methods.frame.combined import Combined
from isotrope.training.loop import make_accelerator
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.step_folder import weights_of


def interrupted(case: dict[str, Any], output: Path) -> None:
    """Ctrl-C reaches both processes in the third update."""
    plain, taken = Combined.after_update, itertools.count(1)

    def stop(self: Combined, representations: Any) -> None:
        plain(self, representations)
        if next(taken) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with patch.object(Combined, "after_update", stop), pytest.raises(KeyboardInterrupt):
        isotrope.train(output=output, **case)
    distributed.barrier()


def main(file: str, output: str) -> None:
    case = json.loads(Path(file).read_text(encoding="utf-8"))
    make_accelerator(LoopSettings())
    assert distributed.get_world_size() == 2
    same_everywhere(descend(case, Path(output, "two")))
    adam = {**case, "learning_rate": 1e-3, "held_out": 20}
    whole = isotrope.train(output=Path(output, "whole"), **adam)
    interrupted(adam, Path(output, "cut"))
    resumed = isotrope.train(output=Path(output, "cut"), resume=True, **adam)
    for run in (whole, resumed):
        same_everywhere(weights_of(run.encoder))
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
