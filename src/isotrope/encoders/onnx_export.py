"""Write an encoder as a folder that runs without torch: one ONNX graph, its tokenizer, and how far its vectors moved.

    onnx/model.onnx             float32        the layout that transformers.js looks for
    onnx/model_quantized.onnx   int8           weights in int8, a scale for each output channel; states are quantised
                                               when they are seen (each product with the range of its own batch)
    tokenizer.json, config.json, isotrope.json, and classifier/ where the model keeps one

The drift is measured on real sentences against the encoder itself and stored in isotrope.json. Where int8 everywhere
costs more than it should, the products from the wide state of a layer back to its width, whose inputs have the largest
outliers, stay in float32.
"""

from __future__ import annotations

import ast
import logging
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.checksums import sum_of
from isotrope.encoders.classifier import FOLDER
from isotrope.encoders.encoder import Encoder, Vectors
from isotrope.encoders.onnx_encoder import FACTS, PROBE, OnnxEncoder, OnnxGraph, open_session, read_onnx
from isotrope.encoders.onnx_graph import needs, write_graph
from isotrope.encoders.quiet import quiet
from isotrope.encoders.word_vectors import StaticVectors
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, discard, write_json, written_folder
from isotrope.progress import say

FLOAT32, INT8 = "onnx/model.onnx", "onnx/model_quantized.onnx"
WHOLE = "isotrope.json"  # a cached export with this file is whole
CLOSE = 0.99  # mean cosine below which int8 is taken back where it hurts most
TEXTS = 256  # sentences for the drift, where none are given


@dataclass(frozen=True)
class Drift:
    """How far the exported vectors are from the encoder's own: cosines of the same text, changes of similarities."""

    texts: int
    mean_cosine: float
    least_cosine: float
    mean_change: float  # of the cosine of two different texts, absolute

    @classmethod
    def between(cls, own: Vectors, exported: Vectors) -> Drift:
        first, second = (
            rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (own, exported)
        )
        same = (first * second).sum(axis=1)
        change = np.abs(first @ first.T - second @ second.T)[~np.eye(len(own), dtype=bool)]
        found = (float(same.mean()), float(same.min()), float(change.mean()) if change.size else 0.0)
        return cls(len(own), *(round(one, 6) for one in found))

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def int8_copy(encoder: Encoder) -> Encoder:
    """The same model in int8, by an export that is kept in the cache; an export is taken as it is."""
    if isinstance(encoder, OnnxEncoder):
        return encoder
    folder = cache_folder() / "exports" / digest(encoder.fingerprint(), str(needs("onnxruntime").__version__))
    if (folder / WHOLE).is_file():
        try:
            return read_onnx(folder, None, False)
        except InputError as error:
            say(f"{error} It is made anew.")
            discard(folder)
    drift = export(encoder, folder, int8=True, whole=WHOLE)
    say(f"exported to int8: mean cosine {drift.mean_cosine:.5f} with float32, least {drift.least_cosine:.4f}")
    return read_onnx(folder, None, False)


def export(
    encoder: Encoder, folder: Path, int8: bool, texts: Sequence[str] | None = None, whole: str | None = None
) -> Drift:
    """Write the folder and return the drift; nothing is left behind where it fails.

    ``whole``: the folder is one of a cache, so one that holds this file is as good, and any other is replaced.
    """
    if isinstance(encoder, OnnxEncoder):
        raise InputError("This model is an export already; export the model that it was made of.")
    sample = list(texts or usual_texts(TEXTS))
    with written_folder(folder, whole) as temporary:
        (temporary / "onnx").mkdir()
        plain = temporary / FLOAT32
        write_graph(encoder, plain)
        own, kept = encoder.encode(sample, show_progress_bar=False), 0
        file = plain
        if int8:
            file = temporary / INT8
            wide = wide_products(plain)
            for excluded in ([], wide) if wide else ([],):
                _quantize(plain, file, excluded)
                kept = len(excluded)
                drift = Drift.between(own, _opened(encoder, file).encode(sample, show_progress_bar=False))
                if drift.mean_cosine >= CLOSE:
                    break
            plain.unlink()
        exported = _opened(encoder, file)
        drift = Drift.between(own, exported.encode(sample, show_progress_bar=False))
        if int8 and drift.mean_cosine < CLOSE:
            say(f"int8 moves this model's vectors to a mean cosine of {drift.mean_cosine:.4f}; float32 does not.")
        with quiet():
            encoder.tokenizer.save_pretrained(temporary)
            if not isinstance(encoder.backbone, StaticVectors):
                encoder.backbone.config.save_pretrained(temporary)
        described = {
            "file": INT8 if int8 else FLOAT32,
            "sum": sum_of(file),
            "dimension": encoder.dimension,
            "pooling": encoder.pooling.name,
            "max_length": encoder.max_length,
            "prompt": encoder.prompt,
            "float32_products": kept,
            "exported_from": encoder.fingerprint(),
            "drift": drift.to_dict(),
            "probe": [round(float(value), 6) for value in exported.encode(PROBE)],
        }
        if encoder.classifier is not None and encoder.classifier.inputs == 1:
            encoder.classifier.write(temporary / FOLDER)
        elif encoder.classifier is not None:
            say("The classifier reads pairs in one row of tokens, which the graph does not; it is not exported.")
        write_json(temporary / WHOLE, {**encoder.facts, FACTS: described})
    return drift


def _opened(encoder: Encoder, file: Path) -> OnnxEncoder:
    """The exported graph behind the encoder's own tokenizer."""
    graph = OnnxGraph(open_session(file), encoder.dimension, encoder.max_length)
    return OnnxEncoder(
        graph, encoder.tokenizer, [], max_length=encoder.max_length, prompt=encoder.prompt, content="not stored yet"
    )


def _quantize(plain: Path, file: Path, excluded: Sequence[str]) -> None:
    quantization = needs("onnxruntime.quantization")
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addFilter(_no_advice)
    root.addHandler(silent)  # it logs by the root, which without a handler makes one that would repeat our own lines
    try:
        quantization.quantize_dynamic(
            plain,
            file,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            weight_type=quantization.QuantType.QInt8,
            nodes_to_exclude=list(excluded),
            extra_options={"MatMulConstBOnly": True},
        )
    finally:
        root.removeHandler(silent)
        root.removeFilter(_no_advice)


def _no_advice(record: logging.LogRecord) -> bool:
    return "pre-processing before quantization" not in record.getMessage()


def wide_products(file: Path) -> list[str]:
    """Names of the products with a weight that is taller than wide: from a layer's wide state back to its width."""
    graph = needs("onnx").load(str(file), load_external_data=False).graph
    shapes = {weight.name: tuple(weight.dims) for weight in graph.initializer}
    taller = {name for name, shape in shapes.items() if len(shape) == 2 and shape[0] > shape[1]}
    return [node.name for node in graph.node if node.op_type == "MatMul" and node.input[1] in taller]


def usual_texts(count: int) -> list[str]:
    """Sentences that every machine has: first lines of docstrings in Python's standard library."""
    found: dict[str, None] = {}
    for line in _docstrings():
        if 20 <= len(line) <= 300 and line.isascii():
            found.setdefault(line)
        if len(found) == count:
            break
    return list(found)


def _docstrings() -> Iterator[str]:
    for file in sorted(Path(os.__file__).parent.glob("*.py")):
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, OSError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                yield re.split(r"\n\s*\n", text)[0].replace("\n", " ")
