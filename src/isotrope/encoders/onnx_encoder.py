"""An exported model, opened again: the tokenizer of its folder and one ONNX graph, run by onnxruntime on the CPU.

It encodes, searches and is judged like any encoder. It has neither token states nor gradients: train, or fit what reads
states, with the model that it was exported from.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.checksums import sum_of
from isotrope.encoders.classifier import FOLDER, Classifier
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.group_threads import cores_each
from isotrope.encoders.onnx_graph import INPUTS, OUTPUT, needs
from isotrope.encoders.stored_fields import Fields
from isotrope.encoders.stored_files import gist, inside
from isotrope.encoders.stored_tokenizer import read_tokenizer
from isotrope.encoders.word_vectors import StaticConfig
from isotrope.errors import InputError
from isotrope.files import digest
from isotrope.tokens.padded import Tokens

FACTS = "onnx"  # in isotrope.json: what was exported, and the checksum of the file
PROBE = "The quick brown fox jumps over the lazy dog."
SAME = 0.9  # cosine of the probe; int8 differs a little from one processor to another, another model differs a lot
AGAIN = "export the model again"


class OnnxGraph(nn.Module):
    """A session in the place of a backbone; its config holds what other rooms read of one."""

    def __init__(self, session: Any, dimension: int, positions: int) -> None:
        super().__init__()
        self.config = StaticConfig(dimension, 0, max_position_embeddings=positions)
        self._session = (session,)  # in a tuple: no module, and not copied

    def forward(self, tokens: Tokens) -> Tensor:
        fed = dict(zip(INPUTS, (tokens.ids.numpy(), tokens.mask.numpy()), strict=True))
        (vectors,) = self._session[0].run([OUTPUT], fed)
        return torch.from_numpy(vectors)


class OnnxEncoder(Encoder):
    """An encoder whose graph ends with the sentence vector; modules that are added later follow it."""

    def __init__(self, graph: OnnxGraph, tokenizer: Any, parts: Sequence[nn.Module], **named: Any) -> None:
        self.content = str(named.pop("content"))
        super().__init__(graph, tokenizer, "mean", parts, **named)

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def token_budget(self) -> int:
        return 512  # the products of int8 are short of cache earlier than those of float32

    def with_parts(self, parts: Sequence[nn.Module]) -> Encoder:
        named = {"max_length": self.max_length, "prompt": self.prompt, "facts": self.facts, "content": self.content}
        return OnnxEncoder(self.backbone, self.tokenizer, parts, **named)

    def __deepcopy__(self, memo: dict[int, Any]) -> Encoder:
        return self.with_parts([copy.deepcopy(part, memo) for part in self.parts])  # a session cannot be copied

    def pooled(self, tokens: Tokens) -> Tensor:
        if torch.is_grad_enabled():
            raise InputError("An exported model has no gradients; train the model that it was exported from.")
        vectors: Tensor = self.backbone(tokens)
        return vectors

    def _pooled_layers(self, tokens: Tokens) -> Sequence[Tensor]:
        raise InputError("An exported model gives sentence vectors only; take the model that it was exported from.")

    def layers(self, tokens: Tokens) -> tuple[Tensor, ...]:
        return tuple(self._pooled_layers(tokens))

    def states(self, tokens: Tokens) -> Tensor:
        return self._pooled_layers(tokens)[-1]

    def fingerprint(self) -> str:
        weights = [str(tensor.tolist()) for part in self.parts for tensor in part.state_dict().values()]
        return digest(self.content, self.text_tokenizer.fingerprint(), str(self.max_length), self.prompt, *weights)

    def save(self, folder: str | os.PathLike[str]) -> None:
        raise InputError("An exported model is not saved again; copy its folder.")


def read_onnx(folder: Path, pooling: str | None, language_head: bool) -> Encoder:
    """The encoder of an exported folder; a damaged file, or one of another model, is refused."""
    described = folder / "isotrope.json"
    facts = Fields.of(described).facts
    told = facts[FACTS]
    if pooling is not None or language_head:
        raise InputError(f"{folder}: an exported model has its pooling inside and no language head; load the original.")
    if not isinstance(told, dict) or not {"file", "sum", "dimension", "max_length", "probe"} <= told.keys():
        raise InputError(f"{folder / 'isotrope.json'}: '{FACTS}' does not describe an exported file; {AGAIN}.")
    fields = Fields(described, told)
    file = inside(folder, fields.word("file"), described)
    if not file.is_file():
        raise InputError(f"{file}: the exported graph is missing; {AGAIN}, or copy the folder again.")
    found = sum_of(file)
    if found != told["sum"]:
        raise InputError(
            f"{file}: this is not the graph that was exported into this folder (its checksum differs): it is damaged "
            f"or belongs to another model; {AGAIN}."
        )
    positions = fields.count("max_length", 2, 10_000_000)
    graph = OnnxGraph(open_session(file), fields.count("dimension", 1, 10_000_000), positions)
    encoder = OnnxEncoder(
        graph,
        read_tokenizer(folder),
        [],
        max_length=positions,
        prompt=fields.word("prompt", ""),
        facts=facts,
        content=str(found),
    )
    _check_probe(folder, encoder, told["probe"])
    if (folder / FOLDER).is_dir():
        encoder.classifier = Classifier.read(folder / FOLDER, encoder.dimension)
    return encoder


def open_session(file: Path) -> Any:
    """A session with as many threads as torch has."""
    runtime = needs("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = cores_each()  # batches run side by side
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its classes are C++ exceptions by name only
        raise InputError(f"{file}: onnxruntime cannot open it ({gist(error)}); {AGAIN}.") from error
    names = [[one.name for one in side] for side in (session.get_inputs(), session.get_outputs())]
    if names != [list(INPUTS), [OUTPUT]]:
        raise InputError(f"{file}: it maps {names[0]} to {names[1]}, which no export of isotrope does; {AGAIN}.")
    return session


def _check_probe(folder: Path, encoder: Encoder, stored: Any) -> None:
    """One sentence must have the vector that it had: a tokenizer of another model is found here."""
    try:
        vector, stored = encoder.encode(PROBE), np.asarray(stored, dtype=np.float32)
        same = vector.shape == stored.shape and vector @ stored >= SAME * np.linalg.norm(vector) * np.linalg.norm(
            stored
        )
    except Exception as error:
        raise InputError(f"{folder}: the exported graph cannot be run ({gist(error)}); {AGAIN}.") from error
    if not same:
        raise InputError(
            f"{folder}: the exported graph does not give the vectors that it gave: its tokenizer or its graph is "
            f"another model's; {AGAIN}."
        )
