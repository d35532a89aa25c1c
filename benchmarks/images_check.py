"""Where do images lose points? Plain torch loops next to `isotrope train`, equally long, the same network and views.

    python benchmarks/images_check.py --data DIR --output DIR [--epochs 10] [--parallel 4] [--only NAME,…]

Every line of RUNS is a process of its own. A plain loop has timm's network with torch's own batch norm, SGD and nothing
of the toolkit but the drawing of its views; it and the run of the same letter must agree within a point or two, or the
toolkit has a fault. What is judged is the same in all: the suite linear. ``again`` measures batch norm's statistics
anew on augmented training images first: more than a point between both means that the kept ones are wrong.
One JSON line each goes to OUTPUT/check.jsonl at once, and a line that is there is not made again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BATCH, WARM_UP = 512, 0.05
SMALL = "crop:0.08:1,flip,jitter:0.4:0.4:0.4:0.1:0.8,gray:0.2"
CLASSIFIER = {"cross_entropy_weight": 1.0, "projection": 0, "number_of_views": 1, "weight_decay": 5e-4}
SGD = {"optimiser": "sgd", "learning_rate": 0.24, "weight_decay": 5e-4}  # lightly's for CIFAR-10: 0.06 · batch / 128
PIXELS = {
    False: ((0.0,) * 3, (1.0,) * 3),
    True: ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
}  # MoCo's notebook
# name: what is trained, its settings. "plain" is torch alone; others are methods of isotrope.
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain classifier, padded crops": ("plain", {"views": "pad", "rate": 0.1, "nesterov": True}),
    "A plain classifier": ("plain", {"views": "supcon-small", "rate": 0.1}),
    "A isotrope classifier": ("supcon", {**CLASSIFIER, "learning_rate": 0.1, "compiled": "never"}),
    "A isotrope classifier, compiled": ("supcon", {**CLASSIFIER, "learning_rate": 0.1, "compiled": "always"}),
    "isotrope classifier, rate 0.4": ("supcon", {**CLASSIFIER, "learning_rate": 0.4}),
    "B plain simclr": ("plain", {"views": SMALL, "rate": 0.24, "contrast": True}),
    "B isotrope simclr, sgd": ("simclr", SGD),
    "plain simclr, head with norm": ("plain", {"views": SMALL, "rate": 0.24, "contrast": True, "norm": True}),
    "plain simclr, centred pixels": ("plain", {"views": SMALL, "rate": 0.24, "contrast": True, "centred": True}),
    "isotrope simclr, sgd, head with norm": ("simclr", {**SGD, "head_norm": True}),
    "isotrope simclr": ("simclr", {}),
    "isotrope simclr, head with norm": ("simclr", {"head_norm": True}),
    "isotrope simclr, rate 4": ("simclr", {"learning_rate": 4.0}),
    "isotrope simclr, 0.2": ("simclr", {**SGD, "temperature": 0.2}),
    "isotrope moco": ("moco", {}),
    "isotrope moco, crops from 0.2": ("moco", {"augmentations": "supcon-small"}),
    "isotrope moco, rate 0.24": ("moco", {"learning_rate": 0.24}),
}
FIRST = [name for name in RUNS if name[:2] in ("A ", "B ") or name in ("plain classifier, padded crops",)]


def main() -> None:
    options = parsed()
    options.output.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("ISOTROPE_CACHE", str(options.output / "cache"))
    os.environ["ISOTROPE_FINAL_TABLE"] = "0"
    if options.one:
        one(options)
        return
    began = time.perf_counter()
    opened(options)  # decoded once, for all
    done = [line["name"] for line in lines(options)]
    named = [*RUNS] if options.only == "all" else options.only.split(";") if options.only else FIRST
    waiting, running = [name for name in named if name not in done], []
    while waiting or running:
        while waiting and len(running) < options.parallel:
            name = waiting.pop(0)
            command = [sys.executable, __file__, "--one", name, "--data", str(options.data), "--model", options.model]
            command += [
                "--output",
                str(options.output),
                "--epochs",
                str(options.epochs),
                "--images",
                str(options.images),
            ]
            with open(options.output / f"{name.replace(' ', '_')}.log", "wb") as log:
                surroundings = {"OMP_NUM_THREADS": "2", **os.environ}
                running.append((name, subprocess.Popen(command, stdout=log, stderr=log, env=surroundings)))
        time.sleep(0.2)
        for name, process in list(running):
            if process.poll() is not None:
                running.remove((name, process))
                if process.returncode:
                    print(f"{name}: failed, see its log:\n" + log_of(options, name)[-1500:], flush=True)
    print(
        f"| run | linear | k-NN | own classifier | again | last loss | seconds |  ({time.perf_counter() - began:.0f} s)"
    )
    print("|---|---|---|---|---|---|---|")
    for line in sorted(lines(options), key=lambda line: [*RUNS].index(line["name"])):
        cells = (line.get(key) for key in ("linear", "knn", "own", "again", "loss", "seconds"))
        print(f"| {line['name']} | " + " | ".join("" if cell is None else f"{cell:.2f}" for cell in cells) + " |")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data/images"))
    parser.add_argument("--output", type=Path, default=Path("runs/images-check"))
    parser.add_argument("--model", default="timm:resnet18")
    parser.add_argument("--epochs", type=float, default=10.0)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--images", type=int, default=0, help="the first so many alone, for a rehearsal")
    parser.add_argument("--only", default="", help="names with ; between, or all; default: those with letters")
    parser.add_argument("--one", default="")
    return parser.parse_args()


def log_of(options: argparse.Namespace, name: str) -> str:
    return (options.output / f"{name.replace(' ', '_')}.log").read_text(encoding="utf-8", errors="replace")


def lines(options: argparse.Namespace) -> list[dict[str, Any]]:
    file = options.output / "check.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def files(options: argparse.Namespace) -> list[str]:
    """The data; of a rehearsal the first few, written anew."""
    import numpy as np

    found = []
    for name, share in (("cifar10_train_subset.npz", 1.0), ("cifar10_test.npz", 0.5)):
        if not options.images:
            found.append(str(options.data / name))
            continue
        count, whole = int(share * options.images), np.load(options.data / name)
        target, ends = options.output / f"{options.images}-{name}", whole["offsets"][: count + 1]
        if not target.is_file():
            kept = {"labels": whole["labels"][:count], "classes": whole["classes"]}
            np.savez(target, jpeg=whole["jpeg"][: ends[-1]], offsets=ends, **kept)
        found.append(str(target))
    return found


def opened(options: argparse.Namespace) -> list[Any]:
    from isotrope.data.image_corpus import open_images

    return [open_images(file, "labelled-images", 32) for file in files(options)]


def one(options: argparse.Namespace) -> None:
    import numpy as np
    import torch

    import isotrope
    from isotrope.encoders.shared_batch_norm import batch_norms

    kind, settings = RUNS[options.one]
    train, test = files(options)
    corpus, _ = opened(options)
    batch = min(BATCH, len(corpus) // 4)
    steps = max(int(options.epochs * len(corpus) / batch), 2)
    began = time.perf_counter()
    if kind == "plain":
        encoder, found = plain(options, steps, batch, settings)
    else:
        run = isotrope.train(
            kind, train, options.model, options.output / options.one.replace(" ", "_"), seed=0, batch_size=batch,
            max_steps=steps, eval_steps=steps, logging_steps=max(steps // 20, 1), eval_data=test, held_out=100,
            **{"learning_rate": rate_of(kind), **settings},
        )  # fmt: skip
        encoder, found = run.encoder, {"loss": [line["loss"] for line in run.history if "loss" in line][-1]}
    found["seconds"] = time.perf_counter() - began

    def judged() -> dict[str, float]:
        scores = isotrope.evaluate(encoder, "linear", texts=train, test=test).scores["linear"]
        return {"linear": scores["standardised"]["top_1"], "knn": scores["knn"]["top_1"]}

    found |= judged()
    if kind != "plain":
        norms, rng = batch_norms(encoder), np.random.default_rng(1)
        encoder.train()
        for norm in norms:
            norm.reset_running_stats()  # type: ignore[operator]
            norm.momentum, norm.groups = None, 1  # type: ignore[assignment]
        with torch.no_grad():
            for _ in range(20):
                rows = np.sort(rng.permutation(len(corpus))[:batch])
                encoder.backbone.network(
                    views_of(corpus, rows, settings.get("augmentations", SMALL), rng, encoder.device)
                )
        encoder.eval()
        found["again"] = judged()["linear"]
    with open(options.output / "check.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps({"name": options.one, "steps": steps, **found}) + "\n")


def rate_of(kind: str) -> float:
    """The method's own: a batch size that is given must not change it."""
    from isotrope.methods.frame.method_registry import find

    return float(find(kind).image_defaults["learning_rate"])


