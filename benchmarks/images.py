"""SimCLR, MoCo, memory bank, SupCon and supervised training on a CIFAR-10 subset: one command, JSON lines, tables.

    python benchmarks/images.py run --data DIR --output DIR --seconds 600 --seeds 3 --parallel 3   the main table
    python benchmarks/images.py run … --only simclr,moco        some of it
    python benchmarks/images.py run … --epochs 20 --long simclr=200    by epochs, not by the clock; one long run more
    python benchmarks/images.py ablate …                        temperature, batch, crop × colour, queue, momentum
    python benchmarks/images.py robust …                        SupCon against cross-entropy: corrupted, calibration
    python benchmarks/images.py speed …                         images/s, and the share of augmentation
    python benchmarks/images.py neighbours …                    a picture: nearest neighbours before and after
    python benchmarks/images.py tables --output DIR             Markdown tables of everything measured so far
    python benchmarks/images.py commands                        what is worth a GPU, one command each, with its seconds
    python benchmarks/images.py all …                           run, ablate, robust, speed, neighbours, tables

DIR of the data holds cifar10_train_subset.npz and cifar10_test.npz. Every run is a process of its own, ``--parallel``
at once; each appends lines to OUTPUT/results.jsonl when it ends, and a repeated call makes only those that are missing:
a run that was stopped goes on from its last evaluation. ``--tiny`` is a rehearsal on a CPU: a few hundred images,
seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

TRAIN, TEST = "cifar10_train_subset.npz", "cifar10_test.npz"
RANDOM = "random"
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "simclr": ("simclr", {}),
    "moco-v2": ("moco", {}),
    "moco-v1": ("moco", {"head_layers": 1, "temperature": 0.07, "augmentations": "moco-v1"}),
    "memory-bank": ("moco", {"mechanism": "memory-bank", "queue": 4096}),
    "end-to-end": ("moco", {"mechanism": "end-to-end"}),
    "supcon": ("supcon", {}),
    # As in SupCon's code: 0.8 for 1,024 images, one view of each, no colours
    "supervised": (
        "supcon",
        {
            "cross_entropy_weight": 1.0,
            "projection": 0,
            "number_of_views": 1,
            "augmentations": "crop-flip",
            "learning_rate": 0.4,
        },
    ),
    # lightly's for CIFAR-10, 0.06 · batch / 128; with and without the released code's head
    "simclr-sgd": ("simclr", {"optimiser": "sgd", "learning_rate": 0.24, "weight_decay": 5e-4}),
    "simclr-norm": ("simclr", {"head_norm": True}),
    "simclr-sgd-norm": (
        "simclr",
        {"optimiser": "sgd", "learning_rate": 0.24, "weight_decay": 5e-4, "head_norm": True},
    ),
    "moco-v2-fast": ("moco", {"learning_rate": 0.24}),
    # SimCLR's optimiser and its rate, batch_size / 256, in place of SGD
    "moco-v2-lars": ("moco", {"optimiser": "lars", "learning_rate": 1.0, "weight_decay": 1e-4, "batch_size": 256}),
}
MAIN = ("simclr", "moco-v2", "memory-bank", "supcon", "supervised")
ROBUST = ("supcon", "supervised", "simclr", "moco-v2")
PAIRS = {"simclr": 36_500, "moco-v2": 27_000, "memory-bank": 50_000, "supcon": 36_500, "supervised": 70_000}  # a second
AROUND = 55  # seconds of a run before and behind its updates: start, compiler, linear suite
SHARES = ("0.125", "0.25", "0.5")  # of the seconds: accuracy against epochs, each point a whole run
# The paper's figure 5: every pair of augmentations; here the two that matter, alone and together
VIEWS = {
    "crop": "crop:0.08:1,flip",
    "colour": "flip,jitter:0.4:0.4:0.4:0.1:0.8,gray:0.2",
    "crop+colour": "crop:0.08:1,flip,jitter:0.4:0.4:0.4:0.1:0.8,gray:0.2",
    "crop+gray": "crop:0.08:1,flip,gray:0.2",
    "colour+colour x2": "flip,jitter:0.8:0.8:0.8:0.2:0.8,gray:0.2",
    "crop+colour x2": "crop:0.08:1,flip,jitter:0.8:0.8:0.8:0.2:0.8,gray:0.2",
}
ABLATIONS: dict[str, tuple[str, list[tuple[str, dict[str, Any]]]]] = {
    "temperature": ("simclr", [(str(t), {"temperature": t}) for t in (0.05, 0.1, 0.2, 0.5, 1.0)]),
    "views": ("simclr", [(name, {"augmentations": steps}) for name, steps in VIEWS.items()]),
    "queue": ("moco-v2", [(str(k), {"queue": k}) for k in (1024, 4096, 16_384, 65_536)]),
    "momentum": ("moco-v2", [(str(m), {"momentum": m}) for m in (0.0, 0.9, 0.99, 0.999, 0.9999)]),
    "batch": (
        "simclr",
        [(str(b), {"batch_size": b, "learning_rate": b / 256}) for b in (64, 128, 256, 512, 1024)],
    ),
    "norm groups": ("moco-v2", [(str(g), {"norm_groups": g}) for g in (1, 8)]),
}
PUBLISHED = {
    "temperature": "ResNet-50, ImageNet, linear: 0.05 59.7 · 0.1 64.4 · 0.5 60.7 · 1 58.0 (SimCLR, table 5)",
    "queue": "ResNet-50, ImageNet: rises with K up to 65,536 (MoCo, figure 3); CIFAR-10: 65,536 keys ≈ 73, "
    "4,096 keys ≈ 82.6 k-NN",
    "momentum": "ResNet-50, ImageNet, K 4,096: 0 fails · 0.9 55.2 · 0.99 57.8 · 0.999 59.0 · 0.9999 58.9 (MoCo)",
    "batch": "ResNet-50, ImageNet, 100 epochs: rises from 256 to 8,192 (SimCLR, figure 9)",
    "views": "ResNet-50, ImageNet: crop alone 33.1 · colour alone 18.8 · crop + colour 56.3 (SimCLR, figure 5)",
    "norm groups": "CIFAR-10, 800 epochs: without shuffled batch norm 4 points less (MoCo's notebook)",
    "main": "CIFAR-10 with all data: SimCLR ≈ 91 (ResNet-18, 1,000 epochs), MoCo v2 90.7 (ResNet-18, 800 epochs, "
    "symmetric), SupCon 96.0 and cross-entropy 95.0 (ResNet-50)",
}


def main() -> None:
    options = parsed()
    options.output.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("ISOTROPE_CACHE", str(options.output / "cache"))
    os.environ["ISOTROPE_FINAL_TABLE"] = "0"
    if options.command == "commands":
        commands(options)
        return
    if options.command == "one":
        one_run(options)
        return
    everything(options, chosen_jobs(options))
    if options.command in ("robust", "all"):
        robust(options)
    if options.command in ("speed", "all"):
        speed(options)
    if options.command in ("neighbours", "all"):
        neighbours(options)
    if options.command in ("tables", "all"):
        tables(options)


def chosen_jobs(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The long runs first: what is short fills the places next to them."""
    jobs: list[dict[str, Any]] = []
    if options.command in ("run", "all"):
        names = (
            (RANDOM, *MAIN) if not options.only else tuple(name for name in options.only.split(",") if name != "none")
        )
        for name, _, epochs in (pair.partition("=") for pair in options.long.split(",") if pair):
            jobs.append({**job("long", name, "", {}, 0), "epochs": float(epochs)})
        jobs += [job("main", name, "", {}, seed) for seed in range(options.seeds) for name in names]
        shares = SHARES if not options.epochs else ("0.5",)
        jobs += [job("epochs", name, share, {}, 0) for share in shares for name in names if name != RANDOM]
    if options.command in ("ablate", "all"):
        chosen = ABLATIONS if not options.only or options.command == "all" else options.only.split(",")
        length = {"epochs": options.ablation_epochs} if options.ablation_epochs else {}
        jobs += [
            {**job(name, ABLATIONS[name][0], value, more, 0), **length}
            for name in chosen
            for value, more in ABLATIONS[name][1]
        ]
    return jobs


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = ("run", "ablate", "robust", "speed", "neighbours", "tables", "all", "commands", "one")
    parser.add_argument("command", choices=verbs)
    parser.add_argument("--data", type=Path, default=Path("data/images"))
    parser.add_argument("--output", type=Path, default=Path("runs/images"))
    parser.add_argument("--model", default="timm:resnet18")
    parser.add_argument("--seconds", type=float, default=600.0, help="training time of a main run")
    parser.add_argument("--ablation-seconds", type=float, default=120.0)
    parser.add_argument("--epochs", type=float, default=0.0, help="epochs of each run in place of seconds")
    parser.add_argument("--ablation-epochs", type=float, default=0.0)
    parser.add_argument("--long", default="", help="METHOD=EPOCHS,…: one long run more of each")
    parser.add_argument("--points", type=int, default=6, help="points of the curve against epochs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parallel", type=int, default=3, help="processes at once")
    only = "METHOD,… of run (none: the long ones alone) and robust, TABLE,… of ablate"
    parser.add_argument("--only", default="", help=only)
    parser.add_argument("--job", default="", help="of `one`: a job as JSON")
    parser.add_argument("--tiny", action="store_true", help="a rehearsal: few images, few seconds, a small network")
    found = parser.parse_args()
    if found.tiny:
        found.model, found.seconds, found.ablation_seconds, found.points = "conv:8", 4.0, 2.0, 2
        found.seeds, found.parallel = min(found.seeds, 1), 1
    return found


