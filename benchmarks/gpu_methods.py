"""Every method's records a second: as it was before, plain, and with compiled layers in CUDA graphs."""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from gpu_runs import Trained, median_step, on_gpu, records, run, say, ways

WAYS = ("before", "plain", "graphs")
SIZE = 128
# An encoder that is there, in place of one that a run of its own would make first.
GIVEN = {"dclr": {"complement": "builtin"}, "rankcse": {"teacher": "builtin"}}
TINY = {"contrastive-tension": 9, "vascl": 17}  # the smallest batch that a method takes; 4 elsewhere


def methods(folder: Path, sentences: Sequence[str], chosen: argparse.Namespace) -> int:
    """A line for each method, from builtin-base; how many failed."""
    from isotrope.encoders.speed import forgetting_graphs
    from isotrope.methods.frame.method_registry import registry

    failed = 0
    for name in part(chosen.only.split(",") if chosen.only else sorted(registry()), chosen.share):
        line: dict[str, Any]
        try:
            with forgetting_graphs():
                line = measured(name, folder, sentences, chosen)
        except Exception as error:  # the others go on
            failed += 1
            line = {"failed": f"{type(error).__name__}: {error}"[:300]}
        say(chosen, task="methods", method=name, **line)
        gc.collect()
        if on_gpu():
            torch.cuda.empty_cache()
    return failed


def part(names: Sequence[str], share: str) -> list[str]:
    """``2/3``: the second of three parts, each of methods from all over the list."""
    number, parts = (int(value) for value in share.split("/"))
    if not 1 <= number <= parts:
        raise SystemExit(f"--share {share}: a part is 1/N to N/N.")
    return list(names[number - 1 :: parts])


def measured(name: str, folder: Path, sentences: Sequence[str], chosen: argparse.Namespace) -> dict[str, Any]:
    """Records a second of each way. When the time of a method is up, the ways that are left are left out."""
    from isotrope.methods.frame.method_registry import find

    found = find(name)
    if reason := left_out(name):
        return {"skipped": reason}
    start = time.perf_counter()
    size, warm, turns, count = (TINY.get(name, 4), 1, 1, 1) if chosen.tiny else (SIZE, 4, 4, 3)
    data, given = records(found.card.needs, sentences, folder), GIVEN.get(name, {})
    trained = Trained(name, data, "builtin-base", folder, batch_size=size, **given)
    built = time.perf_counter()
    rates: dict[str, int] = {}
    try:
        for way, entered in ways(*WAYS).items():
            if time.perf_counter() - built > chosen.limit:
                break
            with entered():
                run(trained.step, warm * (2 if way == "graphs" and not chosen.tiny else 1))
                seconds = median_step(trained.step, turns, count, built + chosen.limit)
            rates[way] = round(size / seconds)
    finally:
        trained.close()
    return {
        "needs": found.card.needs,
        "batch_size": size,
        "records_per_second": rates,
        "gain": round(rates[list(rates)[-1]] / max(rates["before"], 1), 2),
        "built_s": round(built - start, 1),
        "seconds": round(time.perf_counter() - start, 1),
    }


def left_out(name: str) -> str | None:
    """Why a method has no rate here."""
    from isotrope.errors import InputError
    from isotrope.lexicon.wordnet import files_of, wordnet_folder
    from isotrope.methods.frame.from_scratch import FromScratch
    from isotrope.methods.frame.method_registry import find

    if issubclass(find(name), FromScratch):
        return "makes its own table of vectors and trains no transformer"
    if name == "cline":
        try:
            files_of(wordnet_folder())
        except InputError as error:
            return str(error)
    return None


def table(file: Path) -> str:
    """Markdown of the last line of each method in a file of ``--json``."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    last = {line["method"]: line for line in lines if line.get("task") == "methods"}
    rows = ["| method | data | padded | `never` | `always` | gain |", "|---|---|---:|---:|---:|---:|"]
    said = []
    for name, line in sorted(last.items()):
        if "records_per_second" in line:
            rates = line["records_per_second"]
            cells = [f"{rates[way]:,}" if way in rates else "" for way in WAYS]
            rows.append(f"| {name} | {line['needs']} | {' | '.join(cells)} | {line['gain']:.2f} |")
        else:
            said.append(f"- {name}: {line.get('skipped') or 'failed: ' + line['failed']}")
    return "\n".join([*rows, *([""] if said else []), *said])
