"""A digest of the weights that each method ends with, from one seed: the same before and after a change, or not.

    python benchmarks/weight_digests.py --data-dir DATA [NAME …] > after.txt
    PYTHONPATH=OTHER/src python benchmarks/weight_digests.py --data-dir DATA [NAME …] > before.txt
    diff before.txt after.txt

Six updates of each method from builtin-base on one thread, some with an auxiliary loss or a tactic, and pre-training in
one piece and resumed. Only public functions are called, so that two versions of the package can be compared.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import lzma
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOOP: dict[str, Any] = {"max_steps": 6, "batch_size": 16, "eval_steps": 3, "held_out": 64, "max_length": 48}
PRETRAIN: dict[str, Any] = {
    "vocabulary": 2000, "layers": 2, "width": 64, "heads": 2, "length": 64, "batch_size": 16, "steps": 12,
    "warmup_steps": 2, "save_steps": 4, "logging_steps": 2,
}  # fmt: skip
JOBS: dict[str, tuple[str, str, dict[str, Any]]] = {  # label: method, text, settings
    **{
        name: (name, "sentences", {}) for name in ("simcse", "sg-opt", "tsdae", "tacl", "mlm", "clm", "rtd", "infoword")
    },
    **{name: (name, "documents", {}) for name in ("nsp", "structbert", "bart", "quick-thoughts", "skip-thought")},
    "simcse, cls": ("simcse", "sentences", {"pooling": "cls"}),
    "simcse in chunks": ("simcse", "sentences", {"chunk_size": 5, "gradient_accumulation_steps": 2}),
    "simcse + mlm": ("simcse", "sentences", {"mlm_weight": 0.1}),
    "simcse + rtd": ("simcse", "sentences", {"rtd_weight": 0.05}),
    "simcse-supervised": ("simcse-supervised", "triples", {}),
    "simclr": ("simclr", "sentences", {}),
    "moco": ("moco", "sentences", {"queue": 256}),
    "vascl": ("vascl", "sentences", {"neighbours": 4}),
    "dclr": ("dclr", "sentences", {}),
    "declutr": ("declutr", "documents", {"batch_size": 8}),
    "ease": ("ease", "linked", {}),
    "supcon": ("supcon", "labelled", {}),
    "fine-tune": ("fine-tune", "labelled", {}),
    "fine-tune, child-tuning F": ("fine-tune", "labelled", {"child_tuning": "F"}),
    "fine-tune, child-tuning D": ("fine-tune", "labelled", {"child_tuning": "D", "child_samples": 32}),
    "fine-tune, chain-thaw": ("fine-tune", "labelled", {"chain_thaw": "even", "max_steps": 18}),
    "word2vec": ("word2vec", "sentences", {"batch_size": 64, "max_steps": 12}),
}


def write_texts(data: Path, folder: Path) -> dict[str, Path]:
    """Small files of every record type that the jobs take."""
    with lzma.open(data / "corpora" / "wikinews_docs.txt.xz", "rt", encoding="utf-8") as source:
        lines = [next(source) for _ in range(3000)]
    with gzip.open(data / "nli" / "triples.tsv.gz", "rt", encoding="utf-8") as source:
        triples = [next(source) for _ in range(1500)]
    sentences = [line.strip() for line in lines if line.strip()]
    rows = [sentence.replace("\t", " ") for sentence in sentences[:1200]]
    linked = [f"{row}\tentity {n % 60}\tentity {(n + 7) % 60}|entity {(n + 9) % 60}\n" for n, row in enumerate(rows)]
    labelled = [f"{row}\t{'long' if len(row) > 120 else 'short'}\n" for row in rows]
    contents = {
        "documents.txt": lines,
        "sentences.txt": [f"{sentence}\n" for sentence in sentences],
        "triples.tsv": triples,
        "linked.tsv": ["sentence\tentity\thard_entities\n", *linked],
        "labelled.tsv": ["text\tlabel\n", *labelled],
    }
    for name, content in contents.items():
        (folder / name).write_text("".join(content), encoding="utf-8")
    return {name.split(".")[0]: folder / name for name in contents}


def digest(folder: Path) -> str:
    """All parameters and buffers of a saved encoder, by name."""
    import isotrope

    encoder = isotrope.load(folder, device="cpu")
    state = hashlib.sha256()
    for _, tensor in sorted({**dict(encoder.named_parameters()), **dict(encoder.named_buffers())}.items()):
        state.update(tensor.detach().contiguous().numpy().tobytes())
    return state.hexdigest()[:16]


def results(data: Path, wanted: list[str], work: Path) -> Iterator[tuple[str, str]]:
    import isotrope

    texts = write_texts(data, work)
    for label, (method, text, settings) in JOBS.items():
        if not wanted or method in wanted:
            run = isotrope.train(method, texts[text], output=work / label, final_table=False, **{**LOOP, **settings})
            yield label, digest(run.folder / "model")
    for tasks in ("mlm", "mlm,sop") if not wanted or "pretrain" in wanted else ():
        whole, cut = work / f"whole {tasks}", work / f"cut {tasks}"
        isotrope.pretrain([texts["documents"]], whole, tasks=tasks, **PRETRAIN)
        yield f"pretrain {tasks}", digest(whole / "model")
        isotrope.pretrain([texts["documents"]], cut, tasks=tasks, minutes=1e-9, **PRETRAIN)
        isotrope.pretrain([texts["documents"]], cut, tasks=tasks, resume=True, **PRETRAIN)
        yield f"pretrain {tasks}, resumed", digest(cut / "model")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("names", nargs="*", help="methods, or pretrain; all where none is named")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ISOTROPE_CACHE"] = str(Path(folder, "cache"))
        import torch

        torch.set_num_threads(1)
        for label, found in results(asked.data_dir, asked.names, Path(folder)):
            print(f"{found}  {label}", flush=True)


if __name__ == "__main__":
    main()
