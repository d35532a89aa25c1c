"""The public function: plan, judge the start, run what is not there yet, write the table."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isotrope.comparison.comparison_table import FILE, Comparison
from isotrope.comparison.plan import Contestant, Data, Place, Task, Terms, contestants, loop_settings, suites
from isotrope.comparison.run import finished, judge, protocol
from isotrope.comparison.workers import run_all
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.files import file_digest
from isotrope.methods.frame.method_registry import find
from isotrope.methods.frame.settings import resolve
from isotrope.progress import bar, hidden
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.plan import Files
from isotrope.version import __version__

SHOWN = ("max_steps", "batch_size", "learning_rate", "max_length")  # under every table, also where they were not given


def compare(
    data: Data,
    methods: str | Sequence[str],
    output: Place | None = None,
    *,
    model: Place = "builtin-base",
    pooling: str | None = None,
    seeds: int = 3,
    eval_data: Files | None = None,
    data_dir: Place | None = None,
    aggregation: str = "all",
    suite: str | Sequence[str] | None = None,
    parallel: int = 1,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    **settings: Any,
) -> Comparison:
    """Train each method with each seed from one start, for as many steps, chosen alike; judge every encoder alike.

    ``data``: a file, or several of different kinds, of which each method takes the first that it can use (a mapping
    from kind to file says which is which). ``suite``: sts, transfer, label-free or own (each method's own task), or
    several; by default STS where there are benchmarks. ``methods``: names, or LABEL=NAME for a method that stands
    twice. ``own``: by label, settings of one method; ``settings`` are the loop's, for all. ``data_dir`` (or
    ISOTROPE_DATA) brings the STS tasks; without it the score is label-free. The same call goes on where an earlier one
    with the same ``output`` was stopped: a finished run is not made again.
    """
    if seeds < 1 or parallel < 1:
        raise InputError(f"seeds and parallel must be at least 1; {seeds} and {parallel} were given.")
    names = methods.split(",") if isinstance(methods, str) else methods
    common = loop_settings(settings, names)
    entered = contestants(names, data, own or {}, common)
    folder = _folder(output)
    files = [str(file) for file in ([eval_data] if isinstance(eval_data, str | os.PathLike) else eval_data or ())]
    place = data_dir or os.environ.get("ISOTROPE_DATA")
    encoder = load(model, pooling)
    terms = Terms(
        model=str(model),
        pooling=pooling,
        fingerprint=encoder.fingerprint(),
        settings=common,
        eval_data=tuple(files),
        eval_content=tuple(file_digest(file) for file in files),
        data_dir=str(place) if place else None,
        aggregation=aggregation,
        suites=suites(suite, str(place) if place else None),
    )
    first = int(float(common.get("seed", LoopSettings.seed)))
    chosen = range(first, first + seeds)
    tasks = [Task(one, seed, terms, folder / f"{one.label}-seed-{seed}") for one in entered for seed in chosen]
    kept = {task.name: earlier for task in tasks if (earlier := finished(task)) is not None}
    facts = _facts(terms, entered, list(chosen), str(encoder.device), parallel)
    start = _start(encoder, terms, folder)
    del encoder  # its memory is for the runs
    found = Comparison(facts, [one.label for one in entered], start, list(kept.values()), [], folder)
    found.write()
    left = [task for task in tasks if task.name not in kept]
    try:
        with bar("comparing", len(tasks), start=len(kept)) as advance:
            for task, outcome in run_all(left, parallel):
                if "failure" in outcome:
                    found.failures.append(
                        {"name": task.contestant.label, "seed": task.seed, "sentence": outcome["failure"]}
                    )
                else:
                    found.runs.append(outcome)
                found.write()
                advance(1, note=f"{task.contestant.label}, seed {task.seed}")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; the same command with --output {folder} goes on from here") from None
    return found


def _facts(terms: Terms, entered: Sequence[Contestant], seeds: list[int], device: str, parallel: int) -> dict[str, Any]:
    """For the reader of the table: all that was the same, and what one method had of its own."""
    (loop,) = resolve(terms.settings, LoopSettings)
    return {
        "model": terms.model if terms.pooling is None else f"{terms.model} ({terms.pooling} pooling)",
        "fingerprint": terms.fingerprint,
        "settings": {name: getattr(loop, name) for name in dict.fromkeys([*SHOWN, *terms.settings]) if name != "seed"},
        "seeds": seeds,
        "eval_data": list(terms.eval_data),
        "protocol": protocol(terms),
        "last": [one.label for one in entered if find(one.method).keeps == "last"],
        "own": {
            one.label: own
            for one in entered
            if (own := _own(one, terms.settings))["settings"] or one.label != one.method
        },
        "version": __version__,
        "machine": {"platform": platform.platform(), "device": device, "parallel": parallel},
    }


def _own(one: Contestant, common: Mapping[str, Any]) -> dict[str, Any]:
    """What a method has of its own:

    its own start, its own defaults of the loop where nothing was said, and what was given for it.
    """
    method = find(one.method)
    anew = {"from": "nothing"} if method.starts_anew else {}
    loop = {name: value for name, value in method.loop.items() if name not in common}
    return {
        "method": one.method,
        "settings": {**anew, **({"pooling": one.pooling} if one.pooling is not None else {}), **loop, **one.settings},
    }


def _start(encoder: Encoder, terms: Terms, folder: Path) -> dict[str, float]:
    """What the start itself scores; without labels the runs tell, each on its own held-out texts."""
    if not {"sts", "transfer"} & set(terms.judges):
        return {}
    if (folder / FILE).is_file():
        earlier = Comparison.read(folder / FILE)
        if earlier.start and (earlier.terms["fingerprint"], earlier.terms["protocol"]) == (
            terms.fingerprint,
            protocol(terms),
        ):
            return earlier.start
    with hidden():
        return judge(encoder, terms, {})


def _folder(output: Place | None) -> Path:
    folder = Path(output) if output is not None else Path("runs") / f"compare-{time.strftime('%Y%m%d-%H%M%S')}"
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: a file stands where the comparison's folder should be; choose another --output.")
    holds = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    if holds and FILE not in holds:
        raise InputError(
            f"{folder}: the folder holds something else ({min(holds)}); choose a new folder for the comparison."
        )
    return folder
