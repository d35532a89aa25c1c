"""What pre-training reads:

packed rows for masked language modelling alone, pairs of segments where there is a sentence task.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from isotrope.data.batches import Rows
from isotrope.data.corpus import Records, open_documents
from isotrope.data.packing import held_documents, pack
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import evaluating
from isotrope.errors import InputError
from isotrope.methods.frame.masked_pairs import MaskedPairs
from isotrope.methods.frame.method import Batch, Method
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.methods.nsp import SentencePairs
from isotrope.training.own_task import represent_aside
from isotrope.training.prefetch import prefetched, stream
from isotrope.training.pretrain_settings import PretrainSettings
from isotrope.training.settings import LoopSettings
from isotrope.training.step import keyed_seed
from isotrope.views.masking import mask_rows

HELD_ROWS = 512  # at most, always the same


class Text(Protocol):
    """A text and the tasks over it. It is checked when it is made; nothing of the run is on disk yet."""

    method: Method
    facts: dict[str, Any]

    def begin(self, step: int, device: torch.device) -> None:
        """Batches from this step on."""

    def terms(self, step: int) -> dict[str, Tensor]:
        """Named losses of a step; torch's seed is set for it."""

    def held_out(self) -> dict[str, float]:
        """Loss and figures of each task, on documents that training never sees, under the same masks and pairs each
        time.
        """

    def close(self) -> None: ...


