"""What an encoder does besides ``encode``: queries and documents by their prompts, classes, other threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError, nearest

if TYPE_CHECKING:
    from isotrope.encoders.classifier import Classifier
    from isotrope.encoders.encoder import Encoder

PROMPTS = "prompts"  # the fact that names prompts besides the model's own, one for each kind of text
PROMPT_POOLED = "include_prompt"  # the fact that says False where a folder leaves prompts out of its pooling
QUERY_NAMES = ("query",)
DOCUMENT_NAMES = ("document", "passage", "corpus")  # the order of sentence-transformers' own documentation
_one_at_a_time = threading.Lock()  # tokenizers and modes of modules are shared by threads


class EncoderUses:
    """Inherited by ``Encoder``; each method is a few lines over ``encode``."""

    classifier: Classifier | None = None  # kept with the model; a map after the encoder drops it
    facts: dict[str, Any]
    prompt: str

    def encode(self, texts: str | Sequence[str], *options: Any, **named: Any) -> Any:
        raise NotImplementedError

    def with_prompt(self, prompt: str) -> Encoder:
        raise NotImplementedError

    @property
    def prompts(self) -> dict[str, str]:
        """Prompts by name, such as query and document; ``prompt`` itself is the default."""
        return dict(self.facts.get(PROMPTS, {}))

    @prompts.setter
    def prompts(self, prompts: Mapping[str, str]) -> None:
        wrong = [name for name, text in prompts.items() if not (isinstance(name, str) and isinstance(text, str))]
        if wrong or "default" in prompts:
            raise InputError("prompts maps names to texts; the default one is set as `prompt`.", setting="prompts")
        self.facts = {**self.facts, PROMPTS: dict(prompts)}

    def prompt_named(self, name: str) -> str:
        """The prompt of that name; an unknown one is refused."""
        known = {"default": self.prompt, **self.prompts}
        if name not in known:
            raise InputError(f"This model has no prompt '{name}'{nearest(name, known)}", setting="prompt_name")
        return known[name]

    def encode_query(self, texts: str | Sequence[str], **options: Any) -> Any:
        """``encode`` with the prompt named query, or with none, as in sentence-transformers."""
        return self._encode_as(QUERY_NAMES, texts, options)

    def encode_document(self, texts: str | Sequence[str], **options: Any) -> Any:
        """``encode`` with the prompt named document (or passage, or corpus), or with none.

        sentence-transformers 6 means to do the same, but it gives every model an empty prompt named document, which
        wins: a model whose documents have a prompt under another name encodes them without it there.
        """
        return self._encode_as(DOCUMENT_NAMES, texts, options)

    def _encode_as(self, names: Sequence[str], texts: str | Sequence[str], options: dict[str, Any]) -> Any:
        if not {"prompt", "prompt_name"} & set(options):
            found = self._first_prompt(names)
            options = {**options, "prompt": "" if found is None else self.prompts[found]}
        return self.encode(texts, **options)

    def prompted(self, names: Sequence[str]) -> Encoder:
        """With the prompt of the first of these names that the model has; itself where it has none of them."""
        found = self._first_prompt(names)
        return self.with_prompt(self.prompt if found is None else self.prompt_named(found))

    def _first_prompt(self, names: Sequence[str]) -> str | None:
        return next((name for name in names if name in self.prompts), None)

    async def encode_async(self, texts: str | Sequence[str], **options: Any) -> Any:
        """``encode`` in a thread, so that an event loop goes on meanwhile; calls wait for each other."""

        def work() -> Any:
            with _one_at_a_time:
                return self.encode(texts, **options)

        return await asyncio.to_thread(work)

    def predict(self, texts: Any, **options: Any) -> Any:
        """The class of each text (or of each pair): one text gives a word, a list an array.

        Where a text may have several labels, each gives a tuple of them; a model of scores gives numbers. The model
        must keep a classifier: `isotrope train head`, fine-tune, supcon and deepmoji leave one.
        """
        from isotrope.encoders.prediction import predict

        return predict(self, texts, **options)  # type: ignore[arg-type]

    def predict_proba(self, texts: Any, **options: Any) -> Any:
        """The probability of each class, in the order of ``classifier.classes_``: [classes], or [texts, classes]."""
        from isotrope.encoders.prediction import predict_proba

        return predict_proba(self, texts, **options)  # type: ignore[arg-type]
