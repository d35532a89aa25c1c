"""The tables of docs/notes/comparison.md and docs/notes/ablations.md, printed from what ledger.py measured.

    python recipes/compare/ledger_tables.py OUTPUT…

OUTPUT is ledger.py's; of several, the runs are put together. The ledger is sorted by STS; ablations follow by name.
Arms of one seed share the order of the text, so where seeds differ more than arms do, read the last table: differences
within a seed.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.measures.correlation import spearman
from isotrope.methods.frame.method_registry import registry

Run = Mapping[str, Any]

JUDGED = {"STS": ("sts_average", 2), "transfer": ("transfer_average", 2), "retrieval": ("retrieval_average", 2)}
SHOWN = {
    "STS average": ("sts_average", 2),
    "STS-B": ("sts_b", 2),
    "dev": ("dev_spearman", 2),
    "alignment": ("alignment", 3),
    "uniformity": ("uniformity", 3),
}
PAIRED_BY = {name: SHOWN[name] for name in ("STS average", "dev", "alignment")}
PAIRED = ("dropout_p-01", ("dropout_", "pooling_"))  # SimCSE as published, against the arms of these ablations


def read(files: Sequence[Path]) -> dict[str, list[Run]]:
    """The finished runs of a comparison, by name and then by seed; none where it was not run."""
    found: dict[str, dict[int, Run]] = {}
    for file in files:
        for run in json.loads(file.read_text(encoding="utf-8"))["runs"] if file.is_file() else ():
            found.setdefault(run["name"], {})[run["seed"]] = run
    return {name: [runs[seed] for seed in sorted(runs)] for name, runs in found.items()}


def methods(runs: Mapping[str, Sequence[Run]]) -> None:
    print(f"| method | records | read-out | rate | {' | '.join(JUDGED)} | dev | step kept |\n|{'---|' * 9}")
    for name, of in sorted(runs.items(), key=lambda item: -statistics.mean(_values(item[1], "sts_average"))):
        label = f"`{name}`" + ("" if len(of) == 3 else f" (seeds: {len(of)})")
        of_run = of[0]["data"]["record_type"], registry()[name].card.read_out or "its own"
        rate = f"{of[0]['facts']['settings']['learning_rate']:g}"
        cells = (_cell(_values(of, key), places) for key, places in (*JUDGED.values(), ("dev_spearman", 1)))
        print("|", " | ".join((label, *of_run, rate, *cells, _steps(of))), "|")


def agreement(runs: Mapping[str, Sequence[Run]]) -> None:
    """Does the development set rank the methods as the tests do?"""
    whole = [of for of in runs.values() if len(of) == 3]
    by_dev = _means(whole, "dev_spearman")
    found = (f"{label} {spearman(by_dev, _means(whole, key)):.2f}" for label, (key, _) in JUDGED.items())
    print(f"\nRank correlation of dev with the judges, {len(whole)} methods: {', '.join(found)}")


def arms(runs: Mapping[str, Sequence[Run]]) -> None:
    for ablation in dict.fromkeys(name.partition("_")[0] for name in runs):
        print(f"\n{ablation}\n\n| arm | {' | '.join(SHOWN)} | step kept |\n|{'---|' * (len(SHOWN) + 2)}")
        for name, of in runs.items():
            if name.startswith(f"{ablation}_"):
                cells = (_cell(_values(of, key), places) for key, places in SHOWN.values())
                print(f"| `{name.partition('_')[2]}` | {' | '.join(cells)} | {_steps(of)} |")


def paired(runs: Mapping[str, Sequence[Run]]) -> None:
    """STS of each seed, and what the reference has more than the arm within a seed."""
    reference, ablations = PAIRED
    of_reference = {run["seed"]: run["measures"] for run in runs[reference]}
    print(f"\n{reference} less the arm, seed by seed\n\n| arm | STS of each | {' | '.join(PAIRED_BY)} |")
    print(f"|{'---|' * (len(PAIRED_BY) + 2)}")
    for name in runs:
        both = [run for run in runs[name] if run["seed"] in of_reference]
        if name.startswith(ablations) and name != reference and both:
            cells = [", ".join(f"{value:.2f}" for value in _values(both, "sts_average"))]
            for key, places in PAIRED_BY.values():
                less = [of_reference[run["seed"]][key] - run["measures"][key] for run in both]
                cells.append(f"{', '.join(f'{value:+.{places}f}' for value in less)} ({_cell(less, places)})")
            print(f"| `{name}` | {' | '.join(cells)} |")


def _values(runs: Sequence[Run], key: str) -> list[float]:
    return [run["measures"][key] for run in runs]


def _means(methods: Sequence[Sequence[Run]], key: str) -> npt.NDArray[np.float64]:
    return np.array([statistics.mean(_values(of, key)) for of in methods])


def _steps(runs: Sequence[Run]) -> str:
    return ", ".join(str(run["selected_step"]) for run in runs)


def _cell(values: Sequence[float], places: int) -> str:
    spread = f" ± {statistics.stdev(values):.{places}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{places}f}{spread}"


def main(*outputs: Path) -> None:
    def of(name: str) -> dict[str, list[Run]]:
        return read([output / name / "comparison.json" for output in outputs])

    of_methods = of("methods") | of("methods-documents")
    if of_methods:
        methods(of_methods)
        agreement(of_methods)
    of_arms: dict[str, list[Run]] = {}
    for name in ("pairs", "ablations", "mechanisms"):
        of_arms |= of(name)
    arms(of_arms)
    if PAIRED[0] in of_arms:
        paired(of_arms)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
