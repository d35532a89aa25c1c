"""The good files that probes read beside the bad one: a tiny model, sentences, pairs, a table of every record type."""

from __future__ import annotations

import json
import os
from pathlib import Path

from isotrope.encoders.fresh import fresh_encoder

SCENES = ("chef bakes bread in the kitchen", "sailor steers a boat in the bay", "pilot lands near the crater")


def make_world(folder: Path) -> Path:
    """Make the folder; its place is left in PROBE_WORLD, and no cache of the user is touched."""
    folder.mkdir(parents=True)
    os.environ |= {
        "PROBE_WORLD": str(folder),
        "ISOTROPE_CACHE": str(folder.parent / "cache"),
        "ISOTROPE_FINAL_TABLE": "0",
        "HF_HUB_OFFLINE": "1",
    }
    os.environ.pop("ISOTROPE_DATA", None)
    texts = [f"the {SCENES[number // 8 % 3]} number {number} on day {number % 31}" for number in range(400)]
    fresh_encoder(texts, vocabulary=300, layers=2, width=32, heads=2, max_length=64).save(folder / "tiny")
    for name in ("sentences.txt", "copy.txt"):
        (folder / name).write_text("\n".join(texts[:60]) + "\n", encoding="utf-8")
    rows = [f"{texts[row]}\t{texts[row + 1]}" for row in range(60)]
    (folder / "pairs.tsv").write_text("\n".join(["anchor\tpositive", *rows]) + "\n", encoding="utf-8")
    page = {"title": "Boat", "text": '<a href="Ship">ship</a> and ' * 30}
    (folder / "wiki.jsonl").write_text(json.dumps(page) + "\n", encoding="utf-8")
    return folder