def views_of(corpus: Any, rows: Any, names: str, rng: Any, device: Any) -> Any:
    """One view of each row, [n, 3, 32, 32]."""
    import torch

    from isotrope.views.augmentations import parse_augmentations
    from isotrope.views.image_views import augmented

    if names != "pad":
        return augmented(corpus, rows, [parse_augmentations(names)], 32, rng)[0].to(device).images()
    pixels = torch.from_numpy(corpus.pixels(rows)).to(device).permute(0, 3, 1, 2).float() / 255
    wide = torch.nn.functional.pad(pixels, (4, 4, 4, 4))
    place = torch.arange(32, device=device)
    top, left = (torch.from_numpy(rng.integers(0, 9, len(rows))).to(device)[:, None] + place for _ in range(2))
    if_flipped = torch.from_numpy(rng.random(len(rows)) < 0.5).to(device)[:, None]
    left = torch.where(if_flipped, left.flip(1), left)
    every = torch.arange(len(rows), device=device)[:, None, None, None]
    return wide[every, torch.arange(3, device=device)[:, None, None], top[:, None, :, None], left[:, None, None, :]]


def plain(
    options: argparse.Namespace, steps: int, batch: int, settings: dict[str, Any]
) -> tuple[Any, dict[str, float]]:
    """SGD on timm's network; nothing of the loop, the methods, the objectives or the batch norm of isotrope."""
    import numpy as np
    import torch
    from torch import nn

    from isotrope.encoders.image_encoder import fresh_image_encoder
    from isotrope.encoders.vision_networks import small_convolutions

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    if options.model.startswith("conv"):
        network: Any = small_convolutions(int(options.model.partition(":")[2]))
    else:
        import timm

        network = timm.create_model(options.model.removeprefix("timm:"), num_classes=0)
        network.conv1, network.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
        nn.init.kaiming_normal_(network.conv1.weight, mode="fan_out", nonlinearity="relu")
    network.to(device, memory_format=torch.channels_last)
    corpus, test = opened(options)
    labels, wanted = (
        torch.from_numpy(np.asarray(one.numbers("label"), dtype=np.int64)).to(device) for one in (corpus, test)
    )
    contrast = settings.get("contrast", False)
    mean, spread = (
        torch.tensor(numbers, device=device).view(1, 3, 1, 1) for numbers in PIXELS[bool(settings.get("centred"))]
    )
    with torch.no_grad():
        width = network.eval()(torch.zeros(1, 3, 32, 32, device=device)).shape[1]
    if not contrast:
        head: Any = nn.Linear(width, 10)
    elif settings.get("norm"):
        parts = (nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.ReLU())
        head = nn.Sequential(*parts, nn.Linear(width, 128, bias=False), nn.BatchNorm1d(128))
    else:
        head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 128))
    head.to(device)
    weights = [*network.parameters(), *head.parameters()]
    groups = [{"params": [one for one in weights if (one.dim() > 1) == big], "weight_decay": decay}
              for big, decay in ((True, 5e-4), (False, 0.0))]  # fmt: skip
    optimiser = torch.optim.SGD(groups, lr=settings["rate"], momentum=0.9, nesterov=settings.get("nesterov", False))
    warm = max(int(WARM_UP * steps), 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda step: (
            (step + 1) / (warm + 1)
            if step < warm
            else 0.5 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1)))
        ),
    )
    rng, order = np.random.default_rng(0), np.zeros(0, dtype=np.int64)
    network.train()
    for _ in range(steps):
        if len(order) < batch:
            order = rng.permutation(len(corpus))
        rows, order = order[:batch], order[batch:]
        images = torch.cat(
            [views_of(corpus, rows, settings["views"], rng, device) for _ in range(2 if contrast else 1)]
        )
        images = ((images - mean) / spread).contiguous(memory_format=torch.channels_last)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            scores = head(network(images)).float()
        if contrast:
            unit = nn.functional.normalize(scores, dim=1)
            scores = (unit @ unit.T / 0.5).fill_diagonal_(-torch.inf)
            target = torch.arange(len(unit), device=device).roll(batch)
        else:
            target = labels[torch.from_numpy(rows).to(device)]
        loss = nn.functional.cross_entropy(scores, target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    found = {"loss": float(loss)}
    network.eval()
    if not contrast:
        every = torch.from_numpy(test.pixels(np.arange(len(test)))).to(device).permute(0, 3, 1, 2)
        with torch.no_grad():
            chosen = torch.cat(
                [head(network((part.float() / 255 - mean) / spread)).argmax(dim=1) for part in every.split(1000)]
            )
        found["own"] = 100 * float((chosen == wanted).double().mean())
    encoder = fresh_image_encoder(options.model, 32, 0).to(device).eval()
    encoder.backbone.network.load_state_dict(network.state_dict())
    encoder.backbone.mean.copy_(mean)
    encoder.backbone.std.copy_(spread)
    return encoder, found


if __name__ == "__main__":
    main()