class RunningText:
    """Every row is full, exactly k of its tokens are asked for. On a GPU the text lies in its memory, masks are drawn
    there, the step is compiled."""

    def __init__(self, sources: Any, encoder: Encoder, settings: PretrainSettings) -> None:
        tokenizer = encoder.text_tokenizer
        ends = tokenizer.prefix[0], tokenizer.suffix[0]
        text = pack(sources, tokenizer, *ends, settings.length)
        if len(text.train) < settings.batch_size:
            raise InputError(
                f"The text gives {len(text.train):,} rows, fewer than batch_size ({settings.batch_size}); bring more text."
            )
        self.text, self.settings = text, settings
        self.facts: dict[str, Any] = {
            "fingerprint": text.fingerprint,
            "rows": len(text.train),
            "documents": text.documents,
            "sentences": text.sentences,
        }
        self.language = _language(encoder, settings)
        self.method: Method = self.language

    def begin(self, step: int, device: torch.device) -> None:
        self.device = device
        resident = device.type == "cuda"
        self.train = torch.from_numpy(self.text.train.astype(np.int32)).to(device) if resident else None
        self.epoch, self.order = -1, torch.empty(0, dtype=torch.int64)
        tokenizer, settings = self.method.encoder.text_tokenizer, self.settings
        self.hide = (
            partial(  # all that it takes is known here: nothing of the tokenizer is asked inside the compiled step
                mask_rows,
                specials=torch.tensor(sorted(tokenizer.specials), device=device),
                mask=int(tokenizer.mask or 0),
                vocabulary=tokenizer.vocabulary,
                count=max(round(settings.mask_rate * (settings.length - 2)), 1),
                keep=settings.keep,
                replace=settings.replace,
            )
        )
        self.loss_of = torch.compile(self._loss) if resident else self._loss

    def terms(self, step: int) -> dict[str, Tensor]:
        return {"mlm": self.loss_of(self._batch(step))}

    def held_out(self) -> dict[str, float]:
        rows = torch.from_numpy(self.text.held[:HELD_ROWS].astype(np.int64)).to(self.device)
        with evaluating(self.method):
            torch.manual_seed(0)
            losses = torch.cat([self._losses(part) for part in rows.split(self.settings.batch_size)])
            return figures(self.method, {"token_losses": losses})

    def close(self) -> None:
        pass

    def _loss(self, ids: Tensor) -> Tensor:
        return self._losses(ids).mean()

    def _losses(self, ids: Tensor) -> Tensor:
        """Of the tokens that are asked for, after fresh masks. No attention mask: there is no padding."""
        shown, asked, answers = self.hide(ids)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            states = self.method.encoder.backbone(input_ids=shown).last_hidden_state
            return self.language.losses_at(states, asked, answers)

    def _batch(self, step: int) -> Tensor:
        """Rows by step: a new order each epoch, the same for the same seed."""
        size = self.settings.batch_size
        epoch, place = divmod(step, len(self.text.train) // size)
        if epoch != self.epoch:
            generator = torch.Generator().manual_seed(keyed_seed(self.settings.seed, 1, epoch))
            self.epoch, self.order = epoch, torch.randperm(len(self.text.train), generator=generator)
            self.order = self.order.to(self.device) if self.train is not None else self.order
        chosen = self.order[place * size : (place + 1) * size]
        if self.train is not None:
            return self.train[chosen].long()
        return torch.from_numpy(self.text.train[chosen.numpy()].astype(np.int64))


class PairedText:
    """Pairs of segments of documents, drawn anew for every step, in a thread.

    The method is the one that ``isotrope train`` has.
    """

    def __init__(self, sources: Any, encoder: Encoder, settings: PretrainSettings) -> None:
        tokenizer = encoder.text_tokenizer
        self.settings = settings
        self.corpus = open_documents(sources, tokenizer)
        kind = next(kind for kind in settings.methods() if issubclass(kind, SentencePairs))
        own = kind.Settings(**({"mask_rate": settings.mask_rate} if issubclass(kind, MaskedLanguageModel) else {}))
        rows = kind.usable(own, self.corpus, np.arange(len(self.corpus)))
        aside = held_documents(self.corpus.documents[rows], self.corpus.counts.documents)
        self.train, self.held = rows[~aside], rows[aside][:HELD_ROWS]
        if len(self.train) < settings.batch_size:
            raise InputError(
                f"The text gives {len(self.train):,} pairs, fewer than batch_size ({settings.batch_size}); bring more text."
            )
        counts = self.corpus.counts
        self.facts: dict[str, Any] = {
            "fingerprint": self.corpus.fingerprint,
            "rows": len(self.train),
            "documents": counts.documents,
            "sentences": counts.records,
        }
        torch.manual_seed(settings.seed)  # the head is drawn
        task = kind(own, encoder, settings.length, self.corpus)
        self.method: Method = task
        if isinstance(task, MaskedLanguageModel):
            task.keep, task.replace = settings.keep, settings.replace
        elif MaskedLanguageModel in settings.methods():
            self.method = MaskedPairs(task, _language(encoder, settings))
        self.source: Generator[tuple[int, Batch], None, None] | None = None

    def begin(self, step: int, device: torch.device) -> None:
        self.device = device
        loop = LoopSettings(batch_size=self.settings.batch_size, seed=self.settings.seed)
        self.source = prefetched(self._make, stream(self.method.batches, self.corpus, self.train, loop), skip=step)

    def terms(self, step: int) -> dict[str, Tensor]:
        assert self.source is not None
        _, batch = next(self.source)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            found = self.method.represent(batch.to(self.device))
        return self.method.loss(
            {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in found.items()}, batch
        )

    def held_out(self) -> dict[str, float]:
        size = min(self.settings.batch_size, len(self.held))
        with evaluating(self.method):
            return figures(self.method, represent_aside(self.method, self.corpus, self.held, size, self.settings.seed))

    def close(self) -> None:
        if self.source is not None:
            self.source.close()

    def _make(self, number: int, chosen: Rows) -> Batch:
        records = Records(self.corpus, chosen.tolist())
        views = self.method.views(records, np.random.default_rng([self.settings.seed, number]))
        return Batch(views, len(records), keyed_seed(self.settings.seed, number))


def figures(method: Method, representations: dict[str, Tensor]) -> dict[str, float]:
    """The loss, and what the tasks say of themselves."""
    total = method.total(method.loss(representations, Batch({}, 0, 0)))
    return {
        "held_out_loss": float(total),
        **{name: float(value) for name, value in method.on_held_out(representations).items()},
    }


def _language(encoder: Encoder, settings: PretrainSettings) -> MaskedLanguageModel:
    language = MaskedLanguageModel(MLMSettings(settings.mask_rate), encoder, settings.length)
    language.keep, language.replace = settings.keep, settings.replace
    return language
