"""Masked language modelling over running text: every row is full, and the same number of its tokens is masked.

On a GPU the text lies in its memory and masks are drawn there, so that no step waits for the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from isotrope.data.packing import PackedText
from isotrope.data.random_streams import keyed_seed
from isotrope.encoders.language_head import answer_losses
from isotrope.encoders.unpadded import Unpadded, unpadded
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.masked_language import MaskedLanguage
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.own_task import OwnTask
from isotrope.tokens.padded import Tokens
from isotrope.training.feeds import Numbered
from isotrope.training.loop_settings import LoopSettings
from isotrope.views.masking import mask_rows

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True)
class PackedRows:
    """Rows without padding, [rows, length]."""

    ids: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def to(self, device: torch.device) -> PackedRows:
        return PackedRows(self.ids.to(device, non_blocking=True))

    def rows(self, rows: slice) -> PackedRows:
        return PackedRows(self.ids[rows])


class PackedLanguage(Method[Any], OwnTask):
    """``language`` over packed rows: no attention mask, for there is no padding; fresh masks at each forward."""

    keeps = "last"

    def __init__(self, language: MaskedLanguage[Any], length: int, device: torch.device) -> None:
        super().__init__(language.settings, language.encoder, length)
        self.language, self.tower, self.card = language, language.tower, language.card
        tokenizer, settings = language.encoder.text_tokenizer, language.settings
        self.hide = partial(  # nothing is asked of the tokenizer inside the compiled forward
            mask_rows,
            specials=torch.tensor(sorted(tokenizer.specials), device=device),
            mask=int(tokenizer.mask or 0),
            vocabulary=tokenizer.vocabulary,
            count=max(round(settings.mask_rate * (length - 2)), 1),
            keep=settings.keep,
            replace=settings.replace,
        )
        self.compiled: Callable[[Tensor], Tensor] = (
            torch.compile(self.token_losses) if device.type == "cuda" else self.token_losses
        )

    def token_losses(self, ids: Tensor) -> Tensor:
        """−log p of the masked tokens of some rows."""
        shown, asked, answers = self.hide(ids)
        states = self.encoder.backbone(input_ids=shown).last_hidden_state
        return self.language.losses_at(states, asked, answers)

    def bare_losses(self, bare: Unpadded, ids: Tensor) -> Tensor:
        """The same by the forward without padding, whose last layer computes little but the masked tokens."""
        shown, asked, answers = self.hide(ids)
        states = bare.states_at(Tokens(shown, shown, np.full(len(ids), ids.shape[1])), asked)
        return answer_losses(self.language.scores, states, answers)

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        ids = batch["rows"].ids
        bare = unpadded(self.encoder.backbone, ids.device)
        if bare is not None:
            return {"token_losses": self.bare_losses(bare, ids)}
        losses = self.compiled if self.training else self.token_losses
        return {"token_losses": losses(ids)}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return self.language.loss(representations, generator)

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return self.language.on_held_out(representations)


class PackedFeed:
    """Rows by number: a new order each epoch, the same for the same seed; each process takes its part of a batch."""

    def __init__(self, text: PackedText, settings: LoopSettings, accelerator: Accelerator) -> None:
        self.text, self.settings, self.accelerator = text, settings, accelerator
        self.device = accelerator.device
        resident = self.device.type == "cuda"
        self.resident = torch.from_numpy(text.train.astype(np.int32)).to(self.device) if resident else None

    def batches(self, skip: int) -> Numbered:
        size, seed = self.settings.batch_size, self.settings.seed
        per_epoch, own = len(self.text.train) // size, size // self.accelerator.num_processes
        first = self.accelerator.process_index * own
        number, epoch, order = skip, -1, torch.empty(0, dtype=torch.int64)
        while True:
            wanted, place = divmod(number, per_epoch)
            if wanted != epoch:
                epoch, order = wanted, self._order(wanted)
            chosen = order[place * size + first : place * size + first + own]
            yield number, Batch({"rows": PackedRows(self._rows(chosen))}, len(chosen), keyed_seed("loss", seed, number))
            number += 1

    def release(self) -> None:
        """Nothing is mapped that grows."""

    def _order(self, epoch: int) -> Tensor:
        generator = torch.Generator().manual_seed(keyed_seed("order", self.settings.seed, epoch))
        order = torch.randperm(len(self.text.train), generator=generator)
        return order if self.resident is None else order.to(self.device)

    def _rows(self, chosen: Tensor) -> Tensor:
        if self.resident is not None:
            return self.resident[chosen].long()
        return torch.from_numpy(self.text.train[chosen.numpy()].astype(np.int64))