def job(table: str, method: str, value: str, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    return {"table": table, "method": method, "value": value, "settings": settings, "seed": seed}


def key_of(one: dict[str, Any]) -> tuple[Any, ...]:
    return one["table"], one["method"], one["value"], one["seed"]


def everything(options: argparse.Namespace, jobs: list[dict[str, Any]]) -> None:
    """Each job in a process of its own, ``parallel`` at once; those with a last line already are left out."""
    done = {key_of(line) for line in lines(options) if line.get("last")}
    waiting = [one for one in jobs if key_of(one) not in done]
    running: list[tuple[subprocess.Popen[bytes], dict[str, Any]]] = []
    while waiting or running:
        while waiting and len(running) < options.parallel:
            one = waiting.pop(0)
            command = [sys.executable, __file__, "one", "--job", json.dumps(one), "--data", str(options.data)]
            command += ["--output", str(options.output), "--model", options.model, "--points", str(options.points)]
            command += ["--seconds", str(options.seconds), "--ablation-seconds", str(options.ablation_seconds)]
            command += ["--epochs", str(options.epochs)]
            command += ["--tiny"] if options.tiny else []
            surroundings = {"OMP_NUM_THREADS": "2", **os.environ}  # processes share the cores
            with open(options.output / f"{name_of(one)}.log", "wb") as log:  # the process has its own copy
                process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=surroundings)
            running.append((process, one))
        time.sleep(0.5)
        for process, one in list(running):
            if process.poll() is not None:
                running.remove((process, one))
                state = "done" if process.returncode == 0 else f"failed ({process.returncode}), see its log"
                print(f"{name_of(one)}: {state}; {len(waiting)} waiting", flush=True)


