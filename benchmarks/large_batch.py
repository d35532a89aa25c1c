"""Memory and time of the contrastive loss with its gradient, tile by tile and plain, up to 65,536 candidates.

    python benchmarks/large_batch.py [--candidates 4096,65536] [--anchors 65536] [--width 384]

Memory is what the resident set rises by at its highest, above the vectors themselves. The plain form is measured where
its scores take less than 2 GB, and both must agree there.
"""

from __future__ import annotations

import argparse
import time

import torch
from workbench import resident_growth

from isotrope.objectives import chunked, contrast, info_nce
from isotrope.objectives.vectors import unit

PLAIN_LIMIT = 2_000_000_000 // 4  # scores


def plain(anchors: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
    targets = torch.arange(len(anchors))
    return contrast(unit(anchors) @ unit(candidates).T / 0.05, targets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", default="4096,8192,16384,32768,65536")
    parser.add_argument("--anchors", type=int, default=4096, help="at most; never more than candidates")
    parser.add_argument("--width", type=int, default=384)
    given = parser.parse_args()
    chunked.PLAIN = 0  # tiles for every size
    print("| anchors × candidates | tiles: MB | processor seconds | plain: MB | processor seconds | difference |")
    print("|---|---:|---:|---:|---:|---:|")
    for count in map(int, given.candidates.split(",")):
        rows = min(given.anchors, count)
        anchors, candidates = torch.randn(rows, given.width), torch.randn(count, given.width)
        cells, gradients = [], []
        for loss in (info_nce, plain):
            if loss is plain and rows * count > PLAIN_LIMIT:
                cells += [f"{rows * count * 4 / 1e6:,.0f} a copy", "not run"]
                continue
            pair = [tensor.clone().requires_grad_() for tensor in (anchors, candidates)]
            begun = time.process_time()
            peak = resident_growth(lambda loss=loss, pair=pair: loss(*pair).backward())
            cells += [f"{peak / 1e6:,.0f}", f"{time.process_time() - begun:.1f}"]
            gradients.append(pair[1].grad)
        apart = float((gradients[0] - gradients[1]).abs().max() / gradients[1].abs().max()) if gradients[1:] else None
        cells.append("" if apart is None else f"{apart:.1e}")
        print(f"| {rows:,} × {count:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
