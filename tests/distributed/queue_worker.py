"""Run by torchrun in two processes: do both push the keys of both, so that their queues stay equal?

torchrun --nproc-per-node 2 queue_worker.py MODEL SENTENCES OUTPUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as distributed

import isotrope
from isotrope.methods.moco import MoCo


def main(folder: str, sentences: str, output: str, settings: str) -> None:
    seen: list[MoCo] = []
    push = MoCo.after_step

    def noting(self: MoCo, representations: dict[str, Any]) -> None:
        push(self, representations)
        seen.append(self)

    MoCo.after_step = noting  # type: ignore[method-assign]
    isotrope.train("moco", sentences, model=folder, output=output, **json.loads(settings))
    mine = torch.cat([seen[-1].queue.flatten(), seen[-1].place.float().flatten()])
    theirs = [torch.empty_like(mine) for _ in range(2)]
    distributed.all_gather(theirs, mine)
    assert torch.equal(theirs[0], theirs[1])
    if distributed.get_rank() == 0:
        Path(output, "agreed").touch()
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
