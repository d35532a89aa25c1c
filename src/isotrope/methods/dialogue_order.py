"""Dialogue order (after Wu, Wang, Wang 2019): turns in their order are told from the same turns in a wrong one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings
from isotrope.objectives import info_nce
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers
from isotrope.views.turns import MISORDERS, draw_window, misorder

FORMS = ("classifier", "contrastive")


@dataclass(frozen=True)
class DialogueOrderSettings(Settings):
    """The paper has no such settings for an encoder; these are ours."""

    form: str = (
        "classifier"  # classifier (is this the right order?) or contrastive (which continuation is the right one?)
    )
    turns: int = 5  # in a row that are looked at, or as many as a dialogue has
    misorder: str = "shuffle"  # shuffle (any other order) or swap (two turns change places: harder)
    keep_speakers: bool = True  # turns change places with those of the same speaker only, where that is possible
    temperature: float = 0.05  # of the contrastive form


class DialogueOrder(Method):
    """Each turn is encoded alone; a GRU r, dropped afterwards, reads the vectors t_1 … t_n in the right order and in a
    wrong one, t'.

        classifier    ℓ = −½ [ log σ(w·r(t_1 … t_n)) + log σ(−w·r(t'_1 … t'_n)) ] contrastive   ℓ = InfoNCE of r(t_1 …
        t_c) and r(t_{c+1} … t_n); hard negatives r(t'_{c+1} … t'_n), c = ⌊(n − 1)/2⌋

    Both orders of every dialogue are in the batch, so length and words tell nothing.
    """

    card = Card(
        name="dialogue-order",
        title="Dialogue order prediction",
        paper="Wu, Wang, Wang. Self-Supervised Dialogue Learning. ACL 2019",
        year=2019,
        needs="dialogues",
        family="contrastive",
    )
    batches = "by-document"
    Settings = DialogueOrderSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        for name, choices in (("form", FORMS), ("misorder", MISORDERS)):
            if getattr(settings, name) not in choices:
                raise InputError(f"{name} is one of {', '.join(choices)}; '{getattr(settings, name)}' was given.")
        if settings.turns < cls.fewest(settings):
            raise InputError(
                f"turns must be at least {cls.fewest(settings)} for the form {settings.form}; {settings.turns} was given."
            )
        if not settings.temperature > 0:
            raise InputError(f"temperature must be above 0; {settings.temperature} was given.")

    @classmethod
    def fewest(cls, settings: Any) -> int:
        """Turns without which there is no order to tell: two, and one before them as context."""
        return 2 if settings.form == "classifier" else 3

    @classmethod
    def context(cls, settings: Any, turns: Any) -> Any:
        """How many of so many turns are read first and keep their order."""
        return 0 * turns if settings.form == "classifier" else (turns - 1) // 2

    @classmethod
    def orderable(cls, settings: Any, corpus: Corpus) -> npt.NDArray[np.bool_]:
        """Of each dialogue, whether it has turns enough, and two different ones in a row behind the context."""
        turns = np.diff(corpus.starts, append=len(corpus))
        documents, keys = np.asarray(corpus.documents), corpus.keys[:, 0]
        fixed = cls.context(settings, np.minimum(turns, settings.turns))
        behind = np.arange(len(corpus)) - corpus.starts[documents] >= fixed[documents]
        different = (documents[1:] == documents[:-1]) & (keys[1:] != keys[:-1]) & behind[:-1]
        return (turns >= cls.fewest(settings)) & (np.bincount(documents[1:][different], minlength=len(turns)) > 0)

    @classmethod
    def usable(cls, settings: Any, corpus: Corpus, rows: Rows) -> Rows:
        return rows[cls.orderable(settings, corpus)[corpus.documents[rows]]]

    def remarks(self) -> list[str]:
        kept = np.ones(0) if self.corpus is None else self.orderable(self.settings, self.corpus)
        left_out = len(kept) - int(kept.sum())
        reason = f"fewer than {self.fewest(self.settings)} turns, or no two different ones in a row, and are left out"
        return [f"{left_out:,} of {len(kept):,} dialogues have {reason}."] if left_out else []

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
            fixed = self.context(self.settings, min(most, len(keys)))
            window = draw_window(keys, most, fixed, rng)
            order = misorder(
                [keys[i] for i in window[fixed:]], rng, self.settings.misorder, self.settings.keep_speakers
            )
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
