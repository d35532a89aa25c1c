"""Dialogue order (after Wu, Wang, Wang 2019): is this the order in which the turns were said?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method, Prepared
from isotrope.methods.frame.settings import OneOf, Settings, TemperatureSetting, at_least
from isotrope.objectives import info_nce
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers
from isotrope.views.turns import MISORDERS, draw_window, misorder

FORMS = ("classifier", "contrastive")


@dataclass(frozen=True)
class DialogueOrderSettings(Settings):
    """The paper has no such settings for an encoder; these are ours."""

    form: Annotated[
        str, OneOf(*FORMS), "What is asked: is this the right order, or which continuation is the right one"
    ] = "classifier"
    turns: Annotated[int, at_least(2), "Turns in a row that are looked at, or as many as a dialogue has"] = 5
    misorder: Annotated[str, OneOf(*MISORDERS), "The wrong order: any other, or two turns swapped (harder)"] = "shuffle"
    keep_speakers: Annotated[
        bool, "Turns change places with those of the same speaker only, where that is possible"
    ] = True
    temperature: Annotated[TemperatureSetting, "Temperature of the contrastive form"] = 0.05

    def rules(self) -> None:
        if self.turns < self.fewest:
            raise InputError(f"turns must be at least {self.fewest} for the form {self.form}; {self.turns} was given.")

    @property
    def fewest(self) -> int:
        """Turns without which there is no order to predict: two, and one before them as context."""
        return 2 if self.form == "classifier" else 3

    @overload
    def context(self, turns: int) -> int: ...
    @overload
    def context(self, turns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]: ...
    def context(self, turns: int | npt.NDArray[np.int64]) -> int | npt.NDArray[np.int64]:
        """How many of so many turns are read first and keep their order."""
        return 0 * turns if self.form == "classifier" else (turns - 1) // 2


class DialogueOrder(Method[DialogueOrderSettings]):
    """Each turn is encoded alone; a GRU r reads their vectors t_1 … t_n in the right order, and in a wrong one, t'.

        classifier    ℓ = −½ [ log σ(w·r(t_1 … t_n)) + log σ(−w·r(t'_1 … t'_n)) ]
        contrastive   ℓ = InfoNCE of r(t_1 … t_c) and r(t_{c+1} … t_n); hard negatives r(t'_{c+1} … t'_n)

    c = ⌊(n − 1)/2⌋. Both orders of every dialogue are in the batch, so length and words reveal nothing. r and w are
    dropped after training.

    When to use it: dialogues, where what follows what matters. What goes wrong: turns that could stand anywhere have no
    order to predict, and the GRU may learn the order that the vectors should hold. Siblings: ``quick-thoughts`` asks
    for neighbours without their order, ``sop`` classifies the order of two segments.
    """

    card = Card(
        name="dialogue-order",
        title="Dialogue order prediction",
        paper="Wu, Wang, Wang. Self-Supervised Dialogue Learning. ACL 2019",
        year=2019,
        needs="dialogues",
        family="contrastive",
        read_out="cls",
    )
    Settings = DialogueOrderSettings
    batches = "by-document"
    shared_views = ("turns",)

    def prepare(self, corpus: Corpus) -> Prepared:
        orderable = self._orderable(corpus)
        left_out = len(orderable) - int(orderable.sum())
        reason = f"fewer than {self.settings.fewest} turns, or no two different ones in a row, and are left out"
        remarks = (f"{left_out:,} of {len(orderable):,} dialogues have {reason}.",) if left_out else ()
        return Prepared(orderable[corpus.documents], remarks)

    def _orderable(self, corpus: Corpus) -> npt.NDArray[np.bool_]:
        """Of each dialogue, whether it has turns enough, and two different ones in a row behind the context."""
        turns = np.diff(corpus.starts, append=len(corpus))
        documents, keys = np.asarray(corpus.documents), corpus.keys[:, 0]
        fixed = self.settings.context(np.minimum(turns, self.settings.turns))
        behind = np.arange(len(corpus)) - corpus.starts[documents] >= fixed[documents]
        different = (documents[1:] == documents[:-1]) & (keys[1:] != keys[:-1]) & behind[:-1]
        return (turns >= self.settings.fewest) & (np.bincount(documents[1:][different], minlength=len(turns)) > 0)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        reader = {"reader": Trained(nn.GRU(encoder.dimension, encoder.dimension, batch_first=True))}
        judge = {"judge": Trained(nn.Linear(encoder.dimension, 1))} if self.settings.form == "classifier" else {}
        return {**reader, **judge}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        most, nothing = self.settings.turns, np.empty(0, dtype=np.int32)
        turns: list[npt.NDArray[np.int32]] = []
        right, wrong, sizes = [], [], []
        for dialogue in records.whole():
            keys = dialogue.corpus.keys[np.asarray(dialogue.rows), 0].tolist()
            fixed = self.settings.context(min(most, len(keys)))
            window = draw_window(keys, most, fixed, rng)
            movable = [keys[i] for i in window[fixed:]]
            order = misorder(movable, rng, self.settings.misorder, self.settings.keep_speakers)
            rest = [0] * (most - len(order))
            right.append([*range(fixed, len(window)), *rest])
            wrong.append([*(fixed + order), *rest])
            sizes.append([fixed, len(order)])
            turns += [dialogue.corpus.tokens(dialogue.rows[i]) for i in window] + [nothing] * (most - len(window))
        return {
            "turns": self.frame(turns),
            "right": Numbers.of(right),
            "wrong": Numbers.of(wrong),
            "sizes": Numbers.of(sizes),
        }

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        vectors = self.encoder.embed(batch["turns"])[0].unflatten(0, (batch.size, self.settings.turns))
        fixed, size = batch["sizes"].values.unbind(dim=1)
        read = {name: self._read(vectors, batch[name].values, size) for name in ("right", "wrong")}
        if self.settings.form == "classifier":
            return {name: self.tower["judge"](state).squeeze(-1) for name, state in read.items()}
        in_order = torch.arange(self.settings.turns, device=vectors.device).expand(len(vectors), -1)
        return {"context": self._read(vectors, in_order, fixed), **read}

    def _read(self, vectors: Tensor, order: Tensor, size: Tensor) -> Tensor:
        """The GRU's state behind the first ``size`` turns in this order."""
        states, _ = self.tower["reader"](vectors.gather(1, order.unsqueeze(-1).expand_as(vectors)))
        return states[torch.arange(len(states), device=states.device), size - 1]

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        right, wrong = representations["right"], representations["wrong"]
        if self.settings.form == "contrastive":
            return {"contrastive": info_nce(representations["context"], right, self.settings.temperature, wrong)}
        labels = torch.cat([torch.ones_like(right), torch.zeros_like(wrong)])
        return {"order": binary_cross_entropy_with_logits(torch.cat([right, wrong]), labels)}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return 2 * len(representations["right"]) if self.settings.form == "contrastive" else 0
