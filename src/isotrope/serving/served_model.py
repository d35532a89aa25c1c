"""A model as the service sees it: its name, how many tokens a text has, and the tasks that the queue computes."""

from __future__ import annotations

import asyncio
import copy
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.evaluation.judged_models import find_models
from isotrope.methods.frame.matryoshka import parse_widths
from isotrope.serving.batch_queue import Task
from isotrope.serving.refusals import Refusal
from isotrope.tokens.text_tokenizer import TextTokenizer

CHARACTERS = 100_000  # tokenized at once: a long request lets shorter ones pass
LETTERS = 32  # for each token that the model reads, tokenized first of a long text
SPARE = 64  # tokens
SORTED = ("static", "whitening")  # their directions are sorted by strength, so that any number of them will do
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Measured:
    """Tokens that the model reads of each text, special tokens counted, and how many texts are cut to that.

    ``texts`` are those given, but for the far ends that the model would not read anyway.
    """

    texts: list[str]
    tokens: list[int]
    cut: int

    @property
    def total(self) -> int:
        return sum(self.tokens)


class ServedModel:
    """An encoder under a name. Its vectors are computed in the queue's thread, its tokens counted in another.

    The tokenizer that counts is a copy: the one of an encoder cannot be used by two threads at a time.
    """

    def __init__(self, name: str, encoder: Encoder) -> None:
        self.name, self.encoder = name, encoder
        self.fingerprint = encoder.fingerprint()
        self._counting = TextTokenizer(copy.deepcopy(encoder.tokenizer), encoder.prompt)
        self._thread = ThreadPoolExecutor(1, f"isotrope-tokens-{name}")
        self._tasks = {"": Task(f"embed {name}", self._vectors)}
        self.predict = Task(f"predict {name}", self._predictions)

    def _vectors(self, texts: list[Any]) -> Sequence[Any]:
        return list(self.encoder.encode(texts, show_progress_bar=False))

    def embed(self, prompt_name: str | None = None) -> Task:
        """Vectors of texts, behind a named prompt where one is given."""
        name = prompt_name or ""
        if name not in self._tasks:
            self.prompt(name)

            def vectors(texts: list[Any]) -> Sequence[Any]:
                encode: Any = self.encoder.encode
                return list(encode(texts, prompt_name=name, show_progress_bar=False))

            self._tasks[name] = Task(f"embed {self.name} {name}", vectors)
        return self._tasks[name]

    def _predictions(self, texts: list[Any]) -> Sequence[Any]:
        encoder: Any = self.encoder
        head = self.classifier
        return list(encoder.predict(texts) if head.task == "score" else encoder.predict_proba(texts))

    @property
    def classifier(self) -> Any:
        """What the model keeps to predict with: ``classes_``, ``task`` and ``inputs``; a model without is refused."""
        found = getattr(self.encoder, "classifier", None)
        if found is None:
            raise Refusal(
                422,
                f"The model '{self.name}' keeps no classifier, so it cannot predict; learn one with "
                "`isotrope train head LABELS --model MODEL` and serve that folder.",
            )
        return found

    def prompt(self, name: str | None) -> str:
        """The text before each input: a named prompt, or the model's own."""
        if not name:
            return self.encoder.prompt
        known = getattr(self.encoder, "prompts", None) or {}
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise Refusal(422, f"The model '{self.name}' has no prompt {name[:40]!r}; it has: {names}.", "prompt_name")
        return str(known[name])

    async def measure(self, texts: list[str], prompt_name: str | None = None) -> Measured:
        """Count the tokens of all texts, in stretches, away from the loop that answers others."""
        loop, prompt = asyncio.get_running_loop(), self.prompt(prompt_name)
        read: list[tuple[str, int]] = []
        for part in _stretches(texts):
            read += await loop.run_in_executor(self._thread, self._measured, part, prompt)
        most = self.encoder.max_length
        lengths = [length for _, length in read]
        return Measured(
            [text for text, _ in read], [min(length, most) for length in lengths], sum(n > most for n in lengths)
        )

    def _measured(self, texts: list[str], prompt: str) -> list[tuple[str, int]]:
        """Each text and its tokens. Of a long one the beginning is tokenized alone: it is cut there in any case.

        The beginning must have ``SPARE`` tokens more than the model reads: where it was cut, its last word differs.
        """
        most = self.encoder.max_length
        starts = [text[: LETTERS * most] for text in texts]
        lengths = self._lengths(starts, prompt)
        open_ends = [
            row for row, text in enumerate(texts) if len(text) > len(starts[row]) and lengths[row] <= most + SPARE
        ]
        for row, length in zip(open_ends, self._lengths([texts[row] for row in open_ends], prompt), strict=True):
            starts[row], lengths[row] = texts[row], length
        return list(zip(starts, lengths, strict=True))

    def _lengths(self, texts: list[str], prompt: str) -> list[int]:
        extra = len(self._counting.start) + len(self._counting.suffix)
        found: list[int] = self._counting.flat([prompt + text for text in texts])[1].tolist()
        return [length + extra for length in found]

    async def tokenize(self, texts: list[str], special: bool) -> list[list[dict[str, Any]]]:
        """In the shape of text-embeddings-inference: id, text, special, start and stop of each token."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._tokens, texts, special)

    def _tokens(self, texts: list[str], special: bool) -> list[list[dict[str, Any]]]:
        backend = getattr(self._counting.tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise Refusal(422, f"The tokenizer of '{self.name}' does not say where its tokens stand.")
        backend.no_truncation()
        backend.no_padding()
        rows = []
        for encoding in backend.encode_batch(texts, add_special_tokens=special):
            marks = zip(encoding.ids, encoding.tokens, encoding.special_tokens_mask, encoding.offsets, strict=True)
            rows.append(
                [
                    {
                        "id": number,
                        "text": token,
                        "special": bool(is_special),
                        "start": None if is_special else start,
                        "stop": None if is_special else stop,
                    }
                    for number, token, is_special, (start, stop) in marks
                ]
            )
        return rows

    def check_dimensions(self, dimensions: int | None) -> int:
        """The width that was asked for, refused where the model was not trained to be cut there."""
        whole = self.encoder.dimension
        if dimensions is None or dimensions == whole:
            return whole
        if not 1 <= dimensions <= whole:
            raise Refusal(422, f"'dimensions' lies between 1 and {whole:,} for '{self.name}'.", "dimensions")
        widths = trained_widths(self.encoder)
        if widths is not None and dimensions not in widths:
            known = ", ".join(str(width) for width in [*widths, whole])
            hint = "" if widths else "; train it with matryoshka to cut its vectors"
            raise Refusal(
                422,
                f"The model '{self.name}' was not trained for {dimensions:,} dimensions; it has {known}{hint}.",
                "dimensions",
            )
        return dimensions

    def close(self) -> None:
        self._thread.shutdown(wait=False)


def trained_widths(encoder: Encoder) -> tuple[int, ...] | None:
    """The widths that ``matryoshka`` trained; None where any width will do."""
    spaces = [str(space.get("name")) for space in encoder.facts.get("spaces", []) if isinstance(space, dict)]
    last = spaces[-1] if spaces else encoder.facts.get("method")
    if last in SORTED:
        return None
    settings = encoder.facts.get("settings")
    given = settings.get("matryoshka") if isinstance(settings, dict) and not spaces else None
    try:
        return tuple(width for width in parse_widths(given) if width < encoder.dimension)
    except InputError:
        return ()


def open_models(given: Sequence[Encoder | str | os.PathLike[str]]) -> list[ServedModel]:
    """Each under its own name: that of its folder, or NAME where NAME=MODEL was given."""
    if not given:
        raise InputError("serve needs at least one model: a folder, a hub id or builtin.", setting="models")
    names: list[str] = []
    places: list[Any] = []
    for one in given:
        name, place = _named(one)
        (found,) = find_models([place])
        if len(found.runs) != 1:
            raise InputError(f"{place}: these are {len(found.runs)} runs; name one of them.", setting="models")
        name = name or found.name
        if name in names:
            raise InputError(f"Two models are named '{name}'; give one another name as NAME=MODEL.", setting="models")
        names.append(name)
        places.append(found.runs[0])
    opened = [place if isinstance(place, Encoder) else load(place) for place in places]
    for place, encoder in zip(places, opened, strict=True):
        if encoder.tokenizer is None:
            raise InputError(f"{place}: the model reads images, and serve answers texts.", setting="models")
    return [ServedModel(name, encoder.eval()) for name, encoder in zip(names, opened, strict=True)]


def _named(given: Encoder | str | os.PathLike[str]) -> tuple[str, Any]:
    if not isinstance(given, str) or "=" not in given or Path(given).exists():
        return "", given
    name, _, place = given.partition("=")
    if not name.strip():
        raise InputError(f"'{given}': no name stands before the =; write NAME=MODEL, or MODEL alone.", setting="models")
    return name.strip(), place


def _stretches(texts: list[str]) -> list[list[str]]:
    """In pieces of about so many characters, whole texts each."""
    pieces: list[list[str]] = [[]]
    size = 0
    for text in texts:
        if size and size + len(text) > CHARACTERS:
            pieces.append([])
            size = 0
        pieces[-1].append(text)
        size += len(text)
    return pieces
