"""Ten labelled texts a class: a head on frozen vectors, supcon with a head, and SetFit's plain recipe, from one start.

    python benchmarks/few_shot.py DATA_DIR [--tasks cr,subj,trec] [--seeds 3] [--shots 10] [--model builtin]

SetFit (Tunstall et al. 2022) by its definition: R = 20 positive and 20 negative pairs of each text, the squared error
of their cosine against 1 or 0, one epoch of AdamW at 2e-5 in batches of 16, then a logistic regression (C = 1) on the
vectors. It runs here on sentence-transformers. Accuracy on texts of the same data that were not drawn, and the
calibration error of each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

import isotrope
from isotrope.heads.label_sets import LabelSets
from isotrope.heads.logistic_head import fit_head
from isotrope.measures.classification import calibration_error

Row = tuple[str, str]  # text, label
R, BATCH, RATE = 20, 16, 2e-5


def read_task(folder: Path, task: str) -> tuple[list[Row], list[Row]]:
    """Texts to draw from and texts to test on; the same ones where the task has no test file."""
    names = [task] if (folder / f"{task}.tsv.gz").is_file() else [f"{task}.train", f"{task}.test"]
    parts = []
    for name in names:
        with gzip.open(folder / f"{name}.tsv.gz", "rt", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t")[:2] for line in file][1:]
        parts.append([(text, label) for label, text in rows])
    return parts[0], parts[-1]


def draw(task: tuple[list[Row], list[Row]], shots: int, tested: int, seed: int) -> tuple[list[Row], list[Row]]:
    rng = random.Random(seed)
    pool, test = ([*part] for part in task)
    rng.shuffle(pool)
    rng.shuffle(test)
    classes: dict[str, list[Row]] = defaultdict(list)
    for text, label in pool:
        classes[label].append((text, label))
    few = [row for label in sorted(classes) for row in classes[label][:shots]]
    seen = {text for text, _ in few}
    return few, [row for row in test if row[0] not in seen][:tested]


def judge(classifier: Any, vectors: Any, test: list[Row]) -> dict[str, float]:
    wanted = np.array([label for _, label in test])
    chances = classifier.predict_proba(vectors)
    right = classifier.classes_[chances.argmax(axis=1)] == wanted
    error = calibration_error(torch.from_numpy(chances.max(axis=1)), torch.from_numpy(right))
    return {"accuracy": float(right.mean()), "calibration_error": float(error)}


def head(model: Path, few: list[Row], test: list[Row], seed: int) -> dict[str, float]:
    encoder = isotrope.load(model)
    fitted = fit_head(encoder.encode([text for text, _ in few]), LabelSets.of([label for _, label in few]), seed=seed)
    return judge(fitted.classifier, encoder.encode([text for text, _ in test]), test)


def supcon(model: Path, few: list[Row], test: list[Row], seed: int) -> dict[str, float]:
    """The contrast of the paper, then the head above on its vectors."""
    with tempfile.TemporaryDirectory() as place:
        settings = {"max_steps": 60, "batch_size": BATCH, "learning_rate": 5e-5, "held_out": 0, "eval_steps": 60}
        run = isotrope.train(
            "supcon", few, model=model, output=Path(place) / "run", seed=seed, final_table=False, **settings
        )
    encoder = run.encoder
    fitted = fit_head(encoder.encode([text for text, _ in few]), LabelSets.of([label for _, label in few]), seed=seed)
    return judge(fitted.classifier, encoder.encode([text for text, _ in test]), test)


def setfit(model: Path, few: list[Row], test: list[Row], seed: int) -> dict[str, float]:
    from sentence_transformers import SentenceTransformer
    from sklearn.linear_model import LogisticRegression

    torch.manual_seed(seed)
    body = SentenceTransformer(str(model), device="cpu")
    pairs = list(contrastive_pairs(few, random.Random(seed)))
    steps = -(-len(pairs) // BATCH)
    optimiser = torch.optim.AdamW(body.parameters(), lr=RATE)
    warm = max(steps // 10, 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, max(steps - step, 0) / max(steps - warm, 1))
    )
    body.train()
    for start in range(0, len(pairs), BATCH):
        firsts, seconds, targets = zip(*pairs[start : start + BATCH], strict=True)
        u, v = (body(body.tokenize(list(side)))["sentence_embedding"] for side in (firsts, seconds))
        loss = torch.nn.functional.mse_loss(torch.cosine_similarity(u, v), torch.tensor(targets))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(body.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    body.eval()
    last = LogisticRegression(max_iter=1000).fit(body.encode([text for text, _ in few]), [label for _, label in few])
    return judge(last, body.encode([text for text, _ in test]), test)


def contrastive_pairs(few: list[Row], rng: random.Random) -> list[tuple[str, str, float]]:
    """For each text R times: one of its class, with target 1, and one of another class, with target 0."""
    pairs = []
    for text, label in few * R:
        same = [other for other, its in few if its == label and other != text] or [text]
        different = [other for other, its in few if its != label]
        pairs += [(text, rng.choice(same), 1.0), (text, rng.choice(different), 0.0)]
    rng.shuffle(pairs)
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--tasks", default="cr,subj,trec")
    parser.add_argument("--ways", default="head,supcon,setfit")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shots", type=int, default=10)
    parser.add_argument("--tested", type=int, default=500)
    parser.add_argument("--model", default="builtin")
    options = parser.parse_args()
    ways = {"head": head, "supcon": supcon, "setfit": setfit}
    with tempfile.TemporaryDirectory() as place:
        model = Path(place) / "start"
        isotrope.load(options.model).save(model)
        for task in options.tasks.split(","):
            data = read_task(options.data_dir / "transfer", task)
            for way in options.ways.split(","):
                found, begun = [], time.perf_counter()
                for seed in range(options.seeds):
                    found.append(ways[way](model, *draw(data, options.shots, options.tested, seed), seed))
                taken = (time.perf_counter() - begun) / options.seeds
                scores = {name: [one[name] for one in found] for name in found[0]}
                line = {name: [round(float(np.mean(x)), 4), round(float(np.std(x)), 4)] for name, x in scores.items()}
                print(json.dumps({"task": task, "way": way, **line, "seconds": round(taken, 1)}), flush=True)


if __name__ == "__main__":
    main()
