"""Seconds and peak memory of the geometry of many vectors: 100,000 of 384 dimensions by default.

    python benchmarks/geometry.py [--vectors 100000] [--dimension 384] [--threads 2] [--exact] [--json]

Random vectors in a cone, in a process of its own. Times are printed, never asserted. The peak is the whole process's,
the vectors and torch included. --exact takes uniformity over all pairs as well, to show what the limit on pairs costs.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--vectors", type=int, default=100_000)
    options.add_argument("--dimension", type=int, default=384)
    options.add_argument("--threads", type=int, default=2, help="of torch")
    options.add_argument("--exact", action="store_true", help="uniformity over all pairs too")
    options.add_argument("--json", action="store_true", help="for machines")
    chosen = options.parse_args()

    import torch

    from isotrope.evaluation.geometry import uniformity
    from isotrope.evaluation.geometry_description import describe_vectors

    torch.set_num_threads(chosen.threads)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((chosen.vectors, chosen.dimension), dtype=np.float32)
    vectors *= np.linspace(2, 0.1, chosen.dimension, dtype=np.float32)
    vectors[:, 0] += 20  # the cone
    before = _peak()
    start, busy = time.perf_counter(), time.process_time()
    found = describe_vectors(vectors)
    facts = {
        "vectors": chosen.vectors,
        "dimension": chosen.dimension,
        "threads": chosen.threads,
        "seconds": round(time.perf_counter() - start, 1),
        "processor seconds": round(time.process_time() - busy, 1),
        "peak MB before": before,
        "peak MB": _peak(),
        "uniformity": found.uniformity,
    }
    if chosen.exact:
        start = time.perf_counter()
        facts["uniformity over all pairs"] = uniformity(vectors)
        facts["seconds over all pairs"] = round(time.perf_counter() - start, 1)
    print(json.dumps(facts) if chosen.json else "\n".join(f"{name:28} {value}" for name, value in facts.items()))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
