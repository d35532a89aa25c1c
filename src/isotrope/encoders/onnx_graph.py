"""An encoder as one ONNX graph: token ids and their mask in, sentence vectors out, pooling and modules included.

    (input_ids [rows, width], attention_mask [rows, width])  →  sentence_embedding [rows, dimension]

Other exporters end at the token states and leave pooling, dense layers and normalization to whoever opens the file.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import evaluating
from isotrope.errors import InputError
from isotrope.tokens.padded import Tokens

INPUTS = ("input_ids", "attention_mask")
OUTPUT = "sentence_embedding"
OPSET = 17  # the first with LayerNormalization as one operator
INSTALL = "pip install 'isotrope[onnx]'"


class _Graph(nn.Module):
    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        # Lengths are a host-side fact of batches, which a graph does not have; no forward reads them.
        vectors: Tensor = self.encoder(Tokens(input_ids, attention_mask, lengths=None))  # type: ignore[arg-type]
        return vectors


def needs(package: str) -> Any:
    """An optional package of the extra ``onnx``, or one sentence on how to get it."""
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise InputError(f"Exported models need the package {package.split('.')[0]}: {INSTALL}.") from error


def write_graph(encoder: Encoder, file: Path) -> None:
    """Trace the encoder with two rows of different length; both sizes of a batch stay free."""
    needs("onnx")
    tokens = encoder.tokenize(["a text that is traced", "another"]).to(encoder.device)
    sizes = {0: "batch", 1: "sequence"}
    implementation = getattr(encoder.backbone.config, "_attn_implementation", None)
    with evaluating(encoder), _quiet(), torch.no_grad():
        try:
            if implementation not in (None, "eager"):
                encoder.backbone.set_attn_implementation("eager")  # plain products, which every runtime fuses
            # The tracing exporter: onnxruntime's fusions know its graphs, those of torch.export they leave in pieces.
            torch.onnx.export(
                _Graph(encoder),
                (tokens.ids, tokens.mask),
                str(file),
                input_names=list(INPUTS),
                output_names=[OUTPUT],
                dynamic_axes={INPUTS[0]: sizes, INPUTS[1]: sizes, OUTPUT: {0: "batch"}},
                opset_version=OPSET,
                dynamo=False,
            )
        except (RuntimeError, TypeError, ValueError, AttributeError) as error:
            first = str(error).strip().split("\n")[0][:200]
            raise InputError(f"This model cannot be written as an ONNX graph ({first}).") from error
        finally:
            if implementation not in (None, "eager"):
                encoder.backbone.set_attn_implementation(implementation)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the tracer's remarks about constants in other people's code, nor its whole graph after a failure."""
    logger, tracer = logging.getLogger("torch.onnx"), torch._C
    level, log = logger.level, getattr(tracer, "_jit_onnx_log", None)
    logger.setLevel(logging.ERROR)
    setattr(tracer, "_jit_onnx_log", lambda *said: None)  # noqa: B010 - the exporter switches it on, whoever switched it off
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        setattr(tracer, "_jit_onnx_log", log)  # noqa: B010
