"""SG-OPT against flow and whitening under a shift of domain, and what each costs: the SG paper's two comparisons.

Each approach sees the text of one domain, without labels, and is judged on the STS seven: ``sg-opt`` trains the [CLS]
of the start on it; ``flow`` and ``whitening`` are fitted to the start's first_last vectors of it. Domains are the
sentences of NLI files, those of STS-B (all parts, as in the paper: transductive) and any text given as NAME=FILE. Rows
of several seeds are means ± standard deviation. Then the seconds of training or fitting, and of encoding 2,758
sentences: the ratio to the plain start in one process, the median over turns.

python benchmarks/guided_shift.py --data-dir DATA --nli DATA/nli/triples.tsv.gz [--text NAME=FILE …] [--lines 17256]
[--model builtin-base] [--seeds 3] [--max-steps N] [--eval-data FILE] [--turns 7] [--setting learning_rate=1e-4 …]
[--domain STS-B …] [--approach sg-opt …] [--first-seed 0] [--keep RUNS.jsonl]

``--keep`` writes every run to a file. A repeated call makes those that are missing, and times the encoders that it made
itself; ``--domain``, ``--approach`` and ``--first-seed`` share the runs out among several processes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from flow_texts import Found, chosen_tasks, head, nli_sentences, show
from kept_runs import KeptRuns
from workbench import Contest

import isotrope
from isotrope.data.sentence_files import sentences_of
from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.scored_pairs import ScoredPairs
from spaces import Vectors, scores, target_texts

PAPER = {"batch_size": 16, "learning_rate": 5e-5, "epochs": 1.0, "max_length": 128, "warmup_ratio": 0.1}
APPROACHES = ("whitening", "flow", "sg-opt")
START = {"cls": "start, [CLS]", "first_last": "start, first_last"}


def judged(encoder: Encoder, tasks: dict[str, ScoredPairs]) -> Found:
    vectors = Vectors(encoder, {text for pairs in tasks.values() for text in pairs.texts})
    return scores(tasks, vectors, dict.fromkeys(tasks))


def trained(texts: list[str], options: argparse.Namespace, seed: int) -> Encoder:
    """SG-OPT with the paper's settings, and those given by hand."""
    settings: dict[str, Any] = {**PAPER, **dict(setting.split("=", 1) for setting in options.setting)}
    if options.max_steps:
        settings["max_steps"] = options.max_steps
    with tempfile.TemporaryDirectory() as folder:
        run = isotrope.train(
            "sg-opt",
            texts,
            options.model,
            Path(folder) / "run",
            pooling="cls",
            eval_data=options.eval_data,
            seed=seed,
            final_table=False,
            **settings,
        )
        return run.encoder


def timed(make: Any) -> tuple[Encoder, float]:
    begin = time.perf_counter()
    encoder: Encoder = make()
    return encoder, time.perf_counter() - begin


def domains(options: argparse.Namespace) -> dict[str, list[str]]:
    """By name, as many different sentences of each as ``--lines`` says; of ``--domain`` alone where it is given."""
    found = {"NLI": nli_sentences(options.nli, options.lines)}
    found["STS-B"] = list(dict.fromkeys(target_texts(options.data_dir / "sts")["STS-B"]))
    for given in options.text:
        name, _, path = given.partition("=")
        found[name] = list(dict.fromkeys(sentences_of(path)))
    for name in options.domain:
        if name not in found:
            sys.exit(f"--domain {name}: there are {', '.join(found)}")
    return {name: texts[: options.lines] for name, texts in found.items() if name in (options.domain or found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--nli", type=Path, action="append", required=True)
    parser.add_argument("--text", action="append", default=[], help="NAME=FILE: one more domain.")
    parser.add_argument("--lines", type=int, default=17_256, help="Sentences of a domain; STS-B has that many.")
    parser.add_argument("--model", default="builtin-base")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--max-steps", type=int)
    parser.add_argument("--eval-data", type=Path, help="Scored pairs that choose the checkpoint; default: label-free.")
    parser.add_argument("--setting", action="append", default=[], help="NAME=VALUE of sg-opt or the loop.")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--domain", action="append", default=[], help="Only this; may be repeated.")
    parser.add_argument("--approach", action="append", choices=APPROACHES, help="Only this; may be repeated.")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="A file of runs: those it has are not made again.")
    parser.add_argument("--tasks", default="", help="Names joined by commas; default: all seven.")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    tasks = chosen_tasks(options.data_dir, options.tasks)
    texts = domains(options)
    print(f"model {options.model}, { ({name: len(found) for name, found in texts.items()}) }, {options.seeds} seeds")
    head("approach", tasks)
    starts = {pooling: isotrope.load(options.model, pooling=pooling) for pooling in START}
    if not options.approach:
        for pooling, label in START.items():
            show(label, "–", [judged(starts[pooling], tasks)])
    keeper = KeptRuns(options.keep)
    terms = {"model": options.model, "lines": options.lines, "max_steps": options.max_steps, "tasks": options.tasks}
    seconds: dict[str, list[float]] = {}
    kept: dict[str, Encoder] = {"plain": starts["first_last"]}
    for name, found in texts.items():
        for approach in options.approach or APPROACHES:
            runs = []
            seeds = range(options.first_seed, options.first_seed + options.seeds)
            for seed in [0] if approach == "whitening" else seeds:

                def made(found=found, approach=approach, seed=seed) -> dict[str, Any]:
                    if approach == "sg-opt":
                        encoder, spent = timed(lambda: trained(found, options, seed))
                    else:
                        given = {"seed": seed} if approach == "flow" else {}
                        encoder, spent = timed(
                            lambda: isotrope.fit_space(approach, starts["first_last"], found, **given)
                        )
                    kept[approach] = encoder
                    return {"scores": judged(encoder, tasks), "seconds": spent}

                run = {**terms, "setting": options.setting, "domain": name, "approach": approach, "seed": seed}
                result = keeper.get(run, made)
                runs.append(result["scores"])
                seconds.setdefault(approach, []).append(result["seconds"])
            show(approach, name, runs)
    if len(kept) > 1 and options.turns:
        costs(kept, seconds, next(iter(tasks.values())).texts[:2758], options.turns)


def costs(kept: dict[str, Encoder], seconds: dict[str, list[float]], texts: list[str], turns: int) -> None:
    """Encoders are timed in turn, so that what else the machine does falls on all alike."""
    result = Contest({name: lambda encoder=encoder: encoder.encode(texts) for name, encoder in kept.items()}).run(turns)
    print(f"\nencoding {len(texts):,} sentences, {turns} turns; training or fitting, median of the runs")
    print("| approach | train or fit, s | encode, s | ratio to plain |")
    print("|---|---|---|---|")
    plain = result.seconds["plain"]
    for name, times in result.seconds.items():
        ratio = statistics.median(mine / theirs for mine, theirs in zip(times, plain, strict=True))
        spent = f"{statistics.median(seconds[name]):.1f}" if name in seconds else "–"
        print(f"| {name} | {spent} | {statistics.median(times):.3f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
