"""Run the probes and print their table: python tests/probes/run_probes.py [--every N] [--group G] [--markdown FILE].

The tests run a sample (ISOTROPE_PROBES, 60 by default); here it is all of them, some minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from probe_runner import BAD, GOOD, Outcome, Probe, run_probe  # noqa: E402
from probe_table import all_probes  # noqa: E402
from probe_world import make_world  # noqa: E402


def run_all(probes: Sequence[Probe], folder: Path, show: bool = False) -> list[Outcome]:
    """The outcomes of some probes, in order."""
    world = make_world(folder / "world")
    found = []
    for number, probe in enumerate(probes, 1):
        found.append(run_probe(probe, world, folder / f"probe-{number}"))
        if show and found[-1].verdict in BAD:
            print(f"{found[-1].verdict}: {probe}\n    {found[-1].told.strip()[-400:]!r}", flush=True)
        if show and number % 100 == 0:
            print(f"… {number} of {len(probes)}", file=sys.stderr, flush=True)
    return found


def table_of(outcomes: Sequence[Outcome]) -> str:
    """A row a group, a column a verdict, as Markdown."""
    groups = Counter((_family(outcome.probe.group), outcome.verdict) for outcome in outcomes)
    names = list(dict.fromkeys(_family(outcome.probe.group) for outcome in outcomes))
    columns = (*GOOD, *BAD)
    rows = [[name, *(groups[name, verdict] for verdict in columns)] for name in names]
    rows.append(["all", *(sum(row[place] for row in rows) for place in range(1, len(columns) + 1))])  # type: ignore[misc]
    lines = [
        f"| probes of | number | {' | '.join(columns)} |",
        f"|---|{'---:|' * (len(columns) + 1)}",
        *(f"| {name} | {sum(counts)} | {' | '.join(map(str, counts))} |" for name, *counts in rows),
    ]
    return "\n".join(lines)


def _family(group: str) -> str:
    return "settings" if group.startswith("settings of") else "options" if group.startswith("options of") else group


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take one probe of so many")
    parser.add_argument("--group", default="", help="only groups whose name has this pattern")
    parser.add_argument("--markdown", type=Path, help="write the table to this file as well")
    asked = parser.parse_args()
    probes = [probe for probe in all_probes() if re.search(asked.group, probe.group)][:: asked.every]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run_all(probes, Path(folder), show=True)
    table = table_of(outcomes)
    print(f"\n{table}\n\n{len(probes):,} probes in {time.perf_counter() - start:,.0f} s")
    if asked.markdown is not None:
        asked.markdown.write_text(table + "\n", encoding="utf-8")
    return int(any(outcome.verdict in BAD for outcome in outcomes))


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    sys.exit(main())
