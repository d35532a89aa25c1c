"""Train every method for a few steps and print a digest of all its weights: run by a test, in processes that differ."""

from __future__ import annotations

import json
import os
import sys
import warnings
from hashlib import blake2b
from pathlib import Path
from typing import Any


def main(plan: Path, output: Path) -> None:
    os.environ["ISOTROPE_FINAL_TABLE"] = "0"
    warnings.simplefilter("ignore")
    import torch
    from safetensors.torch import load_file

    import isotrope

    torch.set_num_threads(1)
    found = {}
    for name, given in json.loads(plan.read_text(encoding="utf-8")).items():
        settings: dict[str, Any] = given["settings"]
        run = isotrope.train(given["method"], given["data"], given["model"], output / name, **settings)
        state = blake2b(digest_size=16)
        for file in sorted(run.folder.rglob("*.safetensors")):  # checkpoints, model/, a classifier
            weights = load_file(file)
            for key in sorted(weights):
                state.update(f"{file.relative_to(run.folder)} {key}".encode() + weights[key].numpy().tobytes())
        found[name] = state.hexdigest()
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