def name_of(one: dict[str, Any]) -> str:
    return "-".join(str(part).replace(" ", "") for part in key_of(one) if str(part))


def lines(options: argparse.Namespace) -> list[dict[str, Any]]:
    file = options.output / "results.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines() if line] if file.is_file() else []


def write(options: argparse.Namespace, line: dict[str, Any]) -> None:
    with open(options.output / "results.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def sources(options: argparse.Namespace) -> tuple[Path, Path]:
    """The files of the data; for a rehearsal the first few hundred images of each."""
    if not options.tiny:
        return options.data / TRAIN, options.data / TEST
    import numpy as np

    found = []
    for name, count in ((TRAIN, 600), (TEST, 200)):
        target = options.output / f"tiny-{name}"
        if not target.is_file():
            whole = np.load(options.data / name)
            ends = whole["offsets"][: count + 1]
            labels, classes = whole["labels"][:count], whole["classes"]
            np.savez(target, jpeg=whole["jpeg"][: ends[-1]], offsets=ends, labels=labels, classes=classes)
        found.append(target)
    return found[0], found[1]


def one_run(options: argparse.Namespace) -> None:
    """Train one job by the clock; k-NN accuracy along the way, linear accuracy at the end."""
    import isotrope

    one = json.loads(options.job)
    train, test = sources(options)
    seconds = options.seconds if one["table"] == "main" else options.ablation_seconds
    if one["table"] == "epochs":
        seconds = float(one["value"]) * options.seconds
    epochs = one.pop("epochs", options.epochs)
    common = {"device": device_name(), "model": options.model, **one}
    if one["method"] == RANDOM:
        encoder = fresh(options, train, one["seed"])
        write(options, {**common, **measured(encoder, train, test), "epochs": 0, "seconds": 0, "last": True})
        return
    method, settings = METHODS[one["method"]]
    settings = {**settings, **one["settings"]}
    if options.tiny:
        settings = {"batch_size": 64, "learning_rate": 0.1, **settings}
        if one["table"] in ("batch", "queue"):
            settings |= {"batch_size": min(settings["batch_size"], 128)}
        if "queue" in settings:
            settings["queue"] = min(settings["queue"], 256)
    began = time.perf_counter()
    folder = options.output / "runs" / name_of(one)
    batch = settings.get("batch_size", 512)
    if epochs:
        share = float(one["value"]) if one["table"] == "epochs" else 1.0
        steps = max(int(share * epochs * images_in(train) / batch), 2)
        length: dict[str, Any] = {"max_steps": steps}
    else:
        steps = max(int(seconds * pace(options, train, method, settings) / batch), 2)
        length = {"max_seconds": seconds}
    run = isotrope.train(
        method, str(train), options.model, folder, seed=one["seed"], eval_steps=max(steps // options.points, 1),
        logging_steps=max(steps // 100, 1), eval_data=str(test), resume=goes_on(folder), **length, **settings,
    )  # fmt: skip
    records = run.corpus.counts.records - len(run.held)
    for line in run.history:
        if "evaluation" in line:
            point = {"step": line["step"], "epochs": line["step"] * batch / records}
            write(options, {**common, **point, **line["evaluation"]})
    last = max(line["step"] for line in run.history)
    speeds = [line["records_per_second"] for line in run.history if "records_per_second" in line]
    write(
        options,
        {
            **common,
            **measured(run.encoder, train, test),
            "step": last,
            "epochs": last * batch / records,
            "seconds": 0 if epochs else seconds,
            "wall": time.perf_counter() - began,
            "images_per_second": sorted(speeds)[len(speeds) // 2] if speeds else None,
            "folder": str(folder),
            "last": True,
        },
    )


def goes_on(folder: Path) -> bool:
    """Whether a run that was stopped left something to go on from; what it left otherwise is taken away."""
    if any(folder.glob("checkpoints/*")):
        return True
    shutil.rmtree(folder, ignore_errors=True)
    return False


def commands(options: argparse.Namespace) -> None:
    """In the order of what they are worth: seconds that the GPU computes, and those of a call alone on an H200."""
    base = f"python benchmarks/images.py {{}} --data {options.data} --output {options.output}"

    def show(call: str, runs: list[float], at_once: int = 1) -> None:
        wall = sum(AROUND + max(runs[start : start + at_once]) for start in range(0, len(runs), at_once))
        print(f"{sum(runs) + 5 * len(runs):5.0f} s of GPU, {wall:5.0f} s alone  {call}")

    def updates(name: str, epochs: float) -> float:
        return 30_000 * epochs / PAIRS[name]

    for name, epochs in (("simclr", 350), ("moco-v2", 450), ("supcon", 100), ("supervised", 100), ("memory-bank", 200)):
        show(f"{base.format('run')} --only none --long {name}={epochs}", [updates(name, epochs)])
    for name in ("supcon", "supervised", "moco-v2"):
        call = f"{base.format('run')} --only {name} --epochs 20 --seeds 1 --parallel 2"
        show(call, [updates(name, 20), updates(name, 10)], 2)
    for table in ("queue", "momentum", "norm groups", "batch"):
        method, values = ABLATIONS[table]
        call = f"{base.format('ablate')} --only '{table}' --ablation-epochs 8 --parallel 4"
        show(call, [updates(method, 8)] * len(values), 4)
    show(f"{base.format('robust')}  behind the runs, in the same folder", [8.0] * 4, 4)


def images_in(train: Path) -> int:
    import numpy as np

    return len(np.load(train)["labels"])


def pace(options: argparse.Namespace, train: Path, method: str, settings: dict[str, Any]) -> float:
    """Images a second, from a dozen steps: it places the points of the curve."""
    import isotrope

    with tempfile.TemporaryDirectory() as place:
        steps = 4 if options.tiny else 40
        run = isotrope.train(
            method, str(train), options.model, Path(place) / "pace", max_steps=steps, eval_steps=steps,
            logging_steps=steps // 2, held_out=100, **settings,
        )  # fmt: skip
    return float(next(line["records_per_second"] for line in reversed(run.history) if "records_per_second" in line))


def measured(encoder: Any, train: Path, test: Path) -> dict[str, Any]:
    import isotrope

    scores = isotrope.evaluate(encoder, "linear", texts=str(train), test=str(test)).scores["linear"]
    named = {"linear": "standardised", "linear_plain": "as_they_are", "labels_1": "labels_1", "labels_10": "labels_10"}
    found = {name: scores[place]["top_1"] for name, place in named.items() if place in scores}
    return {
        **found,
        "knn_all": scores["knn"]["top_1"],
        "top_5": scores["standardised"]["top_5"],
        "calibration": scores["standardised"]["calibration_error"],
    }


def fresh(options: argparse.Namespace, train: Path, seed: int) -> Any:
    from isotrope.data.image_corpus import natural_side
    from isotrope.encoders.image_encoder import fresh_image_encoder
    from isotrope.encoders.loading import default_device

    return fresh_image_encoder(options.model, natural_side(train), seed).to(default_device()).eval()


def device_name() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


def robust(options: argparse.Namespace) -> None:
    """SupCon and cross-entropy of the main table: a linear classifier on clean images, judged on corrupted ones."""
    import numpy as np
    import torch

    import isotrope
    from isotrope.data.image_corpus import open_images
    from isotrope.evaluation.classifier_scores import score_classifier
    from isotrope.evaluation.linear import standardised
    from isotrope.evaluation.logistic import fit_many

    train, test = sources(options)
    only = options.only.split(",") if options.only and options.command == "robust" else ROBUST
    damages: list[tuple[str, Any, Any]] = []
    done = {(one["method"], one["value"], one["seed"]) for one in lines(options) if one["table"] == "robust"}
    for line in [one for one in lines(options) if one.get("last") and one["table"] in ("main", "long")]:
        value = "long" if line["table"] == "long" else ""
        judged_already = (line["method"], value, line["seed"]) in done
        if line["method"] not in only or judged_already or not Path(line["folder"]).is_dir():
            continue
        encoder = isotrope.load(Path(line["folder"]) / "model")
        known, judged = (open_images(file, "labelled-images", encoder.size) for file in (train, test))
        learn = torch.from_numpy(encoder.encode_rows(known, np.arange(len(known)))).to(encoder.device)
        labels = torch.from_numpy(np.asarray(known.numbers("label"), dtype=np.int64)).to(encoder.device)
        wanted = torch.from_numpy(np.asarray(judged.numbers("label"), dtype=np.int64)).to(encoder.device)
        whole = torch.ones(len(labels), 1, dtype=torch.bool, device=encoder.device)
        known_features = standardised(learn, len(learn))
        fit = fit_many(known_features, labels, whole, torch.tensor([4.0**-3], device=encoder.device))
        damages = damages or list(corruptions(judged.pixels(np.arange(len(judged)))))
        found = {}
        for name, strength, damaged in damages:
            vectors = torch.from_numpy(encoder.encode(list(damaged), show_progress_bar=False)).to(encoder.device)
            both = standardised(torch.cat([learn, vectors]), len(learn))
            scores = (both[len(learn) :].double() @ fit.weights[:, 0] + fit.biases[0]).softmax(dim=1)
            score = score_classifier(scores, wanted, 0, 100)
            found[f"{name} {strength}".strip()] = {"top_1": score.top_1, "calibration": score.calibration_error}
        rest = [one["top_1"] for name, one in found.items() if name != "clean"]
        write(
            options,
            {
                **{name: line[name] for name in ("method", "seed", "device", "model")},
                "table": "robust",
                "value": value,
                "corruptions": found,
                "corrupted": sum(rest) / len(rest),
                "last": True,
            },
        )


def corruptions(pixels: Any) -> Any:
    """After Hendrycks and Dietterich (2019): noise, blur, contrast, brightness, coarse pixels; three strengths each."""
    import numpy as np
    import torch

    from isotrope.views.resampling import blur_weights, mixed

    yield "clean", "", pixels
    fractions = pixels.astype(np.float32) / 255
    rng = np.random.default_rng(0)
    for strength in (1, 2, 3):
        noisy = fractions + rng.normal(0, 0.04 * strength, fractions.shape)
        yield "noise", strength, _bytes(noisy)
        images = torch.from_numpy(fractions).permute(0, 3, 1, 2)
        weights = blur_weights(torch.full((len(images),), 0.5 + 0.4 * strength), images.shape[-1], 3)
        yield "blur", strength, _bytes(mixed(images.contiguous(), weights, weights).permute(0, 2, 3, 1).numpy())
        level = fractions.mean(axis=(1, 2, 3), keepdims=True)
        yield "contrast", strength, _bytes((fractions - level) * (0.8 - 0.2 * strength) + level)
        yield "brightness", strength, _bytes(fractions + 0.1 * strength)
        side, step = fractions.shape[1], 1 + strength
        coarse = fractions[:, ::step, ::step].repeat(step, axis=1).repeat(step, axis=2)[:, :side, :side]
        yield "pixelate", strength, _bytes(coarse)


def _bytes(values: Any) -> Any:
    import numpy as np

    return np.clip(values * 255 + 0.5, 0, 255).astype(np.uint8)


def speed(options: argparse.Namespace) -> None:
    """Images/s of two views of a batch: augmentation alone, the update with it, and others' augmentation loops.

    torchvision's loop transforms image by image in worker processes' place (one process, as ours); its v2 transforms of
    a whole batch draw one crop and one colour for all images of it, so they are no substitute.
    """
    import numpy as np
    import torch

    from isotrope.data.image_corpus import open_images
    from isotrope.views.augmentations import parse_augmentations
    from isotrope.views.image_views import augmented

    train, _ = sources(options)
    size = 64 if options.tiny else 512
    encoder = fresh(options, train, 0)
    corpus = open_images(train, "images", encoder.size)
    steps = parse_augmentations("simclr-small")
    rng, rows = np.random.default_rng(0), np.arange(size)
    device, cpu = encoder.device, torch.device("cpu")

    def ours(place: torch.device) -> None:
        for view in augmented(corpus, rows, [steps, steps], encoder.size, rng):
            view.to(place).images()

    found: dict[str, Any] = {"table": "speed", "batch": size, "device": device_name(), "last": True}
    found |= {"threads": torch.get_num_threads()}
    found["ours_cpu"] = rate_of(lambda: ours(cpu), size, options)
    if device.type != "cpu":
        found["ours_gpu"] = rate_of(lambda: ours(device), size, options)
    for name, loop in other_loops(corpus, rows, encoder.size).items():
        found[name] = rate_of(loop, size, options)
    found |= update_rates(options, train)
    found |= loader_rate(options, corpus, encoder)
    write(options, {"method": "simclr", "value": "", "seed": 0, "model": options.model, **found})
    print(json.dumps(found))


def update_rates(options: argparse.Namespace, train: Path) -> dict[str, float]:
    """Images/s of whole updates by the loop, with the paper's augmentations and with none: their share of the time."""
    given = {"batch_size": 64, "learning_rate": 0.1} if options.tiny else {}
    rates = {
        name: pace(options, train, "simclr", {**given, "augmentations": steps})
        for name, steps in (("update", "simclr-small"), ("update_plain", "none"))
    }
    return {**rates, "augmentation_share": 1 - rates["update"] / rates["update_plain"]}


def loader_rate(options: argparse.Namespace, corpus: Any, encoder: Any) -> dict[str, float]:
    """The usual loop: a DataLoader with torchvision's transforms in worker processes, the same network and loss."""
    import contextlib

    import numpy as np
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    from isotrope.objectives import nt_xent
    from isotrope.towers.heads import projection_head

    try:
        transform = torchvision_steps(encoder.size)
    except Exception as error:
        print(f"torchvision's loop is left out: {error}")
        return {}
    size, steps = (64, 3) if options.tiny else (512, 12)
    workers = 0 if options.tiny else min(os.cpu_count() or 1, 16)

    class Pairs(Dataset):  # type: ignore[type-arg]
        pictures = [Image.fromarray(one) for one in corpus.pixels(np.arange(min(len(corpus), (steps + 2) * size)))]

        def __len__(self) -> int:
            return len(self.pictures)

        def __getitem__(self, row: int) -> Any:
            return transform(self.pictures[row]), transform(self.pictures[row])

    encoder.train()
    head = projection_head(encoder.dimension, 128, 2).to(encoder.device)
    optimiser = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05, momentum=0.9)
    half = encoder.device.type == "cuda"
    loader = DataLoader(Pairs(), size, shuffle=True, drop_last=True, num_workers=workers, pin_memory=half)
    start, done = 0.0, 0
    for number, (first, second) in enumerate(loader):
        if number == 2:  # workers have started
            start = time.perf_counter()
        mixed = torch.autocast("cuda", torch.bfloat16) if half else contextlib.nullcontext()
        with mixed:
            vectors = head(encoder(torch.cat([first, second]).to(encoder.device, non_blocking=True)))
        loss = nt_xent(vectors[:size].float(), vectors[size:].float(), 0.5)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        done += size if number >= 2 else 0
    if half:
        torch.cuda.synchronize()
    return {"torchvision_update": done / (time.perf_counter() - start)} if done else {}


def torchvision_steps(size: int) -> Any:
    import torch
    from torchvision.transforms import v2

    return v2.Compose(
        [
            v2.RandomResizedCrop(size, scale=(0.08, 1.0), antialias=True),
            v2.RandomHorizontalFlip(),
            v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
            v2.RandomGrayscale(0.2),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
        ]
    )


def rate_of(work: Any, size: int, options: argparse.Namespace) -> float:
    """Images a second, each with two views; the median of several rounds after a first one that is not counted."""
    import torch

    work()
    rounds = []
    for _ in range(3 if options.tiny else 7):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        rounds.append(time.perf_counter() - start)
    return size / sorted(rounds)[len(rounds) // 2]


def other_loops(corpus: Any, rows: Any, size: int) -> dict[str, Any]:
    """The same augmentations by torchvision (tensors, and Pillow images) and by lightly, image by image."""
    import torch

    loops: dict[str, Any] = {}
    try:
        import torchvision  # noqa: F401
        from PIL import Image
    except Exception as error:
        print(f"torchvision is left out: {error}")
        return loops
    pixels = corpus.pixels(rows)
    transform = torchvision_steps(size)
    tensors = list(torch.from_numpy(pixels).permute(0, 3, 1, 2))
    pictures = [Image.fromarray(one) for one in pixels]
    loops["torchvision_tensors"] = lambda: [torch.stack([transform(one) for one in tensors]) for _ in range(2)]
    loops["torchvision_pillow"] = lambda: [torch.stack([transform(one) for one in pictures]) for _ in range(2)]
    try:
        from lightly.transforms import SimCLRTransform
    except Exception as error:
        print(f"lightly is left out: {error}")
        return loops
    both = SimCLRTransform(input_size=size, cj_strength=0.5, gaussian_blur=0.0, normalize=None)
    loops["lightly"] = lambda: [torch.stack(views) for views in zip(*(both(one) for one in pictures), strict=True)]
    return loops


def neighbours(options: argparse.Namespace) -> None:
    """A picture: test images, and their nearest neighbours by random features and after SimCLR."""
    import numpy as np
    import torch
    from PIL import Image

    import isotrope
    from isotrope.data.image_corpus import open_images

    train, test = sources(options)
    found = [one for one in lines(options) if one.get("last") and one["table"] in ("long", "main") and "folder" in one]
    runs = [one for one in found if one["method"] == "simclr"]
    runs.sort(key=lambda one: one["table"] != "long")
    if not runs:
        print("no finished run of simclr: no picture")
        return
    trained = isotrope.load(Path(runs[0]["folder"]) / "model")
    judged = open_images(test, "labelled-images", trained.size)
    chosen = [int(np.flatnonzero(judged.numbers("label") == one)[0]) for one in range(min(len(judged.classes), 8))]
    rows = []
    for encoder in (fresh(options, train, 0), trained):
        vectors = torch.from_numpy(encoder.encode_rows(judged, np.arange(len(judged)), normalize_embeddings=True))
        cosines = vectors[chosen] @ vectors.T
        rows.append(cosines.topk(7, dim=1).indices.numpy())
    pixels = judged.pixels(np.arange(len(judged)))
    gap = np.full((trained.size, 12, 3), 255, dtype=np.uint8)
    picture = np.concatenate(
        [np.concatenate([*(pixels[i] for i in before), gap, *(pixels[i] for i in after)], axis=1)
         for before, after in zip(*rows, strict=True)]
    )  # fmt: skip
    scale = 2 if trained.size <= 64 else 1
    image = Image.fromarray(picture)
    image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST).save(
        options.output / "neighbours.png"
    )
    print(options.output / "neighbours.png")


def tables(options: argparse.Namespace) -> None:
    """Markdown of all lines; the mean and spread over seeds."""
    every = [line for line in lines(options) if line.get("last")]
    text = ["## Linear accuracy", "", f"Published: {PUBLISHED['main']}.", ""]
    columns = ("linear", "knn_all", "top_5", "labels_1", "labels_10", "calibration", "epochs", "images_per_second")
    text += table_of([one for one in every if one["table"] == "main"], "method", columns)
    long = [one for one in every if one["table"] == "long"]
    text += ["", "## Long runs", "", *table_of(long, "method", columns)] if long else []
    text += ["", "## Linear accuracy against epochs", "", "Each point is a run with its own schedule, seed 0.", ""]
    text += epoch_rows([one for one in every if one["table"] in ("main", "epochs", "long") and one["seed"] == 0])
    text += ["", "## k-NN accuracy along the runs", "", *curves(lines(options))]
    for name in ABLATIONS:
        found = [one for one in every if one["table"] == name]
        if found:
            text += ["", f"## {name} ({ABLATIONS[name][0]})", "", f"Published: {PUBLISHED[name]}.", ""]
            text += table_of(found, "value", ("linear", "knn_all", "epochs", "images_per_second"))
    found = [one for one in every if one["table"] == "robust"]
    if found:
        clean = [
            {
                **one,
                "method": f"{one['method']} {one['value']}".strip(),
                **{f"{name} top-1": found["top_1"] for name, found in one["corruptions"].items()},
                "calibration clean": one["corruptions"]["clean"]["calibration"],
            }
            for one in found
        ]
        text += ["", "## Corrupted images", ""]
        text += table_of(
            clean, "method", ("clean top-1", "corrupted", "noise 2 top-1", "blur 2 top-1", "calibration clean")
        )
    for one in every:
        if one["table"] == "speed":
            numbers = {name: value for name, value in one.items() if isinstance(value, float)}
            text += ["", f"## Speed, {one['device']}, batch {one['batch']}, {one['threads']} threads", ""]
            text += ["| what | images/s, two views each |", "|---|---|"]
            text += [f"| {name} | {value:,.2f} |" for name, value in numbers.items()]
    (options.output / "tables.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text))


def epoch_rows(found: list[dict[str, Any]]) -> list[str]:
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for line in found:
        points[line["method"]].append((line["epochs"], line["linear"]))
    curves = {
        name: ", ".join(f"{epochs:.0f}: {linear:.1f}" for epochs, linear in sorted(pairs))
        for name, pairs in points.items()
    }
    return ["| method | epochs: linear top-1 |", "|---|---|", *(f"| {name} | {row} |" for name, row in curves.items())]


def table_of(found: list[dict[str, Any]], by: str, columns: tuple[str, ...]) -> list[str]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in found:
        groups[line[by]].append(line)
    rows = [f"| {by} | runs | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for name, members in groups.items():
        cells = [spread([one[column] for one in members if one.get(column) is not None]) for column in columns]
        rows.append(f"| {name} | {len(members)} | " + " | ".join(cells) + " |")
    return rows


def spread(values: list[float]) -> str:
    if not values:
        return ""
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:,.1f}"
    deviation = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return f"{mean:,.1f} ± {deviation:.1f}"


def curves(found: list[dict[str, Any]]) -> list[str]:
    """epoch: accuracy of the monitor, of the first seed of each method."""
    points: dict[str, list[str]] = defaultdict(list)
    for line in found:
        if line["table"] in ("main", "long") and line["seed"] == 0 and "knn" in line:
            name = line["method"] + (", long" if line["table"] == "long" else "")
            points[name].append(f"{line['epochs']:.0f}: {line['knn']:.1f}")
    return [f"- {method}: {', '.join(values)}" for method, values in points.items()]


if __name__ == "__main__":
    main()
