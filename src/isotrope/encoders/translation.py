"""Round trips: a text is translated into another language and back, and comes back as a paraphrase.

    text → model there (beam search, or sampling) → model back → paraphrase

Use them as the views of CERT, whose authors went through German and Chinese. They change words and order, where
``paraphrase.Paraphraser`` changes words alone. What goes wrong: short sentences come back as they were, names may not,
and a model of many languages must know its target language from its own generation_config.json.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isotrope.encoders.loading import HUB_FILES, default_device, find_folder
from isotrope.encoders.quiet import quiet
from isotrope.encoders.remote_code import named_as_trusted
from isotrope.encoders.stored_files import gist, read_facts
from isotrope.encoders.vector_groups import TOKEN_BUDGET, plan
from isotrope.errors import InputError, check_between

BLOCK = 2048  # texts whose order is changed for the sake of equal lengths
FILES = (*HUB_FILES, "*.spm", "*.bin")  # of a translator on a hub: pieces of both languages, weights of older models
EXAMPLE = "Helsinki-NLP/opus-mt-en-de"


@dataclass(frozen=True)
class Decoding:
    """Beam search with ``beams``, or tokens drawn at ``temperature``, where that is above 0, by ``seed``.

    Beam search gives the likeliest translation, and often the words that one had; sampling changes more and errs more.
    """

    beams: int = 4
    temperature: float = 0.0
    seed: int = 42

    def __post_init__(self) -> None:
        check_between("beams", self.beams, 1, 1_000)
        if not 0 <= self.temperature <= 10:
            raise InputError(f"temperature must lie between 0 and 10, not {self.temperature}.")

    def options(self) -> dict[str, Any]:
        if self.temperature:
            return {"do_sample": True, "temperature": self.temperature, "top_k": 0, "num_beams": 1}
        return {"do_sample": False, "num_beams": self.beams}


class Translator:
    """One direction: a sequence-to-sequence model and its tokenizer."""

    def __init__(self, name_or_path: str | os.PathLike[str], device: torch.device | None = None) -> None:
        folder = find_folder(str(name_or_path), FILES)
        check_translates(folder, str(name_or_path))
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        self.device = device or default_device()
        try:
            with quiet():
                code = {"local_files_only": True, "trust_remote_code": named_as_trusted(name_or_path, None)}
                self.tokenizer = AutoTokenizer.from_pretrained(folder, **code)
                model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32, weights_only=True, **code)
        except ImportError as error:
            raise InputError(
                f"{name_or_path}: its tokenizer needs sentencepiece; pip install sentencepiece."
            ) from error
        except Exception as error:  # whatever the library raises
            raise InputError(f"{name_or_path}: the translator cannot be loaded ({gist(error)}).") from error
        self.model = model.to(self.device).eval()
        limits = (getattr(model.config, "max_position_embeddings", None), self.tokenizer.model_max_length)
        self.positions = min(int(limit) for limit in limits if limit)

    def translate(self, texts: Sequence[str | None], decoding: Decoding, number: int = 0) -> list[str | None]:
        """One text for each; None for None, and for a text with more tokens than the model has positions.

        Texts of like length go together. ``number`` and the seed decide what is drawn.
        """
        found: list[str | None] = [None if text is None else "" for text in texts]
        asked = [place for place, text in enumerate(texts) if text]
        ids = self.tokenizer([str(texts[place]) for place in asked])["input_ids"] if asked else []
        lengths = np.array([len(row) for row in ids], dtype=np.int64)
        for place in np.flatnonzero(lengths > self.positions):
            found[asked[place]] = None
        fitting = np.flatnonzero(lengths <= self.positions)
        budget = TOKEN_BUDGET.get(self.device.type, TOKEN_BUDGET["cuda"]) // (
            1 if decoding.temperature else decoding.beams
        )
        for batch, group in enumerate(plan(lengths[fitting], max(budget, 1))):
            rows = fitting[group]
            written = self._generate([ids[row] for row in rows], decoding, (decoding.seed, number, batch))
            for row, text in zip(rows, written, strict=True):
                found[asked[row]] = " ".join(text.split())
        return found

    def _generate(self, ids: list[list[int]], decoding: Decoding, key: tuple[int, int, int]) -> list[str]:
        batch = self.tokenizer.pad({"input_ids": ids}, return_tensors="pt").to(self.device)
        seed = int(np.random.default_rng(key).integers(1 << 62))
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.inference_mode(), torch.random.fork_rng(devices), quiet():
            torch.manual_seed(seed)
            written = self.model.generate(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                max_new_tokens=self.positions - 1,  # a limit by length would depend on the batch
                max_length=None,
                **decoding.options(),
            )
        return [str(text) for text in self.tokenizer.batch_decode(written, skip_special_tokens=True)]


class RoundTrip:
    """Two translators, there and back."""

    def __init__(self, there: Translator, back: Translator, decoding: Decoding) -> None:
        self.there, self.back, self.decoding = there, back, decoding

    @classmethod
    def between(cls, models: Sequence[str | os.PathLike[str]], decoding: Decoding) -> RoundTrip:
        """The round trip over two models, there and back."""
        if isinstance(models, str | os.PathLike) or len(models) != 2:
            raise InputError("round_trip takes two models: one that translates there, and one that translates back.")
        there, back = (Translator(model) for model in models)
        return cls(there, back, decoding)

    def texts(self, texts: Iterable[str]) -> Iterator[str | None]:
        """Each text as it comes back, in order; None where it is too long for a model, empty where nothing came."""
        rest = iter(texts)
        number = 0
        while block := list(islice(rest, BLOCK)):
            away = self.there.translate(block, self.decoding, number)
            yield from self.back.translate(away, self.decoding, number + 1)
            number += 2


def check_translates(folder: Path, name: str) -> None:
    """Refuse a model that writes no text from text, by its config alone."""
    if not (folder / "config.json").is_file():
        raise InputError(f"{name}: no config.json; give a sequence-to-sequence model such as {EXAMPLE}.")
    config = read_facts(folder / "config.json")
    if not config.get("is_encoder_decoder"):
        kind = str(config.get("model_type") or "unknown")
        raise InputError(
            f"{name} is a {kind.upper()} model and cannot translate; give a seq2seq model such as {EXAMPLE}."
        )
